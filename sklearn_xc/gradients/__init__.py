"""Ways to the gradient of a loss over label sets, by the scores of a mini-batch.

::

    ExactGradient       all labels
    SampledGradient     labels drawn at random
    SearchedGradient    labels that one index finds, decomposed or plain
    MessagePassing      labels that an index of each block of columns finds; messages couple them
         |
         | start(GradientTask)        loss, index, how many candidates
         v
    GradientMethod      build(W)      W has moved far
                        search(W, V)  -> Candidates
                        of(W, Batch)  -> LabelGradient
                        moved(rows)   some rows of W took a step

A gradient holds parameters and never changes; the method that it starts holds what moves. To add
one, write a class with ``start`` and ``default_index``, and a subclass of ``GradientMethod``, of
which ``of`` alone must be written. An instance can be passed as a parameter; one with a line in
``GRADIENTS`` (``registry.py``) has a name.
"""

from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.gradients.exact import ExactGradient
from sklearn_xc.gradients.message_passing import MessagePassing
from sklearn_xc.gradients.protocol import Gradient, GradientMethod, GradientTask
from sklearn_xc.gradients.registry import GRADIENTS, make_gradient
from sklearn_xc.gradients.sampled import SampledGradient
from sklearn_xc.gradients.searched import SearchedGradient
from sklearn_xc.gradients.set_loss import SetLoss

__all__ = [
    "GRADIENTS",
    "Batch",
    "ExactGradient",
    "Gradient",
    "GradientMethod",
    "GradientTask",
    "LabelGradient",
    "MessagePassing",
    "SampledGradient",
    "SearchedGradient",
    "SetLoss",
    "make_gradient",
]
