"""Memory of a fit: the arrays that grow with the data or a parameter, summed by phase."""

import math
from typing import Any, NamedTuple

from sklearn_xc._input.data import CsrRows
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._inputs import TextRows, sparse_features
from sklearn_xc.embedding.encoders.protocol import part_of

_ADVICE = (
    "Lower embedding_dim, n_candidates or batch_size of the sampler, pass X as float32, hash the "
    "features into fewer (HashingVectorizer), or leave rare labels out."
)


class Allocation(NamedTuple):
    """An array, or several of one shape."""

    name: str
    shape: tuple[int, ...]
    itemsize: int
    times: int = 1

    @property
    def n_bytes(self) -> int:
        """Bytes of all of them."""
        return math.prod(map(int, self.shape)) * int(self.itemsize) * int(self.times)

    def __str__(self) -> str:
        times = f", {self.times} times" if self.times > 1 else ""
        return f"{self.name}, {' x '.join(map(str, self.shape))} x {self.itemsize} bytes{times}"


def require_memory(
    arrays: list[Allocation], allowed: int | None, estimator: str, advice: str = _ADVICE
) -> None:
    """Raise MemoryBudgetError, naming the largest array, if not all fit into memory."""
    needed = sum(array.n_bytes for array in arrays)
    largest = max(arrays, key=lambda array: array.n_bytes)
    require_bytes(needed, allowed, str(largest), advice, estimator)


def fit_arrays(
    examples: Examples,
    Z: CsrRows | None,
    encoder: Any,
    sampler: Any,
    dim: int,
    n_labels: int,
    scores_of_pairs: tuple[int, int],
) -> list[Allocation]:
    """Return the arrays of the phase of a fit that needs most memory; `sampler` has started."""
    X = examples.X
    n = len(examples.weight)
    size = examples.X.dtype.itemsize
    n_batch = min(sampler.batch_size_, n)
    reads = sampler.reads
    n_pool = min(n_batch * (1 + sampler.n_negatives), n_labels)
    width = None if isinstance(X, TextRows) else X.shape[1]
    per_instance = len(examples.positives.labels) / max(1, n)  # each value is in as many means
    n_of_means = int(min(_n_values(X) * per_instance, n_labels * X.shape[1]))
    n_label_values = n_of_means if Z is None else _n_values(Z)

    def of_encoder(method: str, *arguments: Any) -> list[Allocation]:
        shapes = part_of(encoder, method)(*arguments)
        return [Allocation(f"{name} of the encoder", shape, size, k) for name, shape, k in shapes]

    def embeddings(of_instances: int, of_labels: int, in_batch: int) -> list[Allocation]:
        return [
            Allocation("embeddings of the instances", (n, dim), size, of_instances),
            Allocation("vectors of the labels", (n_labels, dim), size, of_labels),
            Allocation("embeddings of a mini-batch", (n_batch + n_pool, dim), size, in_batch),
            Allocation("scores of a mini-batch", (n_batch, n_pool), size),
        ]

    n_read = sum({"instances": 1, "last_seen": 1, "initial": 2}.get(name, 0) for name in reads)
    encoding = embeddings(n_read, int("labels" in reads), 10)
    phases = [
        encoding + of_encoder("batch_shapes", n_batch + n_pool),
        embeddings(2 + ("initial" in reads), 4, 6),
        [
            *embeddings(1, 8, 0),
            Allocation("scores of pairs held out", scores_of_pairs, 2 * size + 28),
        ],
    ]
    return [
        Allocation("features of the instances", (_n_values(X),), 4 + size, 6),
        Allocation("numbers of the instances", (n,), 8, 20),
        Allocation("features of the labels", (n_label_values,), 4 + size, 4),
        *of_encoder("parameter_shapes", width, dim),
        *max(phases, key=lambda phase: sum(array.n_bytes for array in phase)),
    ]


def _n_values(rows: CsrRows) -> int:
    """Return the number of values of rows, those of texts' features included."""
    features = sparse_features(rows)
    own = len(rows.data) if isinstance(rows, TextRows) else 0
    return own + (0 if features is None else len(features.data))
