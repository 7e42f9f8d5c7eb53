"""Named arrays of a network."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._state.schema import Array, Attribute, Context, declares

_ONE = Array("any", ...)


class _ByName(Attribute):
    """Arrays of numbers in C order, by names; floats are finite."""

    def check(self, value: Any, place: Context) -> None:
        """See `Attribute`."""
        if type(value) is not dict or not all(type(name) is str for name in value):
            raise place.misfit("a dict of arrays", value)
        for name, array in value.items():
            _ONE.check(array, place.within(name))


@declares(arrays=_ByName())
@dataclass(frozen=True, eq=False)
class Tensors:
    """Named arrays of a network.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Of bool, or of integers or floats of numpy of at most 64 bits; of any shape.
    """

    arrays: dict[str, np.ndarray]
