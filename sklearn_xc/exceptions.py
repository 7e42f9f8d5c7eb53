"""The warnings and errors that sklearn_xc raises under names of its own.

Everything else is a plain ``ValueError`` or ``TypeError`` whose message names the argument, what
was expected and what was got.
"""

from sklearn.exceptions import ConvergenceWarning

from sklearn_xc.kernels.compiling.notices import KernelCacheWarning

__all__ = [
    "ConvergenceWarning",
    "DataFormatError",
    "GridEdgeWarning",
    "KernelCacheWarning",
    "MemoryBudgetError",
    "PruningWarning",
    "RecallWarning",
    "SavedModelError",
    "SmallGroupWarning",
    "UnfamiliarTextWarning",
    "UnknownLabelWarning",
    "UnseenLabelWarning",
]


class DataFormatError(ValueError):
    """A data file does not follow its format; the message names file, line and token."""


class GridEdgeWarning(UserWarning):
    """The best value of a parameter is the smallest or largest that was tried."""


class MemoryBudgetError(MemoryError):
    """The work cannot fit into memory; raised before the largest array is allocated."""


class PruningWarning(UserWarning):
    """Zeroing small weights after training cost correct answers on a sample of the instances."""


class RecallWarning(UserWarning):
    """An approximate search finds fewer of the best labels than expected."""


class SavedModelError(ValueError):
    """A folder holds no saved model, a damaged one, or one of a newer format."""


class SmallGroupWarning(UserWarning):
    """A group of labels has too few held-out rows to learn their probabilities from."""


class UnfamiliarTextWarning(UserWarning):
    """Texts to be labelled have little in common with those of the training."""


class UnknownLabelWarning(UserWarning):
    """Names of labels are not known from the fit, and are left out."""


class UnseenLabelWarning(UserWarning):
    """Labels have no training instance; they are never predicted and rank below all others."""
