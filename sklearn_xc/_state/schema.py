"""Schemas of fitted attributes: declared at each class, checked on load and after assignments.

``@declares(coef_=Array("real", "labels", "features"), ...)`` lists the attributes of a class.
Lengths have names, and what has one name within an estimator must be equal, so that compiled loops
may trust the arrays. A record that names its rows otherwise than the estimator that holds it is
declared as ``Record("CsrRows", rows="labels")``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from sklearn_xc.exceptions import SavedModelError

#: A number, its name, None for any, or a function that returns one of these for the owner.
Length = Any
#: Dtypes by name; arrays of "real" have the same dtype within an estimator.
_DTYPES = {
    "real": ("float32", "float64"),
    "float": ("float32", "float64"),
    "count": ("float32", "float64", "int64"),
}
#: Names that mean the same in an estimator and in its records, unless it says otherwise.
SHARED_LENGTHS = ("labels", "features", "dim", "dtype")
_MISSING = object()
Kind = TypeVar("Kind", bound=type)
#: Attributes of classes of scikit-learn, by full name; see ``storage/scikit_learn.py``.
OF_OTHERS: dict[str, Mapping[str, Any]] = {}


class MisfitError(SavedModelError):
    """An attribute is not what its class declares."""


@dataclass
class Place:
    """The attribute being checked, and the lengths known so far.

    Attributes
    ----------
    owner : object
        Object with the attribute.
    where : str
        Name of the attribute, for messages.
    lengths : dict of str to list
        A cell for each named length: a list of its value, None while that is not known. Records
        share cells with their owner.
    reads_floats : bool
        Whether all floats are read, to refuse NaN and infinity. They cannot lead a loop astray.
    bounds : list
        Largest index, cell of the length that it must be below, and place; compared at the end.
    checked : set of int
        The id of each object checked so far.
    """

    owner: Any
    where: str
    lengths: dict[str, list[Any]] = field(default_factory=dict)
    reads_floats: bool = True
    bounds: list[tuple[int, list[Any], "Place"]] = field(default_factory=list)
    checked: set[int] = field(default_factory=set)

    def resolved(self, length: Length) -> Any:
        """Return a number, a name or None."""
        return length(self.owner) if callable(length) else length

    def cell(self, length: Length) -> list[Any]:
        """Return the cell of a length."""
        length = self.resolved(length)
        return self.lengths.setdefault(length, [None]) if isinstance(length, str) else [length]

    def require(self, length: Length, value: Any) -> bool:
        """Return whether a length may have this value; the first value of a name is kept."""
        length = self.resolved(length)
        if isinstance(length, str) and length.endswith("+1"):
            length, value = length[:-2], value - 1
        cell = self.cell(length)
        if cell[0] is None:
            cell[0] = value
            return True
        return bool(cell[0] == value)

    def misfit(self, expected: str, found: Any) -> MisfitError:
        """Return the error to raise."""
        return MisfitError(f"{self.where}: must be {expected}. Got {_short(found)}.")

    def within(self, name: str) -> "Place":
        """Return the place of an item."""
        return replace(self, where=f"{self.where}.{name}")


class Attribute(ABC):
    """Schema of an attribute.

    Attributes
    ----------
    optional : bool or callable
        Whether it may be None or missing; or a function that returns this for its owner.
    """

    optional: bool | Callable[[Any], bool] = False

    @abstractmethod
    def check(self, value: Any, place: Place) -> None:
        """Raise a MisfitError unless a value fits."""


class Array(Attribute):
    """An array in C order.

    Parameters
    ----------
    dtype : str
        Dtypes, with bars between them, or "real", "float", "count", "any".
    *shape : int, str, callable or None
        Lengths; three dots alone for any shape.
    below : int, str or callable, default=None
        Numbers are indices into an axis of this length, from 0.
    least : float, default=None
        Smallest number; with `below` instead of 0.
    finite : bool or "or NaN", default=True
        Whether NaN and infinity are refused; or allowed only if all are NaN.
    rises : bool, default=False
        Whether the numbers strictly increase.
    optional : bool or callable, default=False
    """

    def __init__(
        self,
        dtype: str,
        *shape: Length,
        below: Length = None,
        least: float | None = None,
        finite: bool | str = True,
        rises: bool = False,
        optional: bool | Callable[[Any], bool] = False,
    ) -> None:
        self.name, self.shape, self.below = dtype, shape, below
        self.least = 0 if least is None and below is not None else least
        self.dtypes = _DTYPES.get(dtype, tuple(dtype.split("|")))
        self.finite, self.rises, self.optional = finite, rises, optional

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if not self._fits(value, place):
            shape = ", ".join(str(place.cell(n)[0] or place.resolved(n)) for n in self.shape)
            raise place.misfit(f"an array of {' or '.join(self.dtypes)} and shape ({shape})", value)
        is_float = value.dtype.kind == "f"
        is_read = place.reads_floats if is_float else self.least is not None
        if is_read and value.size and not (self.finite == "or NaN" and np.isnan(value).all()):
            low, high = value.min(), value.max()
            if is_float and self.finite and not np.isfinite([low, high]).all():
                raise place.misfit("finite numbers", value)
            if self.least is not None and not low >= self.least:
                raise place.misfit(f"at least {self.least}", low)
            if self.below is not None:
                place.bounds.append((int(high), place.cell(self.below), place))
        if self.rises and (value[1:] <= value[:-1]).any():
            raise place.misfit("rising", value)

    def _fits(self, value: Any, place: Place) -> bool:
        """Return whether dtype, layout and shape fit."""
        if type(value) not in (np.ndarray, np.memmap) or not value.flags.c_contiguous:
            return False
        if self.name != "any" and value.dtype not in map(np.dtype, self.dtypes):
            return False
        if self.name == "real" and not place.require("dtype", value.dtype):
            return False
        if self.shape == (...,):
            return True
        return value.ndim == len(self.shape) and all(map(place.require, self.shape, value.shape))


class Number(Attribute):
    """A number of Python or numpy.

    Parameters
    ----------
    kind : {"int", "float", "bool"}, default="float"
        An int is a float, too.
    is_length : int, str or callable, default=None
        Length that it equals.
    least : float, default=None
        Smallest value.
    below : int, str or callable, default=None
        Length that it is below.
    optional : bool or callable, default=False
    """

    def __init__(
        self,
        kind: str = "float",
        is_length: Length = None,
        *,
        least: float | None = None,
        below: Length = None,
        optional: bool | Callable[[Any], bool] = False,
    ) -> None:
        self.kind, self.is_length, self.least, self.below = kind, is_length, least, below
        self.optional = optional

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        is_bool = isinstance(value, bool | np.bool_)
        is_int = isinstance(value, int | np.integer) and not is_bool
        is_float = is_int or isinstance(value, float | np.floating)
        if not {"bool": is_bool, "int": is_int, "float": is_float}[self.kind]:
            raise place.misfit(f"a number ({self.kind})", value)
        if self.least is not None and not value >= self.least:
            raise place.misfit(f"at least {self.least}", value)
        if not place.require(self.is_length, value):
            raise place.misfit(f"the number of {self.is_length}, as of the arrays", value)
        if self.below is not None:
            place.bounds.append((int(value), place.cell(self.below), place))


class Choice(Attribute):
    """One of some values."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if not any(type(value) is type(one) and value == one for one in self.values):
            raise place.misfit(f"one of {self.values}", value)


