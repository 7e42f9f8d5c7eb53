"""From texts and names to a fitted model, in one object."""

from sklearn_xc.text.text_classifier import TextClassifierXC

__all__ = ["TextClassifierXC"]
