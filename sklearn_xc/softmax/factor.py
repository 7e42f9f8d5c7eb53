"""The factor on scores with the lowest log-loss, by Newton's method between bounds."""

import numpy as np

_MAX_STEPS = 40
_TOLERANCE = 1e-3
#: Scores that are worked on at a time: they stay in the cache of a core.
_BLOCK = 2**16


def best_factor(
    scores: np.ndarray,
    at: np.ndarray,
    classes: np.ndarray,
    weight: np.ndarray,
    offset: np.ndarray | None = None,
    *,
    first: float = 0.0,
    bounds: tuple[float, float] = (0.0, np.inf),
) -> tuple[float, float]:
    """Return the factor on scores with the lowest log-loss of pairs, and that log-loss.

    The log-loss is convex in the factor. Where scores of each row are all equal, or so large that
    they say nothing, the lowest factor is returned, with an infinite log-loss.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
        Of instances.
    at, classes : ndarray of int of shape (n_pairs,)
        Row of `scores`, and class.
    weight : ndarray of float64 of shape (n_pairs,)
        Of each pair, positive.
    offset : ndarray of shape (n_classes,), default=None
        Added to the scores after they are multiplied; None is 0.
    first : float
        Where to start, within the bounds.
    bounds : tuple of float
        The least factor and the largest.
    """
    scores = scores - scores.max(axis=1, keepdims=True)
    largest = float(np.abs(scores).max())
    if not 0.0 < largest < np.inf:
        return bounds[0], np.inf
    unit = 2.0 ** np.floor(np.log2(largest))
    scores /= scores.dtype.type(unit)
    own, own_offset = scores[at, classes].astype(np.float64), 0.0
    if offset is not None:
        offset = (offset - offset.max()).astype(scores.dtype)
        own_offset = offset[classes].astype(np.float64)
    weight = weight / weight.sum()
    least, most = bounds[0] * unit, bounds[1] * unit
    low, high, eta = least, most, first * unit
    tried = set()
    for _ in range(_MAX_STEPS):
        tried.add(eta)
        totals, mean, square = _moments(scores, eta, offset)
        found = eta / unit, float(weight @ (np.log(totals)[at] - eta * own - own_offset))
        slope = float(weight @ (mean[at] - own))
        curvature = float(weight @ (square - mean**2)[at])
        if (eta >= most and slope <= 0) or (eta <= least and slope >= 0):
            break
        low, high = (low, eta) if slope > 0 else (eta, high)
        new = eta - slope / curvature if curvature > 0 else np.inf
        if new > 4.0 * eta > 0:  # far from the optimum the parabola says little
            new = 4.0 * eta
        if not low < new < high:
            edge = least if new <= low else most
            is_new = edge not in tried and edge < np.inf
            new = edge if is_new else 0.5 * (low + high)
        if not abs(new - eta) > _TOLERANCE * eta or new == np.inf:
            break
        eta = new
    return float(found[0]), found[1]


def _moments(
    scores: np.ndarray, eta: float, offset: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum of the powers of each row, and mean and mean square of scores by them."""
    n, n_classes = scores.shape
    totals, mean, square = np.empty(n), np.empty(n), np.empty(n)
    step = max(1, _BLOCK // n_classes)
    for begin in range(0, n, step):
        rows = slice(begin, begin + step)
        part = scores[rows]
        powers = part * part.dtype.type(eta)
        if offset is not None:
            powers += offset
        np.exp(powers, out=powers)
        totals[rows] = powers.sum(axis=1, dtype=np.float64)
        powers *= part
        mean[rows] = powers.sum(axis=1, dtype=np.float64)
        powers *= part
        square[rows] = powers.sum(axis=1, dtype=np.float64)
    return totals, mean / totals, square / totals
