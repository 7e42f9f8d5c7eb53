"""Gradients by name."""

import functools
from collections.abc import Callable

from sklearn_xc.gradients.exact import ExactGradient
from sklearn_xc.gradients.protocol import Gradient
from sklearn_xc.gradients.sampled import SampledGradient
from sklearn_xc.gradients.searched import SearchedGradient

GRADIENTS: dict[str, Callable[..., Gradient]] = {
    "decomp_mips": SearchedGradient,
    "mips": functools.partial(SearchedGradient, default_index="spherical"),
    "sampled": SampledGradient,
    "exact": ExactGradient,
}


def make_gradient(gradient: str | Gradient, who: str = "gradient") -> Gradient:
    """Return the gradient of a name, or the caller's own.

    Parameters
    ----------
    gradient : str or Gradient
        A key of ``GRADIENTS``, or an object.
    who : str, default="gradient"
        How messages name the argument, such as "DecompMIPSClassifier: gradient".

    Raises
    ------
    ValueError
        If `gradient` is neither.
    """
    if isinstance(gradient, str) and gradient in GRADIENTS:
        return GRADIENTS[gradient]()
    if isinstance(gradient, type) or not isinstance(gradient, Gradient):
        names = ", ".join(map(repr, GRADIENTS))
        raise ValueError(
            f"{who} must be one of {names}, or an instance with default_index and the method start "
            f"(see sklearn_xc.gradients.Gradient). Got {gradient!r}."
        )
    return gradient
