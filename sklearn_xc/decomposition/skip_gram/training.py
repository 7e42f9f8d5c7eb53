"""Alternating steps of output and input vectors, each along the gradient over all words.

For each mini-batch of words::

    words -> V -> contexts that may matter                               gradients
               -> a sample of the others                                 collapsed_softmax
               -> gradient by the scores                                 collapsed_softmax
    output: -> added to the gradient by the output vectors
    input:  -> gradient by V, of each word
               -> steps                                                  newton_steps

The loss of a word is divided by how often it occurs, and likewise the gradient of a context: rare
words take as long a step as frequent ones. (The Hessian by the output vectors is at most block
diagonal, with blocks that are proportional to how often a context is expected, as the covariance of
the softmax is at most the diagonal of its probabilities.)
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.team import Team
from sklearn_xc._training.kernels.row_moves import add_rows
from sklearn_xc.decomposition.gradients import ExactGradient, SampledGradient
from sklearn_xc.decomposition.gradients.protocol import (
    Gradient,
    GradientMethod,
    LabelGradient,
    share_instances,
)
from sklearn_xc.decomposition.gradients.scored import Exact
from sklearn_xc.decomposition.skip_gram.collapsed_softmax import (
    CollapsedSoftmax,
    ContextSampler,
    Kept,
    Others,
    Reference,
    WordBatch,
)
from sklearn_xc.decomposition.skip_gram.cooccurrence import Cooccurrences
from sklearn_xc.decomposition.skip_gram.kernels.collapsed_softmax import add_outer_products
from sklearn_xc.decomposition.skip_gram.newton_steps import Vectors, for_pieces, second_moments
from sklearn_xc.search.protocol import Candidates

#: Words of a mini-batch, and the scores that it may have in all where all contexts are scored.
WORDS, SCORES = 128, 2**23
#: Contexts, words and columns per piece of a product, for any number of threads.
_CONTEXTS, _PIECE, _COLUMNS = 4096, 32, 16
#: Contexts per word that the second step of an iteration takes over from the first.
MOST_KEPT = 256
#: The learning rate of iteration t, from 0, is divided by 1 plus this times t.
_DECAY = 0.1


@dataclass
class Training:
    """Input and output vectors that take steps.

    Attributes
    ----------
    counts : Cooccurrences
    inputs : Vectors of shape (n_words, dim)
    outputs : Vectors of shape (n_contexts, dim + 1)
        With an intercept in the last column; 0 where there is none.
    method : GradientMethod
        Of a ``CollapsedSoftmax``.
    sampler : ContextSampler or None
        None ignores contexts that were not found.
    rate : float
        Learning rate.
    ridge : float
        Half of it times the squared norms of all vectors is added to the loss over all pairs.
    has_intercept : bool
    seed : int
    n_workers : int
    n_iter : int
        Iterations so far.
    """

    counts: Cooccurrences
    inputs: Vectors
    outputs: Vectors
    method: GradientMethod
    sampler: ContextSampler | None
    rate: float
    ridge: float
    has_intercept: bool
    seed: int
    n_workers: int
    n_iter: int = 0

    def __post_init__(self) -> None:
        self.log_shares = self.counts.log_shares
        self._scores_all = isinstance(self.method, Exact)

    def is_finite(self) -> bool:
        """Return whether all vectors are finite."""
        return all(np.isfinite(one.values).all() for one in (self.inputs, self.outputs))

    def loss(self) -> float:
        """Return the loss for each pair, over the contexts that the gradient considers."""
        self.method.build(self.outputs.values)
        with Team(self.n_workers) as team:
            reference = Reference(self.outputs.values, self.log_shares)
            weight = np.ones(len(self.inputs.values))
            total = 0.0
            for words, _, found in self._batches(team, 0, weight, reference):
                total += float(self.counts.of_words[words] @ found.losses)
        return total / self.counts.total

    def iterate(self) -> tuple[float, float]:
        """Take a step of the output vectors and one of the input vectors.

        Returns
        -------
        loss : float
            For each pair of a word and a context, as seen before the first step.
        seconds : float
        """
        began = time.perf_counter()
        self.method.build(self.outputs.values)
        rate = self.rate / (1 + _DECAY * self.n_iter)
        with Team(self.n_workers) as team, np.errstate(over="ignore", invalid="ignore"):
            loss, lengths = self.step_outputs(rate, team)
            self.step_inputs(rate, team)
        self.method.moved(np.arange(len(lengths), dtype=np.int32), lengths)
        self.n_iter += 1
        return loss, time.perf_counter() - began

    def step_outputs(self, rate: float, team: Team) -> tuple[float, np.ndarray]:
        """Take a step of the output vectors; return the loss before, and how far each has moved."""
        gradient, loss = self.output_gradient(team)
        columns = gradient.shape[1] - (not self.has_intercept)
        shares = self.counts.of_words / self.counts.total
        curvature = second_moments(self.inputs.values, shares)[:columns, :columns]
        moving = Vectors(self.outputs.values[:, :columns], self.outputs.moves[:, :columns])
        ridge = self.ridge / np.maximum(self.counts.of_contexts, 1.0)
        return loss, moving.step(gradient[:, :columns], curvature, ridge, rate, team)

    def step_inputs(self, rate: float, team: Team) -> None:
        """Take a step of the input vectors."""
        gradient, reference = self.input_gradient(team)
        ridge = self.ridge / np.maximum(self.counts.of_words, 1.0)
        self.inputs.step(gradient, reference.covariance(), ridge, rate, team)

    def output_gradient(self, team: Team) -> tuple[np.ndarray, float]:
        """Return the gradient of the summed loss by each output vector, over its context's count.

        With it comes the loss for each pair.
        """
        counts, W = self.counts, self.outputs.values
        G, loss = np.zeros_like(W), 0.0
        reference = Reference(W, self.log_shares)
        self._kept: list[Kept] = []
        for _, batch, found in self._batches(team, 0, counts.of_words, reference):
            self._kept.append(_packed(batch.kept))
            self._add_by_outputs(G, batch, found, team)
            if batch.has_reference:
                reference.add(batch)
            loss += float(found.losses.sum())
        if self.sampler is not None:
            G += reference.by_outputs()
        n = np.maximum(counts.of_contexts, 1.0).astype(W.dtype)
        G /= n[:, None]
        if self.ridge:
            G[:, :-1] += W.dtype.type(self.ridge) * W[:, :-1] / n[:, None]
        return G, loss / counts.total

    def input_gradient(self, team: Team) -> tuple[np.ndarray, Reference]:
        """Return the gradient of each word's own loss by its vector, and the reference.

        To be called after ``output_gradient``, whose contexts it takes over.
        """
        counts, U = self.counts, self.inputs.values
        gradient = np.zeros_like(U)
        reference = Reference(self.outputs.values, self.log_shares)
        for words, batch, found in self._batches(team, 1, np.ones(len(U)), reference):
            by_inputs = self._gradient_by_inputs(batch, found, team)
            if batch.has_reference:
                by_inputs += reference.by_inputs(batch)
            gradient[words] = by_inputs[:, : U.shape[1]]
        if self.ridge:
            n = np.maximum(counts.of_words, 1.0).astype(U.dtype)
            gradient += U.dtype.type(self.ridge) * U / n[:, None]
        return gradient, reference

    def _batches(
        self, team: Team, phase: int, weight: np.ndarray, reference: Reference
    ) -> Iterator[tuple[np.ndarray, WordBatch, LabelGradient]]:
        """Yield words that have contexts, with their batch and the gradient by their scores."""
        counts, U, W = self.counts, self.inputs.values, self.outputs.values
        words = np.flatnonzero(counts.of_words > 0)
        size = max(1, min(WORDS, SCORES // len(W))) if self._scores_all else WORDS
        for number, first in enumerate(range(0, len(words), size)):
            some = words[first : first + size]
            V = np.ones((len(some), W.shape[1]), W.dtype)
            V[:, :-1] = U[some]
            indptr, contexts, shares = counts.of_rows(some, W.dtype)
            others, centres, heights = Others.none(), np.zeros(len(some)), np.zeros(len(some))
            if self.sampler is not None:
                rng = np.random.default_rng((self.seed, self.n_iter, phase, number))
                others = self.sampler.draw(rng)
                centres, heights = reference.of_words(V)
            of_others = V @ W[others.labels].T
            batch = WordBatch(
                V,
                indptr,
                contexts,
                weight[some],
                shares,
                others,
                of_others,
                np.empty_like(of_others),
                self.log_shares,
                centres,
                heights,
                self.sampler is not None,
                np.zeros(len(some)),
                Kept.room(len(some), 0 if phase else MOST_KEPT),
                {},
            )
            if phase == 0 or self._scores_all:
                found = self.method.search(W, V, team)
                gradient = self.method.of(W, batch, found, team)  # type: ignore[arg-type]
            else:
                gradient = self._again(W, batch, self._kept[number], team)
            yield some, batch, gradient

    def _again(self, W: np.ndarray, batch: WordBatch, kept: Kept, team: Team) -> LabelGradient:
        """Return the gradient over contexts that mattered in the step before."""
        n, room = len(batch.V), kept.labels.shape[1] + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(n, room, W.dtype)
        found = Candidates(kept.labels, np.empty((n, 0), W.dtype), kept.counts)

        def score(first: int, last: int) -> None:
            parts = batch.part(first, last), found.part(first, last), False, out.part(first, last)
            CollapsedSoftmax().over_found(W, *parts)

        share_instances(team, n, len(W), score)
        return out

    def _gradient_by_inputs(self, batch: WordBatch, found: LabelGradient, team: Team) -> np.ndarray:
        """Return the gradient by what scores are linear in, one column more than vectors have."""
        W, out = self.outputs.values, np.empty_like(batch.V)
        ids, values, room = found.labels.ravel(), found.values.ravel(), found.labels.shape[1]
        drawn = W[batch.others.labels]

        def add(first: int, last: int) -> None:
            if first in batch.of_all:
                out[first:last] = batch.of_all[first] @ W
                return
            entries = np.arange(first, last) * room, found.counts[first:last], ids, values
            starts, *others = entries
            add_rows(read_only(W), starts, *map(read_only, others), out[first:last])
            out[first:last] += batch.of_others[first:last] @ drawn

        if batch.of_all:
            batch = batch._replace(of_all=_in_pieces(batch.of_all))
        for_pieces(team, len(out), _PIECE, add)
        return out

    def _add_by_outputs(
        self, G: np.ndarray, batch: WordBatch, found: LabelGradient, team: Team
    ) -> None:
        """Add the gradient by the output vectors."""
        if batch.of_all:
            scores = np.concatenate([batch.of_all[first] for first in sorted(batch.of_all)])

            def add_all(first: int, last: int) -> None:
                G[first:last] += scores[:, first:last].T @ batch.V

            for_pieces(team, len(G), _CONTEXTS, add_all)
            return

        def add(first: int, last: int) -> None:
            add_outer_products(G, found.labels, found.values, found.counts, batch.V, first, last)
            columns = batch.of_others.T @ np.ascontiguousarray(batch.V[:, first:last])
            G[batch.others.labels, first:last] += columns

        for_pieces(team, G.shape[1], _COLUMNS, add)


def _in_pieces(of_all: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Return gradients over all contexts by the first word of each piece."""
    scores = np.concatenate([of_all[first] for first in sorted(of_all)])
    return {first: scores[first : first + _PIECE] for first in range(0, len(scores), _PIECE)}


