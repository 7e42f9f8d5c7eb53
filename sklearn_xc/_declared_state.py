"""What the attributes of a fitted estimator and of its records must be, said by their classes.

A class lists them: ``@declares(coef_=Array("real", "labels", "features"), ...)``. Lengths and
dtypes have names, and what has one name within an estimator must be equal: so arrays from a file
are checked against each other before a loop trusts them, in whichever order they are read. Where a
record calls its rows otherwise than the estimator that holds it, the estimator says so:
``Record("CsrRows", rows="labels")``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from sklearn_xc.exceptions import SavedModelError

#: A number, the name of one, or what tells either of the object whose attribute it is.
Length = Any
#: Of dtypes: those that a name stands for; of "real" all are the same within an estimator.
_DTYPES = {
    "real": ("float32", "float64"),
    "float": ("float32", "float64"),
    "count": ("float32", "float64", "int64"),
}
#: Names that stand for the same in an estimator and in its records, unless it says otherwise.
SHARED_LENGTHS = ("labels", "features", "dim", "dtype")
#: Numbers that are looked at together.
_TOGETHER = 2**20
_MISSING = object()
Kind = TypeVar("Kind", bound=type)
#: By the name of a class of scikit-learn, where it is imported from, and its attributes.
OF_OTHERS: dict[str, tuple[str, Mapping[str, Any]]] = {}


class MisfitError(SavedModelError):
    """What a file says of an attribute is not what its class declares."""


class _Name:
    """A length or dtype that several attributes share; which one, the first to be read says."""

    def __init__(self) -> None:
        self.same_as: _Name | None = None
        self.value: Any = None
        self.most = -1  # a number that must be below it, already met

    def first(self) -> "_Name":
        return self if self.same_as is None else self.same_as.first()


class Lengths:
    """The named lengths and dtypes of an estimator, or of a record in it."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}

    def _of(self, name: str) -> _Name:
        return self._names.setdefault(name, _Name()).first()

    def require(self, name: Length, value: Any) -> bool:
        """Tell whether a length may be `value`; from now on it is."""
        if isinstance(name, str) and name.endswith("+1"):
            return self.require(name[:-2], value - 1)
        if not isinstance(name, str):
            return name is None or bool(name == value)
        known = self._of(name)
        if known.value is None:
            known.value = value
        return bool(known.value == value) and (known.most < 0 or known.most < value)

    def shown(self, name: Length) -> str:
        """Return a length for a message, with its value if that is known."""
        known = self._of(name).value if isinstance(name, str) and "+" not in name else None
        return str(name) if known is None else f"{name} {known:,}"

    def require_below(self, most: int, name: Length) -> bool:
        """Tell whether a number may lead into what has this length."""
        if not isinstance(name, str):
            return name is None or most < name  # type: ignore[operator]
        known = self._of(name)
        known.most = max(known.most, most)
        return known.value is None or most < known.value

    def join(self, name: str, other: "Lengths", others: Length) -> bool:
        """Have a name stand for what `others` does in `other`; tell whether it may."""
        if not isinstance(others, str):
            return self.require(name, others)
        own, theirs = self._of(name), other._of(others)
        if own is theirs:
            return True
        own.same_as, theirs.most = theirs, max(own.most, theirs.most)
        if theirs.value is None:
            theirs.value = own.value
        return (own.value is None or own.value == theirs.value) and (
            theirs.value is None or theirs.most < 0 or theirs.most < theirs.value
        )


@dataclass(frozen=True)
class Looking:
    """Where a value was found, and what is needed to check it.

    Attributes
    ----------
    owner : object
        Whose attribute it is.
    lengths : Lengths
        Of the owner.
    lengths_of : callable
        Returns the lengths of an estimator that was read before.
    where : str
    """

    owner: Any
    lengths: Lengths
    lengths_of: Callable[[Any], Lengths]
    where: str

    def resolved(self, length: Length) -> Any:
        """Return a number, a name or None."""
        return length(self.owner) if callable(length) else length

    def misfit(self, expected: str, found: Any) -> MisfitError:
        """Return the error to raise."""
        return MisfitError(f"{self.where}: must be {expected}. Got {_short(found)}.")

    def within(self, name: str) -> "Looking":
        """Return the place of an item."""
        return Looking(self.owner, self.lengths, self.lengths_of, f"{self.where}.{name}")


