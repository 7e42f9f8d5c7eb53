"""Memory that a fit or an answer takes, told before it is taken: the one rule of this estimator.

What is listed are the arrays that grow with the data or a parameter. They are summed, and the
largest one is named where the sum is too much.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.parallel.memory import parse_bytes, require_bytes

#: Work space of the rows that are answered together, unless ``max_memory`` allows less.
PIECE = 2**28
#: So little is taken without a look at what the machine has left.
_LITTLE = 2**26
#: Rows of work space of an encoder, whatever is encoded.
_ENCODED = 4 * 1024
#: Instances that are scored together; pieces are multiples, so that a search cuts them alike.
TOGETHER = 256

_SMALLER = "Lower embedding_dim, pass X as float32, or "
_FEWER_FEATURES = (
    _SMALLER + "hash the features into fewer (HashingVectorizer) or select some (min_df)."
)
_FEWER_LABELS = _SMALLER + "leave rare labels out."
_FEWER_INSTANCES = _SMALLER + "fit fewer instances, and the others by partial_fit."
_SMALLER_BATCH = "Lower batch_size."
_FEWER_PASSES = "Lower batch_size, or have the encoder hold less (gradient_checkpointing)."
_SMALLER_MODEL = "Take a smaller model, or a frozen one."
_SHORTER_LIST = "Lower n_candidates or validation_fraction."
_FEWER_AT_A_TIME = "Ask for fewer labels, or for fewer instances at a time."


class Held(NamedTuple):
    """An array, or several of one shape, and what to do if it is too large.

    Attributes
    ----------
    what : str
    shape : tuple of int
    itemsize : int
        Bytes.
    times : int
        How many of them.
    advice : str
    """

    what: str
    shape: tuple[int, ...]
    itemsize: int
    times: int
    advice: str

    @property
    def n_bytes(self) -> int:
        """Of all."""
        return math.prod(map(int, self.shape)) * int(self.itemsize) * int(self.times)

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        times = f", {self.times} times" if self.times > 1 else ""
        return f"{self.what}, {shape} x {self.itemsize} bytes{times}"


class Budget:
    """What is allowed.

    Parameters
    ----------
    max_memory : int, str or None
        The parameter.
    name : str
        The estimator's, for messages.
    """

    def __init__(self, max_memory: Any, name: str) -> None:
        self._name = name
        self._allowed: int | None = None
        if max_memory is not None:
            self._allowed = parse_bytes(max_memory, f"{name}: max_memory")

    def require(self, held: Sequence[Held]) -> int:
        """Return the bytes of some arrays together.

        Raises
        ------
        MemoryBudgetError
            If they are not to be had; the largest is named.
        """
        needed = sum(each.n_bytes for each in held)
        if needed > (_LITTLE if self._allowed is None else min(_LITTLE, self._allowed)):
            largest = max(held, key=lambda each: each.n_bytes)
            require_bytes(needed, self._allowed, str(largest), largest.advice, self._name)
        return needed

    def rows_together(self, of_row: Sequence[Held], held: Sequence[Held]) -> int:
        """Return how many rows have room together.

        Parameters
        ----------
        of_row : sequence of Held
            What each takes.
        held : sequence of Held
            What is there besides.

        Raises
        ------
        MemoryBudgetError
            If there is no room for one.
        """
        each = sum(one.n_bytes for one in of_row)
        taken = self.require([*held, *of_row]) - each
        room = PIECE if self._allowed is None else min(PIECE, self._allowed - taken)
        n_rows = max(1, room // max(1, each))
        return n_rows - n_rows % TOGETHER if n_rows > TOGETHER else n_rows

    @property
    def piece(self) -> int:
        """Bytes of work space of rows that are answered together, at most."""
        return PIECE if self._allowed is None else min(PIECE, self._allowed)


def pieces_of(n: int, n_together: int) -> Iterator[np.ndarray]:
    """Yield ranges of n rows."""
    for first in range(0, n, n_together):
        yield np.arange(first, min(first + n_together, n))


def pieces_by_width(widths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Yield ranges of rows so that the rows times the largest width are at most so many.

    A row that is wider comes alone.
    """
    first, widest = 0, 0
    for i, width in enumerate(widths.tolist()):
        widest = max(widest, width)
        if i > first and (i + 1 - first) * widest > most:
            yield np.arange(first, i)
            first, widest = i, width
    if first < len(widths):
        yield np.arange(first, len(widths))