def _packed(kept: Kept) -> Kept:
    """Return a copy that is as wide as it need be."""
    return Kept(kept.labels[:, : int(kept.counts.max())].copy(), kept.counts)


def training_bytes(
    counts: Cooccurrences, dim: int, gradient: Gradient, index: object, sizes: tuple[int, int]
) -> int:
    """Return the bytes of a training at its peak; `sizes` are n_candidates and n_sampled."""
    n_words, n_contexts = len(counts.of_words), counts.n_contexts
    n_candidates, n_sampled = sizes
    of_inputs, of_outputs = 4 * n_words * dim, 4 * n_contexts * (dim + 1)
    # Values, last steps, gradients and temporaries: while output vectors move, and input vectors.
    needed = max(2 * of_inputs + 6 * of_outputs, 4 * of_inputs + 3 * of_outputs)
    needed += counts.indptr.nbytes + counts.contexts.nbytes + counts.counts.nbytes
    if isinstance(gradient, ExactGradient):
        return needed + 12 * max(n_contexts, min(SCORES, WORDS * n_contexts))
    most = int(np.diff(counts.indptr).max()) + n_candidates
    needed += WORDS * (8 * most + 12 * n_sampled)
    if not isinstance(gradient, SampledGradient):
        needed += int(getattr(index, "row_copies", 2.0) * of_outputs)
        needed += 4 * n_words * min(MOST_KEPT, n_candidates)
    return needed