class Held(ABC):
    """What an attribute may be.

    Attributes
    ----------
    optional : bool or callable
        Whether it may be None, or not be there; or what tells that of its owner.
    """

    optional: bool | Callable[[Any], bool] = False

    @abstractmethod
    def check(self, value: Any, place: Looking) -> None:
        """Raise a MisfitError unless a value is what is declared."""


class Array(Held):
    """An array in C order.

    Parameters
    ----------
    dtype : str
        Dtypes, with bars between them, or "real", "float", "count"; "any" for whatever it is.
    *shape : int, str, callable or None
        Lengths; None for any; three dots alone for any shape.
    below : int, str or callable, default=None
        Its numbers lead into what has this length: they are from 0 to one less.
    least : float, default=None
        Its numbers are no smaller, and not NaN; with `below` instead of 0.
    finite : bool or "or NaN", default=True
        Whether floats are neither NaN nor infinite; or all are finite, or all NaN.
    rises : bool, default=False
        Whether each number is above the one before it.
    optional : bool, default=False
    """

    def __init__(
        self, dtype: str, *shape: Length, below: Length = None, least: float | None = None,
        finite: bool | str = True, rises: bool = False,
        optional: bool | Callable[[Any], bool] = False,
    ) -> None:  # fmt: skip
        self.name, self.shape, self.below = dtype, shape, below
        self.least = 0 if least is None and below is not None else least
        self.dtypes = _DTYPES.get(dtype, tuple(dtype.split("|")))
        self.finite, self.rises, self.optional = finite, rises, optional

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        shape = tuple(map(place.resolved, self.shape))
        known = tuple(map(place.lengths.shown, shape))
        expected = f"an array of {' or '.join(self.dtypes)} and shape {_readable(known)}"
        if type(value) not in (np.ndarray, np.memmap):
            raise place.misfit(expected, value)
        fits = (
            (self.name == "any" or value.dtype in map(np.dtype, self.dtypes))
            and value.flags.c_contiguous
            and (
                self.shape == (...,)
                or (
                    value.ndim == len(shape)
                    and all(
                        place.lengths.require(a, b) for a, b in zip(shape, value.shape, strict=True)
                    )
                )
            )
            and (self.name != "real" or place.lengths.require("dtype", value.dtype))
        )
        if not fits:
            raise place.misfit(expected, value)
        for part in self._parts(value):
            if self.finite == "or NaN" and np.isnan(value).all():
                continue
            if self.finite and part.dtype.kind == "f" and not np.isfinite(part).all():
                raise place.misfit("finite numbers", part[~np.isfinite(part)][:1])
            if self.least is not None and not part.min() >= self.least:
                raise place.misfit(f"at least {self.least}", part.min())
            if self.below is not None:
                limit = place.resolved(self.below)
                if not place.lengths.require_below(int(part.max()), limit):
                    raise place.misfit(f"below {limit}", part.max())
        if self.rises and (value[1:] <= value[:-1]).any():
            raise place.misfit("rising", value)

    def _parts(self, value: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the numbers, some at a time, where anything is asked of them."""
        asks = self.least is not None or self.below is not None
        if asks or (self.finite and value.dtype.kind == "f"):
            flat = value.reshape(-1)
            for first in range(0, len(flat), _TOGETHER):
                yield flat[first : first + _TOGETHER]


class Number(Held):
    """A number of Python or numpy.

    Parameters
    ----------
    kind : {"int", "float", "bool"}
        An int is a float, too.
    is_length : int, str or callable, default=None
        The length that it is.
    least : float, default=None
        It is no smaller, and not NaN.
    below : int, str or callable, default=None
    optional : bool, default=False
    """

    def __init__(
        self, kind: str = "float", is_length: Length = None, *, least: float | None = None,
        below: Length = None, optional: bool | Callable[[Any], bool] = False,
    ) -> None:  # fmt: skip
        self.kind, self.is_length, self.least, self.below = kind, is_length, least, below
        self.optional = optional

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        is_bool = isinstance(value, bool | np.bool_)
        if self.kind == "bool":
            fits = is_bool
        else:
            integers = (int, np.integer)
            kinds = integers if self.kind == "int" else (*integers, float, np.floating)
            fits = isinstance(value, kinds) and not is_bool
        if not fits:
            raise place.misfit(f"a number ({self.kind})", value)
        if self.least is not None and not value >= self.least:
            raise place.misfit(f"at least {self.least}", value)
        length, limit = place.resolved(self.is_length), place.resolved(self.below)
        if not place.lengths.require(length, value):
            raise place.misfit(f"the number of {length}, as of the arrays", value)
        if limit is not None and not place.lengths.require_below(int(value), limit):
            raise place.misfit(f"below {limit}", value)


class Choice(Held):
    """One of some values."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if not any(type(value) is type(one) and value == one for one in self.values):
            raise place.misfit(f"one of {self.values}", value)


class Numbers(Held):
    """A tuple or list of numbers.

    Parameters
    ----------
    n : int, str or callable
        How many.
    """

    def __init__(self, n: Length) -> None:
        self.n = n

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        n, number = place.resolved(self.n), Number()
        if type(value) not in (tuple, list) or not place.lengths.require(n, len(value)):
            raise place.misfit(f"{n} numbers", value)
        for i, one in enumerate(value):
            number.check(one, place.within(str(i)))


class Texts(Held):
    """A list of texts.

    Parameters
    ----------
    n : int, str or callable
        How many.
    """

    def __init__(self, n: Length) -> None:
        self.n = n

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        n = place.resolved(self.n)
        are_texts = type(value) is list and all(type(one) is str for one in value)
        if not are_texts or not place.lengths.require(n, len(value)):
            raise place.misfit(f"{n} texts", value)


class Holds(Held):
    """A property that is True; `what` says what is the case then."""

    def __init__(self, what: str) -> None:
        self.what = what

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if value is not True:
            raise MisfitError(f"{place.where}: there must be {self.what}.")


class Tested(Held):
    """What a function finds in order.

    Parameters
    ----------
    what : str
        What it is then.
    test : callable
        Called as ``test(value, require)``, where ``require(name, n)`` tells whether a length may be
        n, and has it be n from now on; returns whether the value fits.
    optional : bool, default=False
    """

    def __init__(
        self, what: str, test: Callable[[Any, Callable[[str, int], bool]], bool], *,
        optional: bool = False,
    ) -> None:  # fmt: skip
        self.what, self.test, self.optional = what, test, optional

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if not self.test(value, place.lengths.require):
            raise place.misfit(self.what, value)


class Dtype(Held):
    """The dtype of arrays that are no attribute."""

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if value not in map(np.dtype, _DTYPES["real"]) or not place.lengths.require("dtype", value):
            raise place.misfit("of the dtype of the others", value)


class Shape(Held):
    """A tuple of lengths."""

    def __init__(self, *lengths: Length) -> None:
        self.lengths = lengths

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        shape = tuple(map(place.resolved, self.lengths))
        fits = (
            isinstance(value, tuple | list)
            and len(value) == len(shape)
            and all(type(n) is int and n >= 0 for n in value)
            and all(place.lengths.require(a, b) for a, b in zip(shape, value, strict=True))
        )
        if not fits:
            raise place.misfit(f"of shape {_readable(shape)}", value)


class Record(Held):
    """An object whose class declares its attributes.

    Parameters
    ----------
    *kinds : str
        Names of classes that it may be of.
    optional : bool, default=False
    lists : bool, default=False
        Whether it is a list or tuple of such objects.
    n : int, str, callable or None, default=None
        How many, in a list.
    foreign : str, default=None
        It may be of another class, which has checks of its own and this method.
    **names : str, int or callable
        By what a length is called there, what it is called here. "labels", "features", "dim" and
        the dtype are the same without a word, other names are the record's own.
    """

    def __init__(
        self, *kinds: str, optional: bool | Callable[[Any], bool] = False, lists: bool = False,
        n: Length = None, foreign: str | None = None, **names: Length,
    ) -> None:  # fmt: skip
        self.kinds, self.optional, self.lists, self.n = kinds, optional, lists, n
        self.foreign, self.names = foreign, names

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if not self.lists:
            return self._check_one(value, place)
        if type(value) not in (list, tuple):
            raise place.misfit("a list", value)
        if not place.lengths.require(place.resolved(self.n), len(value)):
            raise place.misfit(f"{place.resolved(self.n)} objects", value)
        for i, one in enumerate(value):
            self._check_one(one, place.within(str(i)))

    def _check_one(self, value: Any, place: Looking) -> None:
        name = type(value).__name__
        declares = hasattr(type(value), "_fits")
        is_foreign = not declares and self.foreign is not None and hasattr(value, self.foreign)
        if not (declares and name in self.kinds) and not is_foreign:
            raise place.misfit(" or ".join(self.kinds), value)
        if not declares:
            return
        inner, names = Lengths(), dict.fromkeys(SHARED_LENGTHS) | self.names
        for theirs, ours in names.items():
            ours = theirs if ours is None else place.resolved(ours)
            if ours is not None and not inner.join(theirs, place.lengths, ours):
                raise place.misfit(f"of as many {theirs} as the others", value)
        check_record(value, inner, place.where, place.lengths_of)


class Estimator(Held):
    """An estimator, which was checked when it was read, and may have lengths in common."""

    def __init__(
        self,
        method: str = "predict",
        *,
        lists: bool = False,
        optional: bool | Callable[[Any], bool] = False,
        **names: Length,
    ) -> None:
        self.method, self.lists, self.optional, self.names = method, lists, optional, names

    def check(self, value: Any, place: Looking) -> None:
        """See `Held`."""
        if self.lists and not isinstance(value, list | tuple | Mapping):
            raise place.misfit("a list of estimators", value)
        held: Any = [value]
        if self.lists:
            held = value.values() if isinstance(value, Mapping) else value
        for one in held:
            if isinstance(one, type) or not hasattr(one, self.method):
                raise place.misfit(f"an estimator with {self.method}", one)
            theirs = place.lengths_of(one)
            for name, length in self.names.items():
                if not theirs.join(name, place.lengths, place.resolved(length)):
                    raise place.misfit(f"of as many {name} as the others", one)


def declares(**held: Held) -> Callable[[Kind], Kind]:
    """Decorate a class with what its attributes are, beside those of its bases."""

    def decorate(kind: Kind) -> Kind:
        found: dict[str, Held] = {}
        for base in reversed(kind.__mro__):
            found |= getattr(base, "_fits", {})
        kind._fits = MappingProxyType(found | held)  # type: ignore[attr-defined]
        return kind

    return decorate


def declare_other(home: str, *names: str, **held: Held) -> None:
    """List classes of scikit-learn that a model may hold, and all attributes that they may have."""
    OF_OTHERS.update({name: (home, held) for name in names})


def declarations(kind: type) -> Mapping[str, Held]:
    """Return what a class and those that it derives from say of attributes."""
    if kind.__module__.startswith("sklearn."):
        return OF_OTHERS.get(kind.__qualname__, ("", {}))[1]
    return getattr(kind, "_fits", {})


def check_attribute(
    owner: Any, name: str, lengths: Lengths, lengths_of: Callable[[Any], Lengths], where: str,
    *value: Any,
) -> None:  # fmt: skip
    """Raise a MisfitError unless an attribute is what its class declares.

    Parameters
    ----------
    owner : object
        Whose.
    name : str
    lengths : Lengths
        Of the owner, which learn of it.
    lengths_of : callable
        Returns those of an estimator that was read before.
    where : str
        For the message.
    *value : object
        What the attribute is to be; if not given, what it is.
    """
    held = declarations(type(owner)).get(name)
    if held is None:
        return
    place = Looking(owner, lengths, lengths_of, f"{where}{'.' if where else ''}{name.strip('_')}")
    (found,) = value or (getattr(owner, name, _MISSING),)
    if (found is None or found is _MISSING) and place.resolved(held.optional):
        return
    if found is _MISSING:
        raise MisfitError(f"{place.where}: is missing.")
    held.check(found, place)


def check_record(
    record: Any, lengths: Lengths, where: str,
    lengths_of: Callable[[Any], Lengths] = lambda estimator: Lengths(),
) -> None:  # fmt: skip
    """Raise a MisfitError unless all attributes are what their class declares.

    The arguments are those of :func:`check_attribute`.
    """
    for name in declarations(type(record)):
        check_attribute(record, name, lengths, lengths_of, where)


def _readable(shape: tuple) -> str:
    return f"({', '.join('any' if n in (None, 'None') else str(n) for n in shape)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}" if value.size > 3 else repr(value)
    text = repr(value)
    return text if len(text) <= 60 else type(value).__name__
