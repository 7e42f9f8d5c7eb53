"""The estimators of a stack: checked, and worked with side by side."""

from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, delayed

from sklearn_xc.base import XCClassifier
from sklearn_xc.parallel.threads import count_threads


def check_members(estimators: Any, who: str, taken: set[str]) -> list[tuple[str, Any]]:
    """Return the members by name, without those that are "drop"; `taken` names are parameters.

    Raises
    ------
    ValueError, TypeError
        For anything but a list of pairs of a name and an estimator, names that come twice, hold two
        underscores, or are a parameter of the stack.
    """
    wanted = f"{who}: estimators must be a list of pairs (name, estimator)"
    if not isinstance(estimators, list | tuple) or not len(estimators):
        raise ValueError(f"{wanted}. Got {estimators!r}.")
    found = []
    for pair in estimators:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        if not is_pair:
            raise ValueError(f"{wanted}. Got {pair!r}.")
        name, estimator = pair
        if isinstance(estimator, str) and estimator == "drop":
            continue
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            raise TypeError(f"{who}: estimators: {name!r} must be an estimator. Got {estimator!r}.")
        found.append((name, estimator))
    names = [name for name, _ in found]
    if len(set(names)) < len(names) or taken & set(names) or any("__" in name for name in names):
        raise ValueError(
            f"{who}: estimators must have names that differ, hold no '__' and are no parameter of "
            f"the stack. Got {names}."
        )
    if not found:
        raise ValueError(f"{who}: estimators must not all be 'drop'. Got {estimators!r}.")
    return found


def read_features(members: Sequence[tuple[str, Any]]) -> bool:
    """Return whether X is a matrix of features to all members, as estimators of this package say.

    Pipelines may make features of anything, and take a row of zeros for one like any other.
    """
    return all(
        isinstance(estimator, XCClassifier)
        and not hasattr(estimator, "estimators")
        and estimator._reads_matrix
        for _, estimator in members
    )


def side_by_side(
    act: Callable[..., Any], members: Sequence[tuple[str, Any]], n_jobs: Any, who: str
) -> list:
    """Return ``act(name, estimator)`` of all members, from as many threads as `n_jobs` asks for."""
    workers = min(count_threads(n_jobs, f"{who}: n_jobs"), len(members))
    if workers == 1:
        return [act(*member) for member in members]
    return Parallel(n_jobs=workers, require="sharedmem")(delayed(act)(*one) for one in members)


def composed_params(params: dict[str, Any], estimators: Any) -> dict[str, Any]:
    """Return the parameters of a stack together with its members and theirs."""
    if not isinstance(estimators, list | tuple):
        return params
    for pair in estimators:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            continue  # fit says what is wrong
        name, member = pair
        params[name] = member
        if hasattr(member, "get_params") and not isinstance(member, type):
            of_member = member.get_params(deep=True)
            params |= {f"{name}__{key}": value for key, value in of_member.items()}
    return params


def with_members(estimators: Any, params: dict[str, Any]) -> Any:
    """Return the named estimators with those that `params` names, and take these out of it."""
    pairs = isinstance(estimators, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in estimators
    )
    if not pairs or not any(name in params for name, _ in estimators):
        return estimators
    return [(name, params.pop(name, member)) for name, member in estimators]
