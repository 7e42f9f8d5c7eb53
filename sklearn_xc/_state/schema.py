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
#: Whether an attribute may be None; or "missing", if it may be missing, too; or a function that
#: returns for the owner whether it may be either.
Optional = bool | str | Callable[[Any], bool]
#: Dtypes by name; arrays of "real" have the same dtype within an estimator.
_DTYPES = {
    "real": ("float32", "float64"),
    "float": ("float32", "float64"),
    "count": ("float32", "float64", "int64"),
}
#: Names that mean the same in an estimator and in its records, unless the record is declared with
#: others.
SHARED_LENGTHS = ("labels", "features", "dim", "dtype")
_MISSING = object()
Kind = TypeVar("Kind", bound=type)


class MisfitError(SavedModelError):
    """An attribute is not what its class declares."""


@dataclass
class Context:
    """The attribute being checked, and the lengths known so far.

    Attributes
    ----------
    owner : object
        Object with the attribute.
    where : str
        Name of the attribute, for messages.
    lengths : dict of str to list
        A list for each named length, which holds its value, or None while that is unknown. Records
        share lists with their owner.
    bounds : list
        Largest index, list of the length that it must be below, and context; compared at the end.
    checked : set of int
        The id of each object checked so far.
    schemas : mapping of str to mapping
        Schemas of scikit-learn's classes, by name.
    """

    owner: Any
    where: str
    lengths: dict[str, list[Any]] = field(default_factory=dict)
    bounds: list[tuple[int, list[Any], "Context"]] = field(default_factory=list)
    checked: set[int] = field(default_factory=set)
    schemas: Mapping[str, Mapping[str, "Attribute"]] = field(default_factory=dict)

    def resolved(self, length: Length) -> Any:
        """Return a number, a name or None."""
        return length(self.owner) if callable(length) else length

    def cell(self, length: Length) -> list[Any]:
        """Return the list with the value of a length."""
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
        if isinstance(found, np.ndarray) and found.size > 3:
            text = f"{found.dtype} of shape {found.shape}"
        elif len(text := repr(found)) > 60:
            text = type(found).__name__
        return MisfitError(f"{self.where}: must be {expected}. Got {text}.")

    def within(self, name: str) -> "Context":
        """Return the context of an item."""
        return replace(self, where=f"{self.where}.{name}")


class Attribute(ABC):
    """Schema of an attribute; `optional` as of `Optional`."""

    optional: Optional = False

    @abstractmethod
    def check(self, value: Any, context: Context) -> None:
        """Raise a MisfitError unless a value fits."""