class Tested(Attribute):
    """A value that passes a test.

    Parameters
    ----------
    what : str
        Description, for messages.
    test : callable
        ``test(value, require)`` returns whether the value fits; ``require(name, n)`` whether a
        length may be n.
    optional : bool or callable, default=False
    """

    def __init__(
        self,
        what: str,
        test: Callable[[Any, Callable[[str, int], bool]], bool],
        *,
        optional: bool | Callable[[Any], bool] = False,
    ) -> None:
        self.what, self.test, self.optional = what, test, optional

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if not self.test(value, place.require):
            raise place.misfit(self.what, value)


class Holds(Attribute):
    """A property that must be True; `what` says what is required."""

    def __init__(self, what: str) -> None:
        self.what = what

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if value is not True:
            raise MisfitError(f"{place.where}: there must be {self.what}.")


class Numbers(Attribute):
    """A list or tuple of `n` numbers."""

    what, types = "numbers", (int, float, np.integer, np.floating)

    def __init__(self, n: Length) -> None:
        self.n = n

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        fits = type(value) in (tuple, list) and place.require(self.n, len(value))
        if not fits or not all(isinstance(one, self.types) for one in value):
            raise place.misfit(f"{place.resolved(self.n)} {self.what}", value)


class Texts(Numbers):
    """A list or tuple of `n` texts."""

    what, types = "texts", (str,)


class Dtype(Attribute):
    """The dtype that "real" arrays share."""

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if value not in map(np.dtype, _DTYPES["real"]) or not place.require("dtype", value):
            raise place.misfit("of the dtype of the others", value)


class Shape(Attribute):
    """A tuple of lengths."""

    def __init__(self, *lengths: Length) -> None:
        self.lengths = lengths

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        fits = isinstance(value, tuple | list) and all(type(n) is int and n >= 0 for n in value)
        if not fits or len(value) != len(self.lengths):
            raise place.misfit(f"a shape of {len(self.lengths)} lengths", value)
        if not all(map(place.require, self.lengths, value)):
            raise place.misfit("a shape that fits the arrays", value)


