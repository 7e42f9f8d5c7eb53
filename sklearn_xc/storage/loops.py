"""How far the loops of a fit are, kept where it may go on after the process has ended.

A loop keeps its state under a name: after each epoch, as long as all loops together write for no
more than a share of the time; and always at its end. A fit without a folder keeps nothing.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pickle import PicklingError
from typing import Any

from sklearn_xc.parallel.ranks import ALONE, Ranks
from sklearn_xc.storage.checkpoints import Checkpoints, checkpoints_of, where_shared
from sklearn_xc.storage.packed import pack, unpack

#: The share of the time that may go into writing epochs. What ends a loop comes on top: together
#: less than a fiftieth.
SHARE = 0.012


class Loop:
    """A loop that may go on where it was; see the module.

    Parameters
    ----------
    checkpoints : Checkpoints or None
        None keeps nothing.
    name : str
        Lower-case letters, digits, dots and hyphens.
    own : collection of str
        As of ``pack``.
    together : Ranks
        Processes that train together: the first keeps states, and all go on from them.
    """

    def __init__(
        self, checkpoints: Checkpoints | None = None, name: str = "", own: Collection[str] = (),
        together: Ranks = ALONE,
    ) -> None:  # fmt: skip
        self._checkpoints, self._name, self._own = checkpoints, name, own
        self._together = together
        #: What writing took last, in seconds.
        self._took = 0.0
        #: Whether the folder holds the state of now.
        self._is_kept = False

    def get(self) -> Any:
        """Return the last state that was kept; None if there is none, or if it is damaged."""
        arrays = None if self._checkpoints is None else self._checkpoints.get(self._name)
        arrays = self._together.from_first(arrays)
        if arrays is None:
            return None
        self._is_kept = True
        return unpack(arrays, self._own)

    def put(self, state: Callable[[], Any], *, is_final: bool = False) -> None:
        """Keep what `state` returns, if it is time to; or if it is final, and not kept yet.

        Raises
        ------
        TypeError
            If it holds what cannot be kept, such as an object of a foreign class.
        OSError
            If it cannot be written; what was kept before stays.
        """
        if self._checkpoints is None:
            return
        began = time.perf_counter()
        if is_final and self._is_kept:
            return
        may_take = SHARE * (began - self._checkpoints.began) - self._checkpoints.seconds_in_loops
        if not is_final and may_take < self._took:
            self._is_kept = False
            return
        try:
            arrays = pack(state(), self._own)
        except (TypeError, AttributeError, PicklingError) as error:
            raise TypeError(
                f"{self._checkpoints.who}: checkpoint_dir cannot keep the state of this training: "
                f"{error}. Fit without checkpoint_dir."
            ) from error
        self._checkpoints.put(self._name, arrays)
        self._is_kept = True
        self._took = time.perf_counter() - began
        self._checkpoints.seconds_in_loops += self._took

    def forget(self) -> None:
        """Remove what was kept."""
        if self._checkpoints is not None:
            self._checkpoints.remove(self._name)


class Loops:
    """The loops of a fit, by name.

    Parameters
    ----------
    checkpoints : Checkpoints or None
    own : collection of str
        As of ``pack``.
    prefix : str
        What all names begin with.
    together : Ranks
        As of `Loop`.
    """

    def __init__(
        self, checkpoints: Checkpoints | None = None, own: Collection[str] = (), prefix: str = "",
        together: Ranks = ALONE,
    ) -> None:  # fmt: skip
        self._checkpoints, self._own, self._prefix = checkpoints, own, prefix
        self._together = together

    def loop(self, name: str) -> Loop:
        """Return a loop."""
        return Loop(self._checkpoints, self._prefix + name, self._own, self._together)

    def where_shared(self) -> "Loops":
        """Return these in a worker of a cluster, if it sees the folder; else some without one."""
        return Loops(where_shared(self._checkpoints), self._own, self._prefix)

    def within(self, name: str) -> "Loops":
        """Return the loops of a part of the fit."""
        prefix = f"{self._prefix}{name}-"
        return Loops(self._checkpoints, self._own, prefix, self._together)


@contextmanager
def kept_loops(
    estimator: Any,
    data: Mapping[str, Iterable[Any] | None] | None,
    seed: int,
    *,
    goes_on: bool = False,
    together: Ranks = ALONE,
) -> Iterator[tuple[Loops, int]]:
    """Open the folder ``checkpoint_dir`` of an estimator, if it has one.

    Parameters
    ----------
    estimator : estimator
    data : dict or None
        As of ``identity_of``; None keeps nothing, as where a call is no ``fit``.
    seed : int
        Which was drawn for the fit.
    goes_on : bool
        Whether it goes on from what the estimator has learnt, which counts then.
    together : Ranks
        Processes that train together; the folder is the first's.

    Yields
    ------
    loops : Loops
    seed : int
        That of the call that began the fit.

    Raises
    ------
    ValueError, OSError
        As of :func:`~sklearn_xc.storage.checkpoints.opened`.
    """
    if data is None or together.rank > 0:
        yield Loops(together=together), int(together.from_first(seed))
        return
    parts = estimator.get_params(deep=False).values()
    own = {type(part).__module__ for part in parts} - {"builtins", "numpy"}
    with checkpoints_of(estimator, data, {"seed": seed}, goes_on=goes_on) as checkpoints:
        settings = {"seed": seed} if checkpoints is None else checkpoints.settings
        seed = int(together.from_first(settings["seed"]))
        yield Loops(checkpoints, own, together=together), seed