# Answers


class Asked(NamedTuple):
    """What an answer is made of.

    Attributes
    ----------
    n_labels, n_label_values, dim, itemsize : int
        Of the model: labels, and values of their features.
    n_scores : int
        Of a pair.
    n_copied : int
        Label vectors that a search has to copy.
    n_made_values : int
        Values of the features that are made of an instance, about.
    """

    n_labels: int
    n_label_values: int
    dim: int
    itemsize: int
    n_scores: int
    n_copied: int
    n_made_values: int = 0

    def embeddings(self, n: int) -> list[Held]:
        """Return what the embeddings of n instances take."""
        return [
            Held("embeddings of the instances", (n, self.dim), self.itemsize, 1,
                 "Ask for fewer instances at a time."),
            Held("work space of the encoder", (_ENCODED, self.dim), self.itemsize, 1, _SMALLER),
        ]  # fmt: skip

    def topk(self, n: int, k: int, n_copies: int) -> list[Held]:
        """Return what the k best labels of n instances take, and what their search does."""
        return [
            Held("labels and scores of the answer", (n, k), 16, n_copies, _FEWER_AT_A_TIME),
            Held("label vectors that are known", (self.n_copied, self.dim), self.itemsize, 1,
                 _FEWER_LABELS),
            Held("features of the labels", (self.n_label_values,), 4 + self.itemsize, 3,
                 _FEWER_LABELS),
            *self.embeddings(0),
        ]  # fmt: skip

    def row(self, k: int, n_listed: int) -> list[Held]:
        """Return what a row takes while labels are ranked; `n_listed` is 0 without a shortlist."""
        read = [
            Held("the embedding of an instance", (1, self.dim), self.itemsize, 3, _SMALLER),
            Held("features of an instance", (1, self.n_made_values), 4 + self.itemsize, 3,
                 "Let the vectorizer make fewer (min_df)."),
        ]  # fmt: skip
        if not n_listed:
            best = (1, k), 16 + self.itemsize, 2, _FEWER_AT_A_TIME
            return [*read, Held("the best labels of an instance", *best)]
        listed = (1, n_listed), 40 + (3 + self.n_scores) * self.itemsize, 1, "Lower n_candidates."
        return [*read, Held("scores of the shortlist of an instance", *listed)]

    def all_scores(self, n: int, n_copies: int) -> list[Held]:
        """Return what dense scores of n instances take."""
        advice = "Use predict_topk, which never makes them, or fit with a sparse y."
        return [Held("scores of all labels", (n, self.n_labels), self.itemsize, n_copies, advice)]


def of_index(n_bytes: int) -> list[Held]:
    """Return what an index of the labels takes."""
    advice = "Use index='exact' or index='product'."
    return [Held("the index of the labels", (n_bytes,), 1, 1, advice)]


# A fit


def of_added(n_labels: int, dim: int, itemsize: int, n_values: int) -> list[Held]:
    """Return what it takes to add labels, of all that there will be."""
    return [
        Held("vectors of the labels", (n_labels, dim), itemsize, 5, _FEWER_LABELS),
        Held("features of the labels", (n_values,), 4 + itemsize, 4, _FEWER_LABELS),
    ]