class Array(Attribute):
    """An array in C order. Its numbers are read only where `least` or `below` is given.

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
    ascending : bool, default=False
        Whether the numbers strictly increase.
    optional : bool, "missing" or callable, default=False
    """

    def __init__(
        self,
        dtype: str,
        *shape: Length,
        below: Length = None,
        least: float | None = None,
        ascending: bool = False,
        optional: Optional = False,
    ) -> None:
        self.name, self.shape, self.below = dtype, shape, below
        self.least = 0 if least is None and below is not None else least
        self.dtypes = _DTYPES.get(dtype, tuple(dtype.split("|")))
        self.ascending, self.optional = ascending, optional

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        if not self._fits(value, context):
            shape = ", ".join(str(context.cell(n)[0] or context.resolved(n)) for n in self.shape)
            expected = f"an array of {' or '.join(self.dtypes)} and shape ({shape})"
            raise context.misfit(expected, value)
        if self.least is not None and value.size:
            low = value.min()
            high = value.max()
            if low < self.least:
                raise context.misfit(f"at least {self.least}", low)
            if self.below is not None:
                context.bounds.append((int(high), context.cell(self.below), context))
        if self.ascending and (value[1:] <= value[:-1]).any():
            raise context.misfit("ascending", value)

    def _fits(self, value: Any, context: Context) -> bool:
        """Return whether dtype, layout and shape fit."""
        if type(value) not in (np.ndarray, np.memmap) or not value.flags.c_contiguous:
            return False
        if self.name != "any" and value.dtype not in map(np.dtype, self.dtypes):
            return False
        if self.name == "real" and not context.require("dtype", value.dtype):
            return False
        if self.shape == (...,):
            return True
        return value.ndim == len(self.shape) and all(map(context.require, self.shape, value.shape))


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
    optional : bool, "missing" or callable, default=False
    """

    def __init__(
        self,
        kind: str = "float",
        is_length: Length = None,
        *,
        least: float | None = None,
        below: Length = None,
        optional: Optional = False,
    ) -> None:
        self.kind, self.is_length, self.least, self.below = kind, is_length, least, below
        self.optional = optional

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        is_bool = isinstance(value, bool | np.bool_)
        is_int = isinstance(value, int | np.integer) and not is_bool
        is_float = is_int or isinstance(value, float | np.floating)
        if not {"bool": is_bool, "int": is_int, "float": is_float}[self.kind]:
            raise context.misfit(f"a number ({self.kind})", value)
        if self.least is not None and not value >= self.least:
            raise context.misfit(f"at least {self.least}", value)
        if not context.require(self.is_length, value):
            raise context.misfit(f"the number of {self.is_length} of the arrays", value)
        if self.below is not None:
            context.bounds.append((int(value), context.cell(self.below), context))


class Tested(Attribute):
    """A value that passes a test.

    Parameters
    ----------
    what : str
        Description, for messages.
    test : callable
        ``test(value, require)`` returns whether the value fits; ``require(name, n)`` whether a
        length may be n.
    optional : bool, "missing" or callable, default=False
    """

    def __init__(
        self,
        what: str,
        test: Callable[[Any, Callable[[Length, Any], bool]], bool],
        *,
        optional: Optional = False,
    ) -> None:
        self.what, self.test, self.optional = what, test, optional

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        if not self.test(value, context.require):
            raise context.misfit(self.what, value)


class Choice(Tested):
    """One of some values."""

    def __init__(self, *values: Any) -> None:
        super().__init__(
            f"one of {values}",
            lambda value, _: any(type(value) is type(one) and value == one for one in values),
        )


class Holds(Tested):
    """A property that must be True; `what` is its meaning."""

    def __init__(self, what: str) -> None:
        super().__init__(f"true: {what}", lambda value, _: value is True)


class Numbers(Tested):
    """A list or tuple of `n` numbers."""

    def __init__(
        self, n: Length, what: str = "numbers", kind: Any = int | float | np.number
    ) -> None:
        def test(value: Any, require: Any) -> bool:
            fits = type(value) in (tuple, list) and require(n, len(value))
            return fits and all(isinstance(one, kind) for one in value)

        super().__init__(f"{n} {what}", test)


class Texts(Numbers):
    """A list or tuple of `n` texts."""

    def __init__(self, n: Length) -> None:
        super().__init__(n, "texts", str)


class Dtype(Tested):
    """The dtype that "real" arrays share."""

    def __init__(self) -> None:
        dtypes = [np.dtype(name) for name in _DTYPES["real"]]
        test = lambda value, require: value in dtypes and require("dtype", value)  # noqa: E731
        super().__init__("the dtype of the arrays", test)


class Shape(Tested):
    """A tuple of lengths."""

    def __init__(self, *lengths: Length) -> None:
        def test(value: Any, require: Any) -> bool:
            fits = isinstance(value, tuple | list) and len(value) == len(lengths)
            return (
                fits
                and all(type(n) is int and n >= 0 for n in value)
                and all(map(require, lengths, value))
            )

        super().__init__(f"a shape of {len(lengths)} lengths that fits the arrays", test)


class Record(Attribute):
    """An object whose class declares its attributes.

    Parameters
    ----------
    *kinds : str
        Names of its possible classes.
    optional : bool, "missing" or callable, default=False
    lists : bool, default=False
        Whether it is a list or tuple of such objects.
    n : int, str, callable or None, default=None
        Length of the list.
    foreign : str, default=None
        Objects of other classes with this method are allowed, too.
    **names : str, int or callable
        Names of lengths in the record, and what they are in its owner. Those of `SHARED_LENGTHS`
        are the same by default, other names are the record's own.
    """

    def __init__(
        self,
        *kinds: str,
        optional: Optional = False,
        lists: bool = False,
        n: Length = None,
        foreign: str | None = None,
        **names: Length,
    ) -> None:
        self.kinds, self.optional, self.lists, self.n = kinds, optional, lists, n
        self.foreign, self.names = foreign, names

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        if self.lists and (
            type(value) not in (list, tuple) or not context.require(self.n, len(value))
        ):
            raise context.misfit(f"a list of {context.resolved(self.n) or 'any number'}", value)
        for i, one in enumerate(value if self.lists else [value]):
            is_known = hasattr(type(one), "_schema")
            if is_known and type(one).__name__ in self.kinds:
                names = {name: name for name in SHARED_LENGTHS} | self.names
                _check_inner(one, context.within(str(i)) if self.lists else context, names)
            elif is_known or self.foreign is None or not hasattr(one, self.foreign):
                raise context.misfit(" or ".join(self.kinds), one)


class Estimator(Attribute):
    """A fitted estimator, or a list or dict of them, with lengths in common with its owner."""

    def __init__(
        self,
        method: str = "predict",
        *,
        lists: bool = False,
        optional: Optional = False,
        **names: Length,
    ) -> None:
        self.method, self.lists, self.optional, self.names = method, lists, optional, names

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        if self.lists and not isinstance(value, list | tuple | Mapping):
            raise context.misfit("a list of estimators", value)
        several = value.values() if isinstance(value, Mapping) else value
        for one in several if self.lists else [value]:
            if isinstance(one, type) or not hasattr(one, self.method):
                raise context.misfit(f"an estimator with {self.method}", one)
            _check_inner(one, context, self.names)


def declares(**attributes: Attribute) -> Callable[[Kind], Kind]:
    """Decorate a class with the schema of its attributes; those of its bases are added."""

    def decorate(kind: Kind) -> Kind:
        found: dict[str, Attribute] = {}
        for base in reversed(kind.__mro__):
            found |= getattr(base, "_schema", {})
        kind._schema = found | attributes  # type: ignore[attr-defined]
        return kind

    return decorate


def schema_of(kind: type) -> Mapping[str, Attribute]:
    """Return the schema that a class declares."""
    return getattr(kind, "_schema", {})


def check_attributes(
    owner: Any,
    where: str,
    *,
    checked: set[int] | None = None,
    schemas: Mapping[str, Mapping[str, Attribute]] | None = None,
    **lengths: int,
) -> None:
    """Raise a MisfitError unless all attributes, and those of objects in them, fit the schema.

    Parameters
    ----------
    owner : object
    where : str
        Beginning of messages.
    checked : set of int, default=None
        Filled with the id of each object that was checked.
    schemas : mapping of str to mapping, default=None
        Schemas of scikit-learn's classes, by name.
    **lengths : int
        Lengths that are known.
    """
    context = Context(owner, where, {name: [value] for name, value in lengths.items()})
    context.checked = context.checked if checked is None else checked
    context.schemas = schemas or {}
    _check(context)
    for largest, cell, at in context.bounds:
        if cell[0] is not None and not largest < cell[0]:
            raise at.misfit(f"below {cell[0]:,}", largest)


def _check_inner(inner: Any, context: Context, names: Mapping[str, Length]) -> None:
    """Check an object that shares lengths with its owner."""
    cells = {theirs: context.cell(ours) for theirs, ours in names.items()}
    _check(replace(context, owner=inner, lengths=cells))


def _check(context: Context) -> None:
    owner = context.owner
    prefix = f"{context.where}{'.' if context.where else ''}"
    context.checked.add(id(owner))
    kind = type(owner)
    is_foreign = kind.__module__.startswith("sklearn.")
    schema = context.schemas.get(kind.__qualname__, {}) if is_foreign else schema_of(kind)
    for name, attribute in schema.items():
        at = replace(context, where=f"{prefix}{name.strip('_')}")
        value = getattr(owner, name, _MISSING)
        is_missing, optional = value is _MISSING, attribute.optional
        if (value is None or (is_missing and optional is not True)) and at.resolved(optional):
            continue
        if is_missing:
            raise MisfitError(f"{at.where}: is missing.")
        attribute.check(value, at)
