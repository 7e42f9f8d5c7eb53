"""Gradients by name."""

import functools
from collections.abc import Callable
from typing import cast

from sklearn.base import clone

from sklearn_xc._parts import check_part
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
    """Return the gradient with a given name, or a copy of the caller's own.

    Parameters
    ----------
    gradient : str or Gradient
        A key of ``GRADIENTS``, or an object, which is copied as `sklearn.base.clone` copies
        parameters.
    who : str, default="gradient"
        How messages name the argument, such as "DecompMIPSClassifier: gradient".

    Returns
    -------
    Gradient

    Raises
    ------
    ValueError
        If `gradient` is neither.

    Examples
    --------
    >>> from sklearn_xc.gradients import SearchedGradient, make_gradient
    >>> make_gradient("mips")
    SearchedGradient(default_index='spherical')
    >>> own = SearchedGradient(default_index="exact")
    >>> make_gradient(own), make_gradient(own) is own
    (SearchedGradient(default_index='exact'), False)
    """
    if isinstance(gradient, str) and gradient in GRADIENTS:
        return GRADIENTS[gradient]()
    attributes = ("default_index", "start")
    check_part(gradient, who, GRADIENTS, attributes, "sklearn_xc.gradients.Gradient")
    return cast(Gradient, clone(gradient, safe=False))
