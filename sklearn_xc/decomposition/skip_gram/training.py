"""Alternating steps of output and input vectors, each along the gradient over all words.

For each mini-batch of words::

    words -> V -> contexts that may matter                               gradients
               -> a sample of the others                                 collapsed_softmax
               -> gradient by the scores                                 collapsed_softmax
    output: -> added to the gradient by the output vectors
    input:  -> gradient by V, of each word
               -> Newton steps with a shared curvature

The loss of a word is divided by how often it occurs, and likewise the gradient of a context: rare
words take as long a step as frequent ones. (The Hessian by the output vectors is at most block
diagonal, with blocks that are proportional to how often a context is expected, as the covariance of
the softmax is at most the diagonal of its probabilities.)

The Hessian of a word's loss by its vector u is the covariance of output vectors under the word's
softmax, plus the ridge. It is approximated by the covariance under the shares of contexts in all
counts, the same for all words, in whose eigenvectors a Newton step is a division. Likewise for
output vectors, with the second moment of input vectors.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import Team
from sklearn_xc._training.kernels.row_moves import add_rows
from sklearn_xc.decomposition.gradients import ExactGradient, SampledGradient
from sklearn_xc.decomposition.gradients.protocol import (
    Gradient,
    GradientMethod,
    LabelGradient,
    share_instances,
)
from sklearn_xc.decomposition.moving_rows import with_intercepts
from sklearn_xc.decomposition.skip_gram.collapsed_softmax import (
    CollapsedSoftmax,
    ContextSampler,
    Reference,
    WordBatch,
)
from sklearn_xc.decomposition.skip_gram.cooccurrence import Cooccurrences
from sklearn_xc.decomposition.skip_gram.kernels.collapsed_softmax import (
    add_outer_products,
    gradient_of_all,
)
from sklearn_xc.search.protocol import Candidates

#: Words of a mini-batch, and the scores that it may have in all where all contexts are scored.
WORDS = 128
SCORES = 2**23
#: Contexts, words and columns per chunk of a product, whatever the number of threads.
_CHUNK_CONTEXTS, _CHUNK_WORDS, _CHUNK_COLUMNS = 4096, 32, 16
#: Contexts per word that the second step of an iteration reuses from the first.
MOST_KEPT = 256
#: The norm of random input vectors, and of output vectors.
_NORM, _OUTPUT_NORM = 0.5, 0.01
#: The learning rate of iteration t, from 0, is divided by 1 plus this times t.
_DECAY = 0.1
#: Fraction of the mean eigenvalue added to all, as the curvature is approximate.
_DAMPING = 0.03
#: A step changes no score by more than this, for vectors of root mean square norm on the other
#: side: where the softmax of a word is narrow, the shared curvature is too small.
_MOST_CHANGE = 3.0
#: Fraction of the last step added to the next.
_MOMENTUM = 0.3
#: Rows per chunk, whatever the number of threads.
_CHUNK_ROWS = 4096
_TINY = 1e-12


def random_start(counts: Cooccurrences, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return input vectors and output vectors, float32, the latter with intercepts.

    An intercept is the logarithm of the context's share of all counts: each word starts with
    the mean over all words.
    """
    rng = np.random.default_rng((seed, 0))
    n, n_contexts = counts.shape
    U = rng.standard_normal((n, dim), np.float32) * np.float32(_NORM / np.sqrt(dim))
    U[counts.word_totals == 0] = 0
    W = np.empty((n_contexts, dim + 1), np.float32)
    W[:, :-1] = rng.standard_normal((len(W), dim), np.float32)
    W[:, :-1] *= np.float32(_OUTPUT_NORM / np.sqrt(dim))
    W[:, -1] = counts.log_shares
    return U, W


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

    def __post_init__(self) -> None:
        self.moves = np.zeros_like(self.values)

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

        for_chunks(team, len(gradient), _CHUNK_ROWS, part)
        return lengths


