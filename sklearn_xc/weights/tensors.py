"""Named arrays of a network."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._declared_state import Array, Held, Looking, declares
from sklearn_xc.storage.tensor_files import DTYPES

_ONE = Array("|".join(dtype.name for dtype in DTYPES), ...)


class _ByName(Held):
    """Arrays of numbers in C order, by names; floats are finite."""

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if type(value) is not dict or not all(type(name) is str for name in value):
            raise place.misfit("a dict of arrays", value)
        for name, array in value.items():
            _ONE.check(array, place.within(name))


@declares(arrays=_ByName())
@dataclass(frozen=True, eq=False)
class Tensors:
    """Named arrays of a network; in the folder of a saved model one safetensors file.

    What is opened from there are read-only views of the file, in C order. Where they are more than
    64 KiB, they are read when the attribute of the estimator that holds them is asked for.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Of bool, or of integers or floats of numpy of at most 64 bits; of any shape. Their order
        does not count, a file has its own. An array that has two names is in the file twice.
    """

    arrays: dict[str, np.ndarray]
