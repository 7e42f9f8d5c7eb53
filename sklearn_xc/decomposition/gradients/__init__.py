"""Gradients of a loss over label sets, with respect to the scores of a mini-batch.

::

    ExactGradient       all labels
    SampledGradient     labels drawn at random
    SearchedGradient    labels that one index finds, decomposed or plain
    MessagePassing      labels that an index of each block of columns finds, coupled by messages
         |
         | start(GradientTask)        loss, index, number of candidates
         v
    GradientMethod      build(W)      W has moved far
                        search(W, V)  -> Candidates
                        of(W, RowBatch)  -> LabelGradient
                        moved(rows)   rows of W took a step

A gradient only holds parameters; the method that it starts holds the state of one training. A new
one is a class with ``start`` and ``default_index`` that returns a subclass of ``GradientMethod``;
pass an instance, or give it a name in ``GRADIENTS``.
"""

import functools
from collections.abc import Callable
from typing import cast

from sklearn.base import clone

from sklearn_xc._input.parts import check_part
from sklearn_xc.decomposition.gradients.message_passing import MessagePassing
from sklearn_xc.decomposition.gradients.protocol import Gradient
from sklearn_xc.decomposition.gradients.scored import ExactGradient, SampledGradient
from sklearn_xc.decomposition.gradients.searched import SearchedGradient

__all__ = ["ExactGradient", "MessagePassing", "SampledGradient", "SearchedGradient"]

GRADIENTS: dict[str, Callable[..., Gradient]] = {
    "decomp_mips": SearchedGradient,
    "mips": functools.partial(SearchedGradient, default_index="spherical"),
    "sampled": SampledGradient,
    "exact": ExactGradient,
}


def make_gradient(gradient: str | Gradient, caller: str = "gradient") -> Gradient:
    """Return the gradient with a given name, or a clone of an object.

    Raises
    ------
    ValueError
        If `gradient` is neither; the message begins with `caller`.
    """
    if isinstance(gradient, str) and gradient in GRADIENTS:
        return GRADIENTS[gradient]()
    check_part(
        gradient,
        caller,
        GRADIENTS,
        ("default_index", "start"),
        "sklearn_xc.decomposition.gradients",
    )
    return cast(Gradient, clone(gradient, safe=False))
