"""What learns: an encoder of instances and labels (module M1), or classifiers (module M2)."""

from typing import Any, Protocol

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.embedding._encoding import (
    checked,
    encoded,
    first_non_finite,
    joined_inputs,
    name_of,
    require_unit_rows,
)
from sklearn_xc.encoders.protocol import Encoder
from sklearn_xc.parallel.team import Team
from sklearn_xc.solvers.adam import LazyAdam, kept_steps, resume_steps
from sklearn_xc.solvers.batch_sgd import Entries
from sklearn_xc.storage.loops import restore


class Module(Protocol):
    """What learns: it has embeddings of the instances and of the labels."""

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances and labels, (n, dim) and (m, dim)."""

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step with the gradients by what ``begin`` has returned."""

    def kept(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps between epochs."""

    def resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from what was kept, in place."""

    @property
    def moves_instances(self) -> bool:
        """Whether the instances' embeddings learn."""

    @property
    def n_labels(self) -> int:
        """Of all."""

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances, (n, dim)."""

    def last_seen(self) -> np.ndarray:
        """Return the same as they were in the last mini-batch of each, or those of now."""

    def labels(self) -> np.ndarray:
        """Return the embeddings of all labels, (n_labels, dim)."""


class SiameseModule:
    """Module M1: one encoder of instances and labels.

    Parameters
    ----------
    encoder : Encoder
        Started; learns.
    X : CsrRows of shape (n, n_features)
        Instances.
    Z : CsrRows of shape (n_labels, n_features)
        What is known of the labels.
    dim : int
        Of the embeddings.
    n_jobs : int or None
        Threads that encode.
    name : str
        The estimator's, for messages.
    keep : bool, default=False
        Whether the embeddings of instances are kept as training has seen them last, for
        ``last_seen``.
    """

    moves_instances = True

    def __init__(
        self, encoder: Encoder, X: CsrRows, Z: CsrRows, dim: int, n_jobs: int | None, name: str,
        keep: bool = False,
    ) -> None:  # fmt: skip
        self._encoder, self._X, self._Z, self._n_jobs = encoder, X, Z, n_jobs
        self._dim, self._name, self._has_learnt = dim, name, False
        self.n_labels = Z.shape[0]
        self._passed: Any = None
        self._seen: np.ndarray | None = None
        self._is_new = np.ones(X.shape[0] if keep else 0, bool)

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances and labels."""
        inputs = joined_inputs([(self._X, rows), (self._Z, labels)])
        self._passed = self._encoder.forward(inputs, rng, n_jobs=self._n_jobs)
        name, shape = f"{self._name}: {name_of(self._encoder)}", (inputs.shape[0], self._dim)
        V = getattr(self._passed, "V", None)
        V = checked(V, f"{name}: V of forward", shape, self._X.dtype)
        if not self._has_learnt and first_non_finite(V) >= 0:
            raise ValueError(f"{name} gives NaN or infinity before it has learnt anything.")
        if not self._has_learnt:
            require_unit_rows(V, f"{name}: V of forward")
        if len(self._is_new):
            self._keep(rows, V[: len(rows)])
        return V[: len(rows)], V[len(rows) :]

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step with the encoder."""
        assert by_instances is not None
        self._has_learnt = True
        gradient = np.concatenate([by_instances, by_labels])
        self._encoder.learn(self._passed, gradient, rate, n_jobs=team.n_workers)

    def kept(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps: what the encoder has learnt, and what was seen last."""
        seen = {} if self._seen is None else {"seen": self._seen}
        return {**self._encoder._kept(), **seen}  # type: ignore[attr-defined]

    def resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from what was kept, in place."""
        if len(self._is_new):
            self._seen = np.zeros((len(self._is_new), self._dim), self._X.dtype)
            restore({"seen": self._seen}, found)
            self._is_new[:] = False  # each instance is in a mini-batch of every epoch
        self._encoder._resume(found)  # type: ignore[attr-defined]
        self._has_learnt = True

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances."""
        return self._encoded(self._X)

    def last_seen(self) -> np.ndarray:
        """Return the same as training saw them last; those of now if it has not seen them all."""
        if self._seen is not None and not self._is_new.any():
            return self._seen
        return self.instances()

    def _keep(self, rows: np.ndarray, V: np.ndarray) -> None:
        if self._seen is None:
            self._seen = np.zeros((len(self._is_new), V.shape[1]), V.dtype)
        self._seen[rows], self._is_new[rows] = V, False

    def labels(self) -> np.ndarray:
        """Return the embeddings of all labels."""
        return self._encoded(self._Z)

    def _encoded(self, inputs: CsrRows) -> np.ndarray:
        return encoded(self._encoder, inputs, self._dim, inputs.dtype, self._n_jobs, self._name)


class ClassifierModule:
    """Module M2: a unit vector for each label; the instances' embeddings stay.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings of the instances.
    W : ndarray of float of shape (n_labels, dim)
        What the label vectors start at; changed in place. Rows have norm 1, or 0: then they have it
        after their first step.
    steps : LazyAdam or None
        What steps depend on besides gradients; None begins anew.
    """

    moves_instances = False

    def __init__(self, V: np.ndarray, W: np.ndarray, steps: LazyAdam | None = None) -> None:
        self._V, self._W, self.n_labels = V, W, len(W)
        self._steps = LazyAdam((W.shape[0], W.shape[1]), W.dtype) if steps is None else steps
        self._at = np.empty(0, np.int32)

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances, and label vectors."""
        self._at = labels
        return self._V[rows], self._W[labels]

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step along the sphere, and return to it."""
        m, W = len(self._at), self._W
        w = W[self._at]
        along = by_labels - np.einsum("ij,ij->i", by_labels, w)[:, None] * w
        entries = Entries(np.arange(m), np.ones(m, np.int64), self._at, np.ones(m, W.dtype))
        self._steps.step(W, entries, np.ascontiguousarray(along), rate, team)
        w = W[self._at]
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        norms[np.isinf(norms)] = np.nan  # 0 would be a label that nothing is known of
        W[self._at] = w / np.where(norms == 0, 1, norms)[:, None]

    def kept(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps."""
        return kept_steps([self._W], [self._steps])

    def resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from what was kept, in place."""
        resume_steps([self._W], [self._steps], found)

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances."""
        return self._V

    def last_seen(self) -> np.ndarray:
        """Return the same, which stay."""
        return self._V

    def labels(self) -> np.ndarray:
        """Return the vectors of all labels."""
        return self._W
