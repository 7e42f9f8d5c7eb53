"""Sums over rows, drawn again with replacement: intervals and p-values of their ratios."""

import numpy as np

#: Rows drawn at a time, unless there are more in one drawing: they stay in a processor's cache.
_CHUNK = 1 << 16
#: A variance below this share of the squares it is the difference of is rounding.
_ROUNDING = 1e-12


def bootstrap_ratio(
    of: np.ndarray, by: np.ndarray, n_resamples: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return sum(of) / sum(by), the ends of its interval and the p-value of its being 0.

    Parameters
    ----------
    of, by : ndarray of float64 of shape (n,)
        `by` is at least 0.
    n_resamples : int
    confidence : float
    rng : Generator

    Returns
    -------
    ratio, low, high, p_value : float
    """
    n = len(of)
    if not by.any():
        return 0.0, 0.0, 0.0, 1.0
    # 1. Rows that are alike are drawn together.
    n_alike: np.ndarray | None = None
    unlike, n_each = np.unique(of + 1j * by, return_counts=True)
    if 8 * len(unlike) < n:
        of, by, n_alike = unlike.real, unlike.imag, n_each
    # 2. All that a drawing is asked for follows from five sums over its rows.
    terms = np.column_stack([of, by, of * of, of * by, by * by])
    whole = terms.sum(axis=0) if n_alike is None else n_alike @ terms
    ratio, error = (float(each[0]) for each in _ratio_and_error(whole[None]))
    ratios, errors = np.empty(n_resamples), np.empty(n_resamples)
    n_together = max(1, _CHUNK // len(terms))
    for start in range(0, n_resamples, n_together):
        part = slice(start, min(start + n_together, n_resamples))
        counts = _draw_counts(n, n_alike, part.stop - start, rng)
        ratios[part], errors[part] = _ratio_and_error(counts @ terms)
    # 3. How far each drawing is from the ratio, in its own standard errors.
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(ratios - ratio) / errors
        observed = abs(ratio) / error if error > 0 else (np.inf if ratio else 0.0)
    distance[np.isnan(distance)] = 0.0
    # Sums over equal rows may round apart.
    p_value = (1 + np.count_nonzero(distance >= observed * (1 - 1e-9))) / (n_resamples + 1)
    quantile = float(np.quantile(distance, confidence, method="inverted_cdf"))
    if error == 0:
        return ratio, ratio, ratio, p_value
    if np.isinf(quantile):
        tail = (1 - confidence) / 2
        low, high = np.quantile(ratios, [tail, 1 - tail], method="inverted_cdf")
        return ratio, min(float(low), 0.0), max(float(high), 0.0), p_value
    return ratio, ratio - quantile * error, ratio + quantile * error, p_value


def bootstrap_difference(
    of_a: np.ndarray, by_a: np.ndarray, of_b: np.ndarray, by_b: np.ndarray, n_resamples: int,
    confidence: float, rng: np.random.Generator,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return sum(of_b) / sum(by_b) - sum(of_a) / sum(by_a), its interval and p-value.

    For ratios whose denominators differ, such as micro-F1. The interval is the difference give or
    take the quantile of how far drawings are from it; the p-value is the share of drawings that are
    as far from it as it is from 0.

    Parameters
    ----------
    of_a, by_a, of_b, by_b : ndarray of float64 of shape (n,)
        A ratio whose denominators sum to 0 is 0.
    n_resamples : int
    confidence : float
    rng : Generator

    Returns
    -------
    difference, low, high, p_value : float
    """
    terms = np.column_stack([of_a, by_a, of_b, by_b])
    n_alike: np.ndarray | None = None
    unlike, n_each = np.unique(terms, axis=0, return_counts=True)
    if 8 * len(unlike) < len(terms):
        terms, n_alike = unlike, n_each
    n = len(of_a)

    def difference_of(sums: np.ndarray) -> np.ndarray:
        a, b = (
            np.divide(of, by, out=np.zeros(len(sums)), where=by > 0)
            for of, by in ((sums[:, 0], sums[:, 1]), (sums[:, 2], sums[:, 3]))
        )
        return b - a

    whole = terms.sum(axis=0) if n_alike is None else n_alike @ terms
    found = float(difference_of(whole[None])[0])
    drawn = np.empty(n_resamples)
    n_together = max(1, _CHUNK // len(terms))
    for start in range(0, n_resamples, n_together):
        part = slice(start, min(start + n_together, n_resamples))
        drawn[part] = difference_of(_draw_counts(n, n_alike, part.stop - start, rng) @ terms)
    distance = np.abs(drawn - found)
    p_value = (1 + np.count_nonzero(distance >= abs(found) * (1 - 1e-9))) / (n_resamples + 1)
    reach = float(np.quantile(distance, confidence, method="inverted_cdf"))
    return found, found - reach, found + reach, p_value


def _draw_counts(
    n: int, n_alike: np.ndarray | None, n_drawings: int, rng: np.random.Generator
) -> np.ndarray:
    """Return how often each row (or kind of row) is drawn, shape (n_drawings, n_rows), float64."""
    if n_alike is not None:
        return rng.multinomial(n, n_alike / n, size=n_drawings).astype(np.float64)
    # Faster than a multinomial over single rows, which draws a binomial for each.
    drawn = rng.integers(0, n, size=(n_drawings, n), dtype=np.int32 if n < 2**31 else np.int64)
    keys = drawn + np.arange(n_drawings)[:, None] * n
    counts = np.bincount(keys.ravel(), minlength=n_drawings * n)
    return counts.reshape(n_drawings, n).astype(np.float64)


def _ratio_and_error(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratio of the first two sums, and its standard error by the delta method.

    The sums are those of `bootstrap_ratio`, shape (n_drawings, 5). A drawing in which nothing is
    attainable has a ratio and an error of 0.
    """
    of, by, of_of, of_by, by_by = sums.T
    safe = np.where(by > 0, by, 1.0)
    ratio = np.where(by > 0, of / safe, 0.0)
    squares = of_of - 2 * ratio * of_by + ratio**2 * by_by
    squares = np.where(squares > _ROUNDING * of_of, squares, 0.0)
    return ratio, np.where(by > 0, np.sqrt(squares) / safe, 0.0)