def second_moments(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the weighted second moments of vectors with a 1 appended, (dim + 1, dim + 1)."""
    dim = values.shape[1]
    moments = np.zeros((dim + 1, dim + 1))
    for first in range(0, len(values), _CHUNK_ROWS):
        V = np.ones((len(values[first : first + _CHUNK_ROWS]), dim + 1))
        V[:, :dim] = values[first : first + _CHUNK_ROWS]
        moments += (V * shares[first : first + _CHUNK_ROWS, None]).T @ V
    return moments


def for_chunks(team: Team, n: int, size: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(first, last)`` for chunks of n items, the same for any number of threads."""
    chunks = [(first, min(first + size, n)) for first in range(0, n, size)]

    def share(worker: int) -> None:
        for first, last in chunks[worker :: team.n_workers]:
            work(first, last)

    team.run(share)


@dataclass
class Training:
    """Input and output vectors that take steps.

    Attributes
    ----------
    counts : Cooccurrences
    inputs : Vectors of shape (n_words, dim)
    outputs : Vectors of shape (n_contexts, dim + 1)
        With an intercept in the last column.
    method : GradientMethod or None
        Of a ``CollapsedSoftmax``; None scores all contexts.
    sampler : ContextSampler
    rate : float
        Learning rate.
    ridge : float
        Half of it times the squared norms of all vectors is added to the loss over all pairs.
    seed : int
    n_workers : int
    n_iter : int
        Iterations so far.
    """

    counts: Cooccurrences
    inputs: Vectors
    outputs: Vectors
    method: GradientMethod | None
    sampler: ContextSampler
    rate: float
    ridge: float
    seed: int
    n_workers: int
    n_iter: int = 0

    def __post_init__(self) -> None:
        self.log_shares = self.counts.log_shares
        self._kept: list[Candidates] = []

    def is_finite(self) -> bool:
        """Return whether all vectors are finite."""
        return all(np.isfinite(one.values).all() for one in (self.inputs, self.outputs))

    def loss(self) -> float:
        """Return the loss for each pair, over the contexts that the gradient considers."""
        self._build()
        with Team(self.n_workers) as team:
            reference = Reference(self.outputs.values, self.log_shares)
            weight = np.ones(len(self.inputs.values))
            batches = self._batches(team, 0, weight, reference)
            total = sum(
                float(self.counts.word_totals[words] @ losses) for words, *_, losses in batches
            )
        return total / self.counts.total

    def _build(self) -> None:
        if self.method is not None:
            self.method.build(self.outputs.values)

    def iterate(self) -> tuple[float, float]:
        """Take a step of the output vectors and one of the input vectors.

        Returns
        -------
        loss : float
            For each pair of a word and a context, as seen before the first step.
        seconds : float
        """
        began = time.perf_counter()
        self._build()
        rate = self.rate / (1 + _DECAY * self.n_iter)
        with Team(self.n_workers) as team, np.errstate(over="ignore", invalid="ignore"):
            loss, lengths = self.step_outputs(rate, team)
            self.step_inputs(rate, team)
        if self.method is not None:
            self.method.moved(np.arange(len(lengths), dtype=np.int32), lengths)
        self.n_iter += 1
        return loss, time.perf_counter() - began

    def step_outputs(self, rate: float, team: Team) -> tuple[float, np.ndarray]:
        """Take a step of the output vectors; return the loss before, and how far each has moved."""
        gradient, loss = self.output_gradient(team)
        shares = self.counts.word_totals / self.counts.total
        curvature = second_moments(self.inputs.values, shares)
        ridge = self.ridge / np.maximum(self.counts.context_totals, 1.0)
        return loss, self.outputs.step(gradient, curvature, ridge, rate, team)

    def step_inputs(self, rate: float, team: Team) -> None:
        """Take a step of the input vectors."""
        gradient, reference = self.input_gradient(team)
        ridge = self.ridge / np.maximum(self.counts.word_totals, 1.0)
        self.inputs.step(gradient, reference.covariance(), ridge, rate, team)

    def output_gradient(self, team: Team) -> tuple[np.ndarray, float]:
        """Return the gradient of the summed loss by each output vector, over its context's count.

        With it comes the loss for each pair.
        """
        counts, W = self.counts, self.outputs.values
        G = np.zeros_like(W)
        loss = 0.0
        reference = Reference(W, self.log_shares)
        self._kept = []
        for _, batch, found, losses in self._batches(team, 0, counts.word_totals, reference):
            self._add_by_outputs(G, batch, found, team)
            if self.method is not None:
                reference.add(batch)
            loss += float(losses.sum())
        if self.method is not None:
            G += reference.by_outputs()
        n = np.maximum(counts.context_totals, 1.0).astype(W.dtype)
        G /= n[:, None]
        if self.ridge:
            G[:, :-1] += W.dtype.type(self.ridge) * W[:, :-1] / n[:, None]
        return G, loss / counts.total

    def input_gradient(self, team: Team) -> tuple[np.ndarray, Reference]:
        """Return the gradient of each word's own loss by its vector, and the reference.

        To be called after ``output_gradient``, whose contexts it reuses.
        """
        counts, U = self.counts, self.inputs.values
        gradient = np.zeros_like(U)
        reference = Reference(self.outputs.values, self.log_shares)
        for words, batch, found, _ in self._batches(team, 1, np.ones(len(U)), reference):
            by_inputs = self._gradient_by_inputs(batch, found, team)
            if self.method is not None:
                by_inputs += reference.by_inputs(batch)
            gradient[words] = by_inputs[:, : U.shape[1]]
        if self.ridge:
            n = np.maximum(counts.word_totals, 1.0).astype(U.dtype)
            gradient += U.dtype.type(self.ridge) * U / n[:, None]
        return gradient, reference

    def _batches(
        self, team: Team, phase: int, weight: np.ndarray, reference: Reference
    ) -> Iterator[tuple[np.ndarray, WordBatch, LabelGradient | np.ndarray, np.ndarray]]:
        """Yield words that have contexts, their batch, the gradient by their scores, and losses.

        The gradient is dense, (n, n_contexts), where all contexts are scored.
        """
        counts, W = self.counts, self.outputs.values
        words = np.flatnonzero(counts.word_totals > 0)
        size = WORDS if self.method is not None else max(1, min(WORDS, SCORES // len(W)))
        for number, first in enumerate(range(0, len(words), size)):
            some = words[first : first + size]
            batch = self._batch(some, (phase, number), weight[some], reference)
            if self.method is None:
                yield some, batch, *self._score_all(W, batch, team)
                continue
            if phase == 0:
                found = self.method.search(W, batch.V, team)
                gradient = self.method.of(W, batch, found, team)  # type: ignore[arg-type]
                width = int(batch.n_kept.max())
                none = np.empty((len(some), 0), W.dtype)
                kept = batch.kept[:, :width].copy()
                self._kept.append(Candidates(kept, none, batch.n_kept))
            else:
                gradient = self._score_kept(W, batch, self._kept[number], team)
            yield some, batch, gradient, gradient.losses

    def _batch(
        self, words: np.ndarray, key: tuple[int, int], weight: np.ndarray, reference: Reference
    ) -> WordBatch:
        """Return a mini-batch of words; its sample is keyed by the phase and its number."""
        n = len(words)
        W = self.outputs.values
        V = with_intercepts(self.inputs.values[words], np.ones(n))
        indptr, contexts, shares = self.counts.of_rows(words, W.dtype)
        drawn = self.sampler.draw(np.random.default_rng((self.seed, self.n_iter, *key)))
        scores = V @ W[drawn.labels].T
        in_reference = self.log_shares, *reference.centres_and_heights(V), np.zeros(n)
        kept = np.empty((n, 0 if key[0] else MOST_KEPT), np.int32), np.zeros(n, np.int64)
        words_and_shares = V, indptr, contexts, weight, shares
        return WordBatch(
            *words_and_shares, drawn, scores, np.empty_like(scores), *in_reference, *kept
        )

    def _score_all(
        self, W: np.ndarray, batch: WordBatch, team: Team
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients by the scores of all contexts, (n, n_contexts), and the losses."""
        V, indptr, contexts, weight, shares = batch[:5]
        scores, losses = np.empty((len(V), len(W)), W.dtype), np.empty(len(V))

        def multiply(first: int, last: int) -> None:
            scores[:, first:last] = V @ W[first:last].T

        def soften(first: int, last: int) -> None:
            rows = slice(first, last)
            pairs = indptr[first : last + 1], contexts, shares
            gradient_of_all(scores[rows], *pairs, weight[rows], losses[rows])

        for_chunks(team, len(W), _CHUNK_CONTEXTS, multiply)
        for_chunks(team, len(V), _CHUNK_WORDS, soften)
        return scores, losses

    def _score_kept(
        self, W: np.ndarray, batch: WordBatch, found: Candidates, team: Team
    ) -> LabelGradient:
        """Return the gradient over contexts that mattered in the step before."""
        n = len(batch.V)
        room = found.labels.shape[1] + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(n, room, W.dtype)

        def score(first: int, last: int) -> None:
            parts = batch.part(first, last), found.part(first, last), False, out.part(first, last)
            CollapsedSoftmax().over_found(W, *parts)

        share_instances(team, n, len(W), score)
        return out

    def _gradient_by_inputs(
        self, batch: WordBatch, found: LabelGradient | np.ndarray, team: Team
    ) -> np.ndarray:
        """Return the gradient by V, one column more than input vectors have."""
        W = self.outputs.values
        out = np.empty_like(batch.V)
        drawn = W[batch.drawn.labels]

        def add(first: int, last: int) -> None:
            if isinstance(found, np.ndarray):
                out[first:last] = found[first:last] @ W
                return
            starts = np.arange(first, last) * found.labels.shape[1]
            entries = found.counts[first:last], found.labels.ravel(), found.values.ravel()
            add_rows(read_only(W), starts, *map(read_only, entries), out[first:last])
            out[first:last] += batch.drawn_gradient[first:last] @ drawn

        for_chunks(team, len(out), _CHUNK_WORDS, add)
        return out

    def _add_by_outputs(
        self, G: np.ndarray, batch: WordBatch, found: LabelGradient | np.ndarray, team: Team
    ) -> None:
        """Add the gradient by the output vectors."""
        if isinstance(found, np.ndarray):

            def add_all(first: int, last: int) -> None:
                G[first:last] += found[:, first:last].T @ batch.V

            for_chunks(team, len(G), _CHUNK_CONTEXTS, add_all)
            return

        def add(first: int, last: int) -> None:
            add_outer_products(G, found.labels, found.values, found.counts, batch.V, first, last)
            columns = batch.drawn_gradient.T @ np.ascontiguousarray(batch.V[:, first:last])
            G[batch.drawn.labels, first:last] += columns

        for_chunks(team, G.shape[1], _CHUNK_COLUMNS, add)


def training_bytes(
    counts: Cooccurrences,
    dim: int,
    gradient: Gradient,
    index: object,
    n_candidates: int,
    n_sampled: int,
) -> int:
    """Return the bytes of a training at its peak."""
    n_words, n_contexts = counts.shape
    input_bytes, output_bytes = 4 * n_words * dim, 4 * n_contexts * (dim + 1)
    # Values, last steps, gradients and temporaries: while output vectors move, and input vectors.
    needed = max(2 * input_bytes + 6 * output_bytes, 4 * input_bytes + 3 * output_bytes)
    needed += counts.indptr.nbytes + counts.contexts.nbytes + counts.counts.nbytes
    if isinstance(gradient, ExactGradient):
        return needed + 4 * max(n_contexts, min(SCORES, WORDS * n_contexts))
    most = int(np.diff(counts.indptr).max()) + n_candidates
    needed += WORDS * (8 * most + 12 * n_sampled)
    if not isinstance(gradient, SampledGradient):
        needed += int(getattr(index, "row_copies", 2.0) * output_bytes)
        needed += 4 * n_words * min(MOST_KEPT, n_candidates)
    return needed