class Record(Attribute):
    """An object whose class declares its attributes.

    Parameters
    ----------
    *kinds : str
        Names of its possible classes.
    optional : bool or callable, default=False
    lists : bool, default=False
        Whether it is a list or tuple of such objects.
    n : int, str, callable or None, default=None
        Length of the list.
    foreign : str, default=None
        Objects of other classes with this method are allowed, too.
    **names : str, int or callable
        Names of lengths in the record, and what they are in its owner. "labels", "features", "dim"
        and the dtype are shared by default, other names are the record's own.
    """

    def __init__(
        self,
        *kinds: str,
        optional: bool | Callable[[Any], bool] = False,
        lists: bool = False,
        n: Length = None,
        foreign: str | None = None,
        **names: Length,
    ) -> None:
        self.kinds, self.optional, self.lists, self.n = kinds, optional, lists, n
        self.foreign, self.names = foreign, names

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if self.lists and type(value) not in (list, tuple):
            raise place.misfit("a list", value)
        if self.lists and not place.require(self.n, len(value)):
            raise place.misfit(f"{place.resolved(self.n)} objects", value)
        for i, one in enumerate(value if self.lists else [value]):
            is_known = hasattr(type(one), "_schema")
            if is_known and type(one).__name__ in self.kinds:
                names = {name: name for name in SHARED_LENGTHS} | self.names
                _check_inner(one, place.within(str(i)) if self.lists else place, names)
            elif is_known or self.foreign is None or not hasattr(one, self.foreign):
                raise place.misfit(" or ".join(self.kinds), one)


class Estimator(Attribute):
    """A fitted estimator, or a list or dict of them, with lengths in common with its owner."""

    def __init__(
        self,
        method: str = "predict",
        *,
        lists: bool = False,
        optional: bool | Callable[[Any], bool] = False,
        **names: Length,
    ) -> None:
        self.method, self.lists, self.optional, self.names = method, lists, optional, names

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        if self.lists and not isinstance(value, list | tuple | Mapping):
            raise place.misfit("a list of estimators", value)
        several = value.values() if isinstance(value, Mapping) else value
        for one in several if self.lists else [value]:
            if isinstance(one, type) or not hasattr(one, self.method):
                raise place.misfit(f"an estimator with {self.method}", one)
            _check_inner(one, place, self.names)


def declares(**attributes: Attribute) -> Callable[[Kind], Kind]:
    """Decorate a class with the schema of its attributes; those of its bases are added."""

    def decorate(kind: Kind) -> Kind:
        found: dict[str, Attribute] = {}
        for base in reversed(kind.__mro__):
            found |= getattr(base, "_schema", {})
        kind._schema = found | attributes  # type: ignore[attr-defined]
        return kind

    return decorate


def declarations(kind: type) -> Mapping[str, Attribute]:
    """Return the schema of a class."""
    if kind.__module__.startswith("sklearn."):
        return OF_OTHERS.get(kind.__qualname__, {})
    return getattr(kind, "_schema", {})


def check_attributes(
    owner: Any,
    where: str,
    *,
    reads_floats: bool = True,
    checked: set[int] | None = None,
    **lengths: int,
) -> None:
    """Raise a MisfitError unless all attributes, and those of objects in them, fit the schema.

    Parameters
    ----------
    owner : object
    where : str
        Beginning of messages.
    reads_floats : bool, default=True
        See `Place`.
    checked : set of int, default=None
        Filled with the id of each object that was checked.
    **lengths : int
        Lengths that are known.
    """
    place = Place(owner, where, reads_floats=reads_floats)
    place.checked = place.checked if checked is None else checked
    place.lengths.update({name: [value] for name, value in lengths.items()})
    _check(place)
    for largest, cell, at in place.bounds:
        if cell[0] is not None and not largest < cell[0]:
            raise at.misfit(f"below {cell[0]:,}", largest)


def _check_inner(inner: Any, place: Place, names: Mapping[str, Length]) -> None:
    """Check an object that shares lengths with its owner."""
    cells = {theirs: place.cell(ours) for theirs, ours in names.items()}
    _check(replace(place, owner=inner, lengths=cells))


def _check(place: Place) -> None:
    owner, prefix = place.owner, f"{place.where}{'.' if place.where else ''}"
    place.checked.add(id(owner))
    for name, attribute in declarations(type(owner)).items():
        at = replace(place, where=f"{prefix}{name.strip('_')}")
        value = getattr(owner, name, _MISSING)
        if (value is None or value is _MISSING) and at.resolved(attribute.optional):
            continue
        if value is _MISSING:
            raise MisfitError(f"{at.where}: is missing.")
        attribute.check(value, at)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}" if value.size > 3 else repr(value)
    text = repr(value)
    return text if len(text) <= 60 else type(value).__name__
