"""Contributions of features to a score."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import refuse_masks_and_dates
from sklearn_xc._input.data import CsrRows

#: Scores computed at a time.
_CHUNK_SCORES = 2**24


@dataclass(frozen=True, repr=False)
class Explanation:
    """A score as a sum over features.

    Attributes
    ----------
    label : object
        The label explained.
    score : float
        ``intercept``, all ``contributions`` and ``other`` together.
    intercept : float
        The part that no feature explains.
    features : ndarray of shape (m,)
        Names, or column numbers where no names are known, largest contribution first.
    values : ndarray of float of shape (m,)
        Of the features in the instance.
    weights : ndarray of float of shape (m,) or None
        Of the label for them. None where the score is no weighted sum of features.
    contributions : ndarray of float of shape (m,)
        Value times weight; without weights, how much the score falls if the feature is left out.
    other : float
        What the features that are not listed add; without weights also what features add together,
        beyond each for itself.
    n_other : int
        How many features with a contribution are not listed.
    probability : float or None
        That of the label, where the classifier is calibrated. It is no sum over features: among
        other things it depends on the scores of other labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
    >>> found = clf.explain([[1.0, 1.0]], "soup", feature_names=["stock", "flour"])
    >>> found
    soup: score +0.206
      +0.654  stock
      -0.414  flour
      -0.034  (intercept)
    >>> found.features.tolist(), found.weights.round(2)
    (['stock', 'flour'], array([ 0.65, -0.41]))
    """

    label: Any
    score: float
    intercept: float
    features: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    contributions: np.ndarray
    other: float
    n_other: int
    probability: float | None = None

    def __str__(self) -> str:
        title = f"{self.label}: score {self.score:+.3f}"
        if self.probability is not None:
            title += f", probability {self.probability:.3f}"
        rows = list(zip(self.features.tolist(), self.contributions.tolist(), strict=True))
        if self.n_other:
            rows.append((f"({self.n_other} other feature{'s' * (self.n_other > 1)})", self.other))
        elif self.weights is None and self.other:
            rows.append(("(features together)", self.other))
        rows.append(("(intercept)", self.intercept))
        return "\n".join([title, *(f"  {number:+.3f}  {name}" for name, number in rows)])

    __repr__ = __str__


def explained(
    score: Callable[[sp.csr_array], np.ndarray],
    instance: CsrRows,
    weights: np.ndarray | None,
    n_labels: int,
    label: Any,
    names: np.ndarray,
    n_features: int | None,
) -> Explanation:
    """Return the features with the largest contributions to a score.

    Parameters
    ----------
    score : callable
        Returns the scores (m,) of the label for m instances, a CSR.
    instance : CsrRows of shape (1, d)
        Without zeros.
    weights : ndarray of float of shape (nnz,) or None
        Of the features of the instance; None if the score is not a weighted sum of features.
    n_labels : int
        Labels that `score` computes at once.
    label : object
    names : ndarray of shape (d,)
        Of all features.
    n_features : int or None
        How many to list.
    """
    if weights is None:
        found, intercept, contributions = _by_omission(score, instance, n_labels)
    else:
        contributions = instance.data * weights
        whole = (instance.data, instance.indices, instance.indptr)
        found = float(score(sp.csr_array(whole, shape=instance.shape))[0])
        intercept = found - float(contributions.sum(dtype=np.float64))
    order = np.argsort(-np.abs(contributions), kind="stable")
    order = order[contributions[order] != 0]
    listed = order[:n_features]
    if weights is None:
        other = found - intercept - contributions[listed].sum()
    else:
        other = contributions[order[len(listed) :]].sum()
    return Explanation(
        label=label,
        score=float(found),
        intercept=float(intercept),
        features=names[instance.indices[listed]],
        values=instance.data[listed],
        weights=None if weights is None else weights[listed],
        contributions=contributions[listed],
        other=float(other),
        n_other=len(order) - len(listed),
    )


def _by_omission(
    score: Callable[[sp.csr_array], np.ndarray], instance: CsrRows, n_labels: int
) -> tuple[float, float, np.ndarray]:
    """Return a score, that of no features, and how much lower it is without each feature."""
    m = len(instance.data)
    d = instance.shape[1]
    indptr = np.concatenate(([0], m + np.arange(m + 1) * max(m - 1, 0), [m + m * max(m - 1, 0)]))
    kept = ~np.eye(m, dtype=bool)  # row j lacks feature j
    columns = np.concatenate([instance.indices, np.tile(instance.indices, (m, 1))[kept]])
    data = np.concatenate([instance.data, np.tile(instance.data, (m, 1))[kept]])
    rows = sp.csr_array((data, columns, indptr), shape=(m + 2, d))  # the last one has none
    step = max(1, _CHUNK_SCORES // max(1, n_labels))
    scores = np.concatenate([score(rows[at : at + step]) for at in range(0, m + 2, step)])
    scores = scores.astype(np.float64)
    return scores[0], scores[-1], scores[0] - scores[1:-1]


def as_row(x: Any, caller: str) -> Any:
    """Return one instance as a matrix of one row; anything else unchanged."""
    if sp.issparse(x) and x.ndim == 1:  # a row of a sparse array
        return x.reshape(1, -1)
    try:
        is_flat = not sp.issparse(x) and np.ndim(x) == 1
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{caller}: x must be one instance of numbers.") from error
    if not is_flat:
        return x
    refuse_masks_and_dates(x, f"{caller}: x")
    return np.asarray(x).reshape(1, -1)


def check_names(feature_names: Any, n_features: int, name: str) -> np.ndarray:
    """Return names of features as an array of texts or integers."""
    refuse_masks_and_dates(feature_names, name)
    try:
        names = np.asarray(feature_names)
    except ValueError as error:
        raise ValueError(f"{name} must be {n_features} texts.") from error
    if names.shape != (n_features,):
        raise ValueError(f"{name} has shape {names.shape}, expected ({n_features},).")
    texts = names.dtype.kind in "UTiu" or (
        names.dtype == object and all(isinstance(one, str) for one in names)
    )
    if not texts:
        raise ValueError(f"{name} must be texts. Got {names.tolist()[0]!r} (dtype {names.dtype}).")
    return names
