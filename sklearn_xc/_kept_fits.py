"""Fits of clones inside another fit, which may go on after the process has ended.

Each clone that has a ``checkpoint_dir`` is fitted in a folder of its own within that of the outer
fit. What a clone that was trained without some rows says of these is kept, and its folder removed.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_xc._texts_with_features import TextsWithFeatures
from sklearn_xc.storage.checkpoints import (
    FITS,
    Checkpoints,
    checkpoints_of,
    data_of_any,
    where_shared,
)
from sklearn_xc.storage.loops import Loop

_NAME = "checkpoint_dir"


class KeptFits:
    """The fits of clones, by name.

    Parameters
    ----------
    checkpoints : Checkpoints or None
        Of the outer fit; None keeps nothing.
    """

    def __init__(self, checkpoints: Checkpoints | None = None) -> None:
        self._checkpoints = checkpoints

    def where_shared(self) -> "KeptFits":
        """Return these in a worker of a cluster, if it sees the folder; else some without one."""
        return KeptFits(where_shared(self._checkpoints))

    def answers(self, name: str) -> Loop:
        """Return where the answers of a clone are kept."""
        return Loop(self._checkpoints, name)

    def require_same(self, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        """Raise ValueError if other rows were held out in the call that began the fit."""
        loop, now = self.answers("folds"), [rows for fold in folds for rows in fold]
        then = loop.get()
        if then is None:
            loop.put(lambda: now, is_final=True)
        elif len(then) != len(now) or not all(map(np.array_equal, then, now)):
            assert self._checkpoints is not None
            raise ValueError(
                f"{self._checkpoints.who}: cv holds out other rows than in the call that began the "
                "fit in checkpoint_dir. Give cv a random_state, or remove the folder."
            )

    @contextmanager
    def within(self, clone: Any, name: str) -> Iterator[None]:
        """Have a clone keep its own checkpoints, inside the ``with``."""
        if self._checkpoints is None:
            yield
            return
        given = _outermost(clone)
        folder = self._checkpoints.folder / FITS
        folder.mkdir(exist_ok=True)
        clone.set_params(**{part: folder / f"{name}-{i}" for i, part in enumerate(given)})
        yield
        clone.set_params(**given)

    def forget(self, name: str) -> None:
        """Remove the checkpoints of a clone."""
        if self._checkpoints is not None and self._checkpoints.is_open:
            for path in (self._checkpoints.folder / FITS).glob(f"{name}-*"):
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def kept_fits(
    estimator: Any, X: Any, y: Any, weight: np.ndarray | None, seed: int
) -> Iterator[tuple[KeptFits, int]]:
    """Open the folder ``checkpoint_dir`` of an estimator, if it has one.

    Parameters
    ----------
    estimator : estimator
    X, y : object
        As they came.
    weight : ndarray of shape (n,) or None
    seed : int
        Which was drawn for the fit.

    Yields
    ------
    kept : KeptFits
    seed : int
        That of the call that began the fit.

    Raises
    ------
    ValueError, OSError
        As of :func:`~sklearn_xc.storage.checkpoints.opened`.
    """
    if estimator.checkpoint_dir is None:
        yield KeptFits(), seed
        return
    data = data_of_any(X.texts if isinstance(X, TextsWithFeatures) else X, y, weight)
    if isinstance(X, TextsWithFeatures):
        data["features"] = data_of_any(X.features, y, weight)["X"]
    with checkpoints_of(estimator, data, {"seed": seed}) as checkpoints:
        assert checkpoints is not None
        yield KeptFits(checkpoints), int(checkpoints.settings["seed"])


def _outermost(clone: Any) -> dict[str, Any]:
    """Return the parameters ``checkpoint_dir`` of a clone, without those of parts of these."""
    found = {
        name: value
        for name, value in clone.get_params(deep=True).items()
        if name == _NAME or name.endswith(f"__{_NAME}")
    }
    owners = {name: name.removesuffix(_NAME) for name in found}
    return {
        name: found[name]
        for name, owner in sorted(owners.items())
        if not any(owner != other and owner.startswith(other) for other in owners.values())
    }
