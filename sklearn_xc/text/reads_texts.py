"""Does a classifier read texts itself?"""

from typing import Any

from sklearn.utils import get_tags

from sklearn_xc._topk import transformers_of


def reads_texts(estimator: Any) -> bool:
    """Return whether an estimator is given texts, and not what a vectorizer makes of them.

    Parameters
    ----------
    estimator : estimator or None
        Fitted or not. A Pipeline reads what its first step reads; of a stack or a vote all members
        must read texts; a search, and what wraps a classifier, reads what that one reads.
    """
    if hasattr(estimator, "steps"):
        return reads_texts([*transformers_of(estimator), estimator.steps[-1][1]][0])
    members = getattr(estimator, "estimators", None)
    if isinstance(members, list | tuple) and members:
        return all(reads_texts(member) for _, member in members)
    if getattr(estimator, "estimator", None) is not None:
        return reads_texts(estimator.estimator)
    if not hasattr(estimator, "__sklearn_tags__"):  # None, "passthrough", "drop"
        return False
    reads = get_tags(estimator).input_tags
    return bool(reads.string and not reads.two_d_array)
