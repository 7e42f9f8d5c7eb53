"""What `scoring=` may be beyond scikit-learn's own values."""

from typing import Any

from sklearn_xc.metrics.scorers import AtKScorer, ManyAtKScorer, get_scorer


def resolve_scoring(scoring: Any) -> Any:
    """Return `scoring` with the names of this package replaced by scorers.

    A list of such names only becomes one scorer with one top-k pass. What is not understood goes
    on to scikit-learn, whose errors say what is wrong with it; single unknown names fail here.
    """
    if isinstance(scoring, str):
        return get_scorer(scoring)
    if isinstance(scoring, dict):
        return {name: get_scorer(scorer) for name, scorer in scoring.items()}
    if not isinstance(scoring, list | tuple):
        return scoring
    names = [name for name in scoring if isinstance(name, str)]
    if not names or len(names) < len(scoring) or len(set(names)) < len(names):
        return scoring
    scorers = [get_scorer(name) for name in names]
    if all(isinstance(scorer, AtKScorer) for scorer in scorers):
        return ManyAtKScorer(scorers)
    return dict(zip(names, scorers, strict=True))


def resolve_single_scoring(scoring: Any, caller: str) -> Any:
    """Return `scoring` as for `resolve_scoring`, and refuse what gives several numbers."""
    if isinstance(scoring, list | tuple | set | dict) or type(scoring).__name__ == "TopKScorer":
        raise ValueError(
            f"scoring: {caller} reports one number per fit, got {scoring!r}, which gives several. "
            'Use cross_validate, or a single name such as "P@1".'
        )
    return resolve_scoring(scoring)
