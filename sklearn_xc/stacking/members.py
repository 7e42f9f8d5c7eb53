"""The estimators of a stack: checked, fitted to some of the rows, asked for their best labels."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_xc._label_names import places_in
from sklearn_xc._sklearn import num_samples, safe_indexing
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.base import XCClassifier
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.parallel.threads import count_threads


class Answers(NamedTuple):
    """What a member says of some instances.

    Attributes
    ----------
    labels : ndarray of int64 of shape (n, k)
        Positions among the labels of the stack, best first, padded with -1.
    scores : ndarray of float of shape (n, k)
    """

    labels: np.ndarray
    scores: np.ndarray


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
    """Return whether X is a matrix of features to all members, as to any estimator of this package.

    Pipelines may make features of anything, and take a row of zeros for one like any other.
    """
    return all(
        isinstance(estimator, XCClassifier) and not hasattr(estimator, "estimators")
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


def fit_member(
    name: str, estimator: Any, X: Any, y: Any, weight: Any, rows: np.ndarray | None, who: str
) -> tuple[Any, float]:
    """Return a clone fitted to some of the rows (None for all), and the seconds that it took."""
    began = time.perf_counter()
    if rows is not None:
        X, y = safe_indexing(as_rows(X), rows), safe_indexing(as_rows(y), rows)
        weight = None if weight is None else weight[rows]
    given = {} if weight is None else {weight_name(estimator): weight}
    fitted = clone(estimator)
    with said_by(f"estimator {name!r}", who):
        fitted.fit(X, y, **given)
    return fitted, time.perf_counter() - began


def weight_name(estimator: Any) -> str:
    """Return the argument of ``fit`` by which weights reach the last step of a Pipeline."""
    if sklearn.get_config()["enable_metadata_routing"]:
        return "sample_weight"  # steps say whether they want it
    prefix = ""
    while hasattr(estimator, "steps"):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return f"{prefix}sample_weight"


def ask_member(
    name: str, fitted: Any, X: Any, k: int, classes: np.ndarray, who: str, *, are_columns: bool
) -> Answers:
    """Return the k best labels of each instance, as positions in `classes`.

    `are_columns` is whether these are the columns of an indicator, which members may number.
    """
    with said_by(f"estimator {name!r}", who):
        labels, scores = topk(fitted, X, k)
        known = np.asarray(unwrap(fitted, None)[0].classes_)
    place = places_in(classes, known, are_columns=are_columns)
    if (place < 0).any():
        raise ValueError(
            f"{who}: estimators: {name!r} answers with classes that y does not have. Got "
            f"{known[:5].tolist()}, expected some of {classes[:5].tolist()}."
        )
    return Answers(np.where(labels >= 0, place[labels], -1), scores)


def known_counts(
    members: Sequence[Any], classes: np.ndarray, *, are_columns: bool
) -> tuple[np.ndarray, int] | None:
    """Return what the first of fitted members that counted its training instances has counted.

    Returns
    -------
    label_counts : ndarray of int64 of shape (n_labels,)
        With each of `classes`; 0 of those that the member does not have.
    n : int
        In all. Both are of one training set, as propensities need them.
    """
    for member in members:
        classifier = unwrap(member, None)[0]
        if hasattr(classifier, "label_counts_") and hasattr(classifier, "n_samples_fit_"):
            place = places_in(classes, np.asarray(classifier.classes_), are_columns=are_columns)
            known = place >= 0
            counts = np.zeros(len(classes), np.int64)
            counts[place[known]] = classifier.label_counts_[known]
            return counts, classifier.n_samples_fit_
    return None


def as_rows(data: Any) -> Any:
    """Return data that can be indexed by rows."""
    if hasattr(data, "tocsr"):
        return data.tocsr()
    is_array_like = hasattr(data, "__array__") and not hasattr(data, "__getitem__")
    return np.asarray(data) if is_array_like else data


def n_rows(X: Any, who: str) -> int:
    """Return the number of instances, at least one."""
    n = int(num_samples(X))
    if not n:
        shape = getattr(X, "shape", (0,))
        raise ValueError(
            f"{who}: X has 0 sample(s) (shape={shape}), a minimum of 1 is required by {who}."
        )
    return n


class said_by:  # noqa: N801  used as a function
    """Have errors of a part of a stack say which one it was."""

    def __init__(self, part: str, who: str) -> None:
        self.part, self.who = part, who

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for plain in (ValueError, TypeError, MemoryBudgetError):
            if isinstance(error, plain) and not isinstance(error, NotFittedError):
                raise plain(f"{self.who}: {self.part}: {error}") from error


def composed_params(params: dict[str, Any], estimators: Any) -> dict[str, Any]:
    """Return the parameters of a stack together with its members and theirs."""
    if not isinstance(estimators, list | tuple):
        return params
    for pair in estimators:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
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
