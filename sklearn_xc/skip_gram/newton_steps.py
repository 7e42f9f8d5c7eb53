"""Steps of vectors against a curvature that they share.

The Hessian of a word's loss by its vector u is the covariance of output vectors under the word's
softmax, plus the ridge. Most softmaxes are near the shares of contexts in all counts, and so is the
covariance to the one under these: one matrix for all words, which only the ridge tells apart. In
its eigenvectors a Newton step is a division. Likewise for output vectors, with the second moment of
input vectors.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc.parallel.team import Team

#: Share of the mean eigenvalue that is added to all: the curvature is one of many.
_DAMPING = 0.03
#: A Newton step changes no score by more than this, if the vector on the other side is no longer
#: than a root mean square. (Where the softmax of a word is narrow, as in clusters, the shared
#: curvature is too small along its own contexts. A bound on the mean change of scores, of which
#: these are few, let steps go to and fro.)
_MOST_CHANGE = 3.0
#: The share of the last step that is taken again.
_MOMENTUM = 0.3
#: Rows whose steps are one call: the same for any number of threads.
_ROWS = 4096
_TINY = 1e-12


@dataclass
class Vectors:
    """Vectors that take steps.

    Attributes
    ----------
    values : ndarray of float of shape (n, dim)
        Changed in place.
    moves : ndarray of float of shape (n, dim)
        The last step of each.
    """

    values: np.ndarray
    moves: np.ndarray

    @classmethod
    def at_rest(cls, values: np.ndarray) -> "Vectors":
        """Return vectors that have taken no step."""
        return cls(values, np.zeros_like(values))

    def step(
        self,
        gradient: np.ndarray,
        curvature: np.ndarray,
        ridge: np.ndarray,
        rate: float,
        team: Team,
    ) -> np.ndarray:
        """Take a step, and return how far each has moved, of shape (n,).

        Parameters
        ----------
        gradient : ndarray of float of shape (n, dim)
        curvature : ndarray of float64 of shape (dim, dim)
            Symmetric, with no negative eigenvalue: the Hessian of each without the ridge, and how
            scores answer to a step.
        ridge : ndarray of float64 of shape (n,)
            Added to the diagonal.
        rate : float
            The share of a Newton step that is taken.
        team : Team
        """
        dtype = self.values.dtype
        if not np.isfinite(curvature).all():  # training has diverged, of which NaN tells
            self.values.fill(np.nan)
            return np.full(len(gradient), np.nan, dtype)
        eigenvalues, Q = np.linalg.eigh(curvature)
        eigenvalues = np.maximum(eigenvalues, 0.0)
        floor = _DAMPING * eigenvalues.mean() + _TINY
        reach = np.sqrt(eigenvalues.sum())
        of_all, Q = eigenvalues.astype(dtype), Q.astype(dtype)
        lengths = np.empty(len(gradient), dtype)

        def part(first: int, last: int) -> None:
            step = gradient[first:last] @ Q
            step /= of_all + (ridge[first:last, None] + floor).astype(dtype)
            change = reach * np.sqrt(np.einsum("ij,ij->i", step, step))
            step *= (rate * np.minimum(1.0, _MOST_CHANGE / (change + _TINY)))[:, None].astype(dtype)
            moves = self.moves[first:last]
            moves *= dtype.type(_MOMENTUM)
            moves += step @ Q.T
            self.values[first:last] -= moves
            lengths[first:last] = np.sqrt(np.einsum("ij,ij->i", moves, moves))

        for_pieces(team, len(gradient), _ROWS, part)
        return lengths


def second_moments(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return those of vectors with a 1 behind, weighted: float64 of shape (dim + 1, dim + 1)."""
    dim = values.shape[1]
    moments = np.zeros((dim + 1, dim + 1))
    for first in range(0, len(values), _ROWS):
        V = np.ones((len(values[first : first + _ROWS]), dim + 1))
        V[:, :dim] = values[first : first + _ROWS]
        moments += (V * shares[first : first + _ROWS, None]).T @ V
    return moments


def for_pieces(team: Team, n: int, size: int, work: Callable[[int, int], None]) -> None:
    """Do the work for pieces of n things, the same ones for any number of threads."""
    pieces = [(first, min(first + size, n)) for first in range(0, n, size)]

    def share(worker: int) -> None:
        for first, last in pieces[worker :: team.n_workers]:
            work(first, last)

    team.run(share)