class FitSizes(NamedTuple):
    """What a fit is made of.

    Attributes
    ----------
    n, n_held_out : int
        Instances trained on, and held out.
    n_values : int
        Of all their features.
    n_true : int
        Pairs of a held-out instance and a label of its own.
    n_labels, n_label_values : int
        Labels, and values of what is known of them.
    dim, itemsize : int
        Of embeddings.
    parameters : sequence of tuple (str, tuple of int, int)
        Of the encoder: what, shape, and how many; empty where it does not tell.
    batch_size, n_pool : int
        Instances of a mini-batch, and labels at most.
    passes : sequence of tuple (str, tuple of int, int)
        What a mini-batch takes in the encoder, in the same form.
    is_of_texts : bool
        Whether the encoder reads texts.
    reads : collection of str
        Which embeddings the sampler looks at; see `BatchSampler`.
    n_copies : int
        Copies of all instances' embeddings that shards take at a time.
    n_listed, n_scores : int
        Labels of a shortlist, and scores of each.
    """

    n: int
    n_held_out: int
    n_values: int
    n_true: int
    n_labels: int
    n_label_values: int
    dim: int
    itemsize: int
    parameters: Sequence[tuple[str, tuple[int, ...], int]]
    batch_size: int
    n_pool: int
    passes: Sequence[tuple[str, tuple[int, ...], int]]
    is_of_texts: bool
    reads: Collection[str]
    n_copies: int
    n_listed: int
    n_scores: int

    def largest_phase(self) -> list[Held]:
        """Return what is held in training the encoder, the classifiers or the fusion: the most."""
        entry, dim, size = 4 + self.itemsize, self.dim, self.itemsize
        always = [
            *self.instances(6),
            Held("features of the labels", (self.n_label_values,), entry, 4, _FEWER_LABELS),
            *(Held(f"{what} of the encoder", shape, size, times,
                   _SMALLER_MODEL if self.is_of_texts else _FEWER_FEATURES)
              for what, shape, times in self.parameters),
        ]  # fmt: skip
        arrays = {"instances": 1, "last_seen": 1, "initial": 2}  # the initial ones are a copy
        n_embedded = sum(arrays.get(each, 0) for each in self.reads)
        encoder = [
            Held("embeddings of the instances", (self.n, dim), size, n_embedded, _FEWER_INSTANCES),
            Held("embeddings of the labels", (self.n_labels, dim), size,
                 int("labels" in self.reads), _FEWER_LABELS),
            *self.batch(10),
            *(Held(f"{what} of the encoder", shape, size, times, _FEWER_PASSES)
              for what, shape, times in self.passes),
        ]  # fmt: skip
        classifiers = self.classifiers(4 + (self.n_copies > 0), self.n_copies)
        n_pairs = self.n_held_out * self.n_listed + self.n_true
        fusion = [
            Held("vectors of the labels", (self.n_labels, dim), size, 8, _FEWER_LABELS),
            Held("embeddings of the instances held out", (self.n_held_out, dim), size, 2,
                 "Lower validation_fraction."),
            Held("scores of pairs held out", (n_pairs, self.n_scores), 2 * size + 16, 1,
                 _SHORTER_LIST),
            Held("pairs held out", (n_pairs,), 100, 1, _SHORTER_LIST),
            Held("features of pairs held out", (n_pairs, self.n_scores + 1), 12, 1, _SHORTER_LIST),
        ]  # fmt: skip
        phases = [[*always, *phase] for phase in (encoder, classifiers, fusion)]
        return max(phases, key=lambda phase: sum(each.n_bytes for each in phase))

    def classifiers(self, n_of_labels: int, n_copies: int) -> list[Held]:
        """Return what is held in training classifiers.

        Parameters
        ----------
        n_of_labels : int
            Arrays of vectors of all labels.
        n_copies : int
            Copies of the instances' embeddings.
        """
        n_of_instances = 1 + ("initial" in self.reads) + n_copies
        return [
            Held("vectors of the labels and means of their gradients", (self.n_labels, self.dim),
                 self.itemsize, n_of_labels, _FEWER_LABELS),
            Held("embeddings of the instances", (self.n, self.dim), self.itemsize, n_of_instances,
                 _FEWER_INSTANCES),
            *self.batch(6, max(1, n_copies)),
        ]  # fmt: skip

    def further(self) -> list[Held]:
        """Return what is held in training the classifiers of a fitted model."""
        return [*self.instances(7), *self.classifiers(8, 0)]

    def instances(self, n_copies: int) -> list[Held]:
        """Return what copies of the instances take, and vectors with a number for each."""
        values = (self.n_values,), 4 + self.itemsize, n_copies, _FEWER_INSTANCES
        return [
            Held("features of the instances", *values),
            Held("numbers of the instances", (self.n,), 8, 20, _FEWER_INSTANCES),
        ]

    def batch(self, n_copies: int, n_at_a_time: int = 1) -> list[Held]:
        """Return what mini-batches take, with so many copies of their embeddings."""
        n_both, size = self.batch_size + self.n_pool, self.itemsize
        return [
            Held("scores of a mini-batch", (self.batch_size, self.n_pool), size, n_at_a_time,
                 _SMALLER_BATCH),
            Held("embeddings of a mini-batch", (n_both, self.dim), size, n_copies * n_at_a_time,
                 _SMALLER_BATCH),
        ]  # fmt: skip
