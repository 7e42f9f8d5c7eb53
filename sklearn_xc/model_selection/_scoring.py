"""What `scoring=` may be beyond scikit-learn's own values."""

from typing import Any

from sklearn_xc.metrics.scorers import AtKScorer, ManyAtKScorer, TopKScorer, get_scorer


def resolve_scoring(scoring: Any) -> Any:
    """Return `scoring` with the names of this package replaced by scorers.

    Where all names are of this package, they become one scorer with one top-k pass. Containers of
    the wrong kind, or with the wrong content, go on to scikit-learn, which says what is wrong.
    """
    if isinstance(scoring, str):
        return get_scorer(scoring)
    if isinstance(scoring, list | tuple):
        names = {name: name for name in scoring if isinstance(name, str)}
        if not names or len(names) < len(scoring):
            return scoring
        return _one_pass(names)
    if isinstance(scoring, dict):
        return _one_pass(scoring)
    return scoring


def _one_pass(scoring: dict[str, Any]) -> Any:
    scorers = {name: get_scorer(scorer) for name, scorer in scoring.items()}
    # Only where they came as strings: a scorer made by the user has weights or requests of its own.
    ours = all(
        isinstance(scoring[name], str) and isinstance(scorer, AtKScorer)
        for name, scorer in scorers.items()
    )
    return ManyAtKScorer(scorers) if ours and scorers else scorers


def resolve_single_scoring(scoring: Any, caller: str) -> Any:
    """Return `scoring` as `resolve_scoring` does, and refuse what gives several numbers."""
    if isinstance(scoring, list | tuple | set | dict | TopKScorer):
        raise ValueError(
            f"scoring: {caller} reports one number per fit, but {scoring!r} gives several. Use "
            'cross_validate, or a single name such as "P@1".'
        )
    return resolve_scoring(scoring)
