"""What the caller gives, as pairs: weights and ids of instances checked, some held out."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._checks import check_weights, require_labels
from sklearn_xc._data import Targets
from sklearn_xc.softmax.pairs import Pairs, largest_sample_id, pairs_of

#: Weights of more in all may leave the range of float64.
_HEAVIEST = 1e304
#: Instances whose ranks judge, at least, but no more than a third.
_RANKED = 256


def check_pairs(
    estimator: Any, targets: Targets, n: int, sample_weight: Any
) -> tuple[np.ndarray, Pairs]:
    """Return the weights of the instances, and their pairs.

    Parameters
    ----------
    estimator : estimator
        Named in messages; it has the parameter ``multilabel``.
    targets : Targets
        Checked targets.
    n : int
        Number of instances.
    sample_weight : array-like of shape (n,) or None
        As the caller gave it.
    """
    weight = check_weights(estimator, sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    pairs = pairs_of(targets, weight, estimator.multilabel == "first")
    require_labels(estimator, targets, pairs.rows)
    name = type(estimator).__name__
    with np.errstate(over="ignore"):
        total = float(pairs.weight.sum())
    if not total < _HEAVIEST:
        raise ValueError(
            f"{name}: sample_weight must sum to less than {_HEAVIEST:g} over all labels. Got "
            f"{total:g}. Divide all by their mean."
        )
    if len(pairs.rows) >= 2**31 - 1:
        raise ValueError(
            f"{name}: y must have at most 2**31 - 2 labels in all. Got {len(pairs.rows)}."
        )
    return weight, pairs


def check_sample_ids(
    estimator: Any, sample_ids: Any, n: int, n_classes: int, first: int
) -> np.ndarray:
    """Return the numbers of instances, int64 of shape (n,); without any, those from `first` on."""
    if sample_ids is None:
        return np.arange(first, first + n)
    name = type(estimator).__name__
    try:
        numbers = np.asarray(sample_ids)
    except ValueError as error:  # of different lengths
        raise ValueError(f"{name}: sample_ids must hold {n} integers: {error}") from error
    refuse_disguised(sample_ids, f"{name}: sample_ids")
    if numbers.dtype.kind not in "iu" or numbers.shape != (n,):
        raise ValueError(
            f"{name}: sample_ids must hold {n} integers, one for each row of X. Got dtype "
            f"{numbers.dtype} and shape {numbers.shape}."
        )
    if numbers.min() < 0 or numbers.max() > largest_sample_id(n_classes):
        raise ValueError(
            f"{name}: sample_ids must be between 0 and {largest_sample_id(n_classes)}. Got "
            f"{numbers.min()} to {numbers.max()}."
        )
    if len(np.unique(numbers)) < n:
        values, repeats = np.unique(numbers, return_counts=True)
        raise ValueError(
            f"{name}: sample_ids must hold distinct numbers, one for each instance. Got "
            f"{values[repeats.argmax()]} {repeats.max()} times."
        )
    return numbers.astype(np.int64)


def hold_out(
    estimator: Any, pairs: Pairs, seed: int, n_classes: int, by_rank: bool = False
) -> tuple[np.ndarray, Pairs | None]:
    """Return the pairs of trials, and those that judge learning rates and epochs.

    Parameters
    ----------
    estimator : estimator
        With the parameters ``early_stopping``, ``learning_rate`` and ``validation_fraction``.
    pairs : Pairs
        Merged: sorted by content.
    seed : int
        Of the choice of instances.
    n_classes : int
        K.
    by_rank : bool
        Whether their ranks judge, which takes more instances.

    Returns
    -------
    kept : ndarray of int64
        Positions of the pairs to train on in trials.
    held_out : Pairs or None
        Of the other instances; a class without a pair in trials cannot be learned, and says nothing
        of them. Where no pair would be left, all pairs, as are all `kept`. None where there is
        nothing to find.
    """
    everything = np.arange(len(pairs.rows))
    if not stops_early(estimator) and estimator.learning_rate != "auto":
        return everything, None
    rows, first, row = np.unique(pairs.rows, return_index=True, return_inverse=True)
    n_held = _count_held(estimator.validation_fraction, len(rows), by_rank)
    if n_held >= len(rows):
        if estimator.early_stopping != "auto" and estimator.early_stopping:
            raise ValueError(
                f"{type(estimator).__name__}: early_stopping holds out {n_held} of {len(rows)} "
                "distinct instances; none is left to train on."
            )
        return everything, pairs
    by_content = np.argsort(first)  # pairs are sorted by content, row numbers are not
    drawn = np.random.default_rng((seed, 2**32)).permutation(len(rows))[:n_held]
    is_held = np.zeros(len(rows), bool)
    is_held[by_content[drawn]] = True
    is_held = is_held[row]
    is_learned = np.zeros(n_classes, bool)
    is_learned[pairs.classes[~is_held]] = True
    judged = np.flatnonzero(is_held & is_learned[pairs.classes])
    if not judged.size:
        return everything, pairs
    return everything[~is_held], pairs.take(judged)


def _count_held(fraction: float | str, n: int, by_rank: bool) -> int:
    """Return how many of n instances to hold out."""
    if fraction != "auto":
        return int(np.ceil(float(fraction) * n))
    share = int(np.ceil(0.1 * n))
    return max(share, min(_RANKED, n // 3)) if by_rank else share


def stops_early(estimator: Any) -> bool:
    """Tell whether the number of epochs is found on instances held out."""
    if estimator.early_stopping == "auto":
        return bool(estimator.learning_rate == "auto")
    return bool(estimator.early_stopping)
