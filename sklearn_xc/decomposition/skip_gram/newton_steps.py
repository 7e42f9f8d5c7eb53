"""Newton steps of all vectors with a shared curvature.

The Hessian of a word's loss by its vector u is the covariance of output vectors under the word's
softmax, plus the ridge. It is approximated by the covariance under the shares of contexts in all
counts, the same for all words, in whose eigenvectors a Newton step is a division. Likewise for
output vectors, with the second moment of input vectors.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc._parallel.team import Team

#: Fraction of the mean eigenvalue added to all, as the curvature is approximate.
_DAMPING = 0.03
#: A step changes no score by more than this, for vectors of root mean square norm on the other
#: side: where the softmax of a word is narrow, the shared curvature is too small.
_MOST_CHANGE = 3.0
#: Fraction of the last step added to the next.
_MOMENTUM = 0.3
#: Rows per piece, for any number of threads.
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
        """Return vectors before their first step."""
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
        if not np.isfinite(curvature).all():  # training diverged
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
    """Call ``work(first, last)`` for pieces of n things, the same for any number of threads."""
    pieces = [(first, min(first + size, n)) for first in range(0, n, size)]

    def share(worker: int) -> None:
        for first, last in pieces[worker :: team.n_workers]:
            work(first, last)

    team.run(share)
