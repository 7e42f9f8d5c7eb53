"""One warning of pruning for all fits inside another one.

The folds of a calibration, the members of a stack: each fit prunes, and would warn of it in figures
of its own. Whoever fits clones gathers what these have to say, and says it once; where it is itself
fitted inside another estimator, that one does.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from sklearn_xc.exceptions import PruningWarning


class PruningNote(NamedTuple):
    """That pruning cost correct answers.

    Attributes
    ----------
    text : str
        A message for the user.
    fall : float
        How much the worst metric fell.
    n_fits : int
        In how many fits, of which `text` is about the worst.
    """

    text: str
    fall: float
    n_fits: int = 1


class PruningNotes:
    """What fits inside another one have to say, from any thread."""

    def __init__(self) -> None:
        self.found: list[PruningNote] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Take up what is told in this thread, inside the ``with``."""
        token = _GATHERING.set(self)
        try:
            yield
        finally:
            _GATHERING.reset(token)

    def tell(self, who: str, stacklevel: int) -> None:
        """Tell the worst of the notes and their number, as those of the fit of `who`."""
        if not self.found:
            return
        worst = max(self.found, key=lambda note: note.fall)
        n_fits = sum(note.n_fits for note in self.found)
        own = worst.text.rsplit(_WORST, 1)[-1]
        text = own if n_fits == 1 else f"{who}: {n_fits} fits lost by pruning{_WORST}{own}"
        tell_pruning(PruningNote(text, worst.fall, n_fits), stacklevel + 1)


#: Between the number of fits and the worst of them.
_WORST = ". The worst: "
#: Who gathers what fits in this thread have to say; None warns at once.
_GATHERING: ContextVar[PruningNotes | None] = ContextVar("pruning notes", default=None)


def tell_pruning(note: PruningNote, stacklevel: int) -> None:
    """Warn, or leave that to the estimator that this fit is a part of."""
    gathering = _GATHERING.get()
    if gathering is None:
        warnings.warn(note.text, PruningWarning, stacklevel=stacklevel + 1)
    else:
        gathering.found.append(note)
