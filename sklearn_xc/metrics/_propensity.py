"""How likely a relevant label is to have been written down, after Jain et al. (2016)."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_numbers, is_number

# (A, B) as fitted in section 4 of the paper on Wikipedia and Amazon data, and their averages.
PRESETS = {"default": (0.55, 1.5), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}


def propensity(
    label_counts: Any,
    n_samples: Any,
    preset: str = "default",
    *,
    A: float | None = None,
    B: float | None = None,
) -> np.ndarray:
    r"""Return for each label the probability that it is observed if it is relevant.

    In data with large label sets, relevant labels are often missing, rare ones most of all. The
    model has one curve for all data sets: propensity grows with the label's frequency, and `A` and
    `B` determine its shape.

    Parameters
    ----------
    label_counts : array-like of shape (n_labels,)
        Training rows of each label: the attribute ``label_counts_`` of a fitted estimator, or
        ``np.asarray(Y.sum(axis=0)).ravel()``. Zero is allowed.
    n_samples : int or float
        Number of training rows, at least 3: the attribute ``n_samples_fit_``.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        The usual constants: "wikipedia" (0.5, 0.4) for WikiLSHTC-325K and Wikipedia-500K,
        "amazon" (0.6, 2.6) for Amazon-670K and Amazon-3M, "default" (0.55, 1.5) for all others.
    A, B : float, default=None
        Your own constants; each replaces that of the preset.

    Returns
    -------
    ndarray of shape (n_labels,), float64
        In (0, 1].

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    .. math:: 1 / p_l = 1 + C (N_l + B)^{-A}, \qquad C = (\log n - 1) (B + 1)^A

    with :math:`N_l` the count of label l and n the number of rows. Source: section 4 of [1]_.
    Compare numbers only for equal constants and equal training sets: the constants were fitted on
    two data sets, and other data may follow another curve.

    References
    ----------
    .. [1] Jain, Prabhu and Varma, "Extreme Multi-label Loss Functions for Recommendation, Tagging,
       Ranking & Other Missing Label Applications", KDD 2016.

    Examples
    --------
    >>> from sklearn_xc.metrics import propensity
    >>> propensity([0, 10, 1000], n_samples=10_000).round(3)
    array([0.084, 0.22 , 0.767])
    """
    check_preset(preset)
    a = _positive("A", PRESETS[preset][0] if A is None else A)
    b = _positive("B", PRESETS[preset][1] if B is None else B)
    if not is_number(n_samples) or not 3 <= float(n_samples) < np.inf:
        raise ValueError(
            f"n_samples: expected a number of rows of at least 3. Got {n_samples!r}; below that "
            "log(n) - 1 is negative and the model gives no probabilities."
        )
    counts = check_numbers(
        label_counts, "label_counts", None,
        "label (np.asarray(Y.sum(axis=0)).ravel() counts those of a sparse Y)",
    )  # fmt: skip
    if np.asarray(label_counts).dtype == bool:
        raise ValueError("label_counts: expected counts. Got dtype bool.")
    bad = counts < 0
    if bad.any():
        raise ValueError(
            "label_counts: expected numbers of at least 0. Got "
            f"{counts[bad.argmax()]} for label {bad.argmax()}."
        )
    with np.errstate(all="ignore"):
        c = (np.log(float(n_samples)) - 1.0) * np.float64(b + 1.0) ** a
        found = 1.0 / (1.0 + c * (counts + b) ** -a)
    if not (found > 0).all():
        raise ValueError(
            f"A, B: {a:g} and {b:g} make propensities that float64 cannot hold. Those of the "
            "presets are from 0.5 to 0.6 and from 0.4 to 2.6."
        )
    return found


def check_preset(preset: Any) -> None:
    """Raise ValueError unless `preset` is a name in ``PRESETS``."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"preset: expected one of {sorted(PRESETS)}. Got {preset!r}.")


def _positive(name: str, value: Any) -> float:
    if not is_number(value) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}: expected a positive number. Got {value!r}.")
    return float(value)
