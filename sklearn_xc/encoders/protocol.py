"""What an encoder is."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.parallel.team import Team


class Visit(Protocol):
    """Some inputs as an encoder sees them in training.

    What else it holds is the encoder's own.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        Their embeddings, part by part.
    """

    @property
    def V(self) -> np.ndarray:  # noqa: N802
        """Embeddings, (n, dim)."""


class Encoder(Protocol):
    """Maps inputs to unit vectors, and learns from gradients by them.

    The constructor stores parameters only; ``get_params``, ``set_params`` and ``clone`` work. What
    is learnt are attributes that ``start`` makes.

    A method ``parameter_shapes(n_features, dim)`` may be missing. It tells before ``start`` what
    will be made, as tuples of what it is, its shape, and how many there are: a fit that has not the
    memory for it is refused then.
    """

    def start(self, inputs: CsrRows, dim: int, seed: int) -> None:
        """Make initial parameters; what was learnt before is forgotten.

        Parameters
        ----------
        inputs : CsrRows of shape (n, n_features)
            Instances: their width and dtype count, and what else an encoder may want to know.
        dim : int
            Of the embeddings.
        seed : int
            Of what is random.
        """

    def encode(
        self, inputs: CsrRows, rows: np.ndarray | None = None, n_jobs: int | None = None
    ) -> np.ndarray:
        """Return embeddings.

        Parameters
        ----------
        inputs : CsrRows of shape (n_inputs, n_features)
        rows : ndarray of int of shape (n,), default=None
            Which; None is for all.
        n_jobs : int or None
            Threads, as joblib counts them.

        Returns
        -------
        ndarray of float of shape (n, dim)
            Rows of norm 1, or 0 for an input without features. The bits of each depend neither on
            the others nor on the number of threads.
        """

    def visit(self, parts: Sequence[tuple[CsrRows, np.ndarray]], rng: np.random.Generator) -> Any:
        """Return the embeddings of a mini-batch in training, as a `Visit`.

        Parameters
        ----------
        parts : sequence of tuple (CsrRows, ndarray of int)
            Inputs and which of their rows, such as instances and then labels.
        rng : numpy.random.Generator
            Draws what is random in training, such as features that are left out.
        """

    def learn(self, visit: Any, gradient: np.ndarray, rate: float, team: Team) -> None:
        """Take a step.

        Parameters
        ----------
        visit : Visit
            From ``visit`` of this encoder, which has not learnt since.
        gradient : ndarray of float of shape (n, dim)
            By ``visit.V``.
        rate : float
            Of the step.
        team : Team
            Threads, on which nothing depends.
        """
