"""Named arrays of a network."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sklearn_xc._state.schema import Array, Attribute, Context, Tested, declares

_ONE = Array("any", ...)


def _is_layout(layout: Any, require: Any) -> bool:
    return type(layout) is dict and all(type(name) is str for name in layout)


class _ByName(Attribute):
    """Arrays in C order by name, with the dtypes and shapes of the layout."""

    def check(self, value: Any, place: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        layout = place.owner.layout
        if type(value) is not dict or value.keys() != layout.keys():
            raise place.misfit(f"a dict of the arrays {sorted(layout)}", value)
        for name, array in value.items():
            _ONE.check(array, place.within(name))
            if _layout_of(array) != layout[name]:
                raise place.within(name).misfit(str(layout[name]), _layout_of(array))


def _layout_of(array: np.ndarray) -> list[Any]:
    return [array.dtype.name, *array.shape]


@declares(layout=Tested("dtypes and shapes by name", _is_layout), arrays=_ByName())
@dataclass(frozen=True, eq=False)
class Tensors:
    """Named arrays of a network.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Of bool, or of integers or floats of numpy of at most 64 bits; of any shape.
    layout : dict of str to list
        The name of the dtype of each, and its shape.
    """

    arrays: dict[str, np.ndarray]
    layout: dict[str, list[Any]] = field(init=False)

    def __post_init__(self) -> None:
        layout = {name: _layout_of(array) for name, array in self.arrays.items()}
        object.__setattr__(self, "layout", layout)
