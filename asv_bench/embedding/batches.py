"""Hard negatives that mini-batches miss, beside the bound of NGAME's Theorem 1."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from asv_bench.common.report import Report
from asv_bench.common.sets import DataSet
from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc.embedding.samplers import balanced_clusters

#: Mini-batches, instances whose distances to all others are measured, and negatives of an instance
#: that count as hard by their rank.
N_BATCHES, N_SEEN, BEST = 8, 1000, 10
#: Distances that are held at a time.
_TOGETHER = 2**23


class Embedded(NamedTuple):
    """Embeddings of a data set.

    Attributes
    ----------
    name : str
    V, W : ndarray of float32 of shape (n, dim), (n_labels, dim)
        Of the training instances that have a known word, and of the labels that have an instance.
    Y : csr_array of float32 of shape (n, n_labels)
        Labels of the instances.
    """

    name: str
    V: np.ndarray
    W: np.ndarray
    Y: Any


class Hard(NamedTuple):
    """Which negatives are hard: those within a radius, within the margin, or the best-scored.

    Attributes
    ----------
    radius : float or None
        The most that embeddings of an instance and a label are apart.
    margin : float or None
        The score of the instance's drawn label is not that much above that of a hard negative.
    best : int or None
        How many negatives of the highest scores are hard.
    """

    radius: float | None = None
    margin: float | None = None
    best: int | None = None

    @property
    def name(self) -> str:
        """What a table calls it."""
        if self.radius is not None:
            return f"r = {self.radius:g}"
        return f"best {self.best}" if self.margin is None else f"margin {self.margin:g}"

    def mask(
        self, scores: np.ndarray, apart: np.ndarray, own: np.ndarray, is_positive: np.ndarray
    ) -> np.ndarray:
        """Return which labels are hard negatives of some instances.

        Parameters
        ----------
        scores, apart : ndarray of shape (m, n_labels)
            Inner products and squared distances.
        own : ndarray of shape (m,)
            Scores of the drawn labels.
        is_positive : ndarray of bool of shape (m, n_labels)
        """
        if self.radius is not None:
            return (apart <= self.radius**2) & ~is_positive
        if self.margin is not None:
            return (scores > (own - self.margin)[:, None]) & ~is_positive
        k, hard = min(self.best or 1, scores.shape[1]), np.zeros_like(is_positive)
        found = np.argpartition(np.where(is_positive, np.inf, -scores), k - 1, axis=1)[:, :k]
        np.put_along_axis(hard, found, True, axis=1)
        return hard & ~is_positive


def embedded(found: DataSet, model: NGAMEEmbeddingXC) -> Embedded:
    """Return a data set as a fitted model embeds it."""
    rows = np.flatnonzero(np.diff(found.X_train.indptr))
    V, W = model.embed(found.X_train[rows]), model.label_embeddings_
    Y = sp.csr_array(found.Y_train)[rows].astype(np.float32)
    is_known = (np.abs(W).sum(axis=1) > 0) & (np.bincount(Y.indices, minlength=len(W)) > 0)
    Y = Y[:, np.flatnonzero(is_known)]
    kept = np.flatnonzero(np.diff(Y.indptr))
    return Embedded(found.name, V[kept], W[is_known], sp.csr_array(Y[kept]))


class Theorem:
    """The bound of Theorem 1 on the share of missed hard negatives, for clusters of embeddings.

    Parameters
    ----------
    known : Embedded
    radii : sequence of float
    seed : int
        Of the instances whose distances to all others are looked at.

    Attributes
    ----------
    c1, c2 : float
        The theorem's constants, of the numbers of labels and of instances alone.
    """

    def __init__(self, known: Embedded, radii: Sequence[float], seed: int) -> None:
        _, V, W, Y = known
        indptr, labels = Y.indptr, Y.indices
        n, n_labels = len(V), len(W)
        p, q = np.diff(indptr), np.bincount(labels, minlength=n_labels)
        odds = (n - q) / q
        self.c1 = q.mean() * (odds.mean() + odds.std() * np.sqrt(n_labels)) / n
        self.c2 = (p.mean() + p.std() * np.sqrt(n)) * n / (q.min() * n_labels)
        of = np.repeat(np.arange(n), p)
        # What an instance counts for: all alike, and by label, all of whose instances are 1.
        by_label = np.bincount(of, 1 / q[labels], minlength=n)
        self._weights = np.column_stack([np.full(n, 1 / n), by_label / n_labels])
        apart = np.concatenate(
            [
                _squares(V[of[part]] - W[labels[part]])
                for part in _parts(np.arange(len(of)), V.shape[1])
            ]
        )
        far = {r: apart >= r**2 for r in radii}
        self._eps1 = {r: (far[r].mean(), far[r] @ (odds[labels] / n / n_labels)) for r in radii}
        self._V = V
        rng = np.random.default_rng(seed)
        self._seen = np.sort(rng.permutation(n)[:N_SEEN])
        self._near = {r: np.zeros(2) for r in radii}
        for rows in _parts(self._seen, n):
            apart = _apart(V[rows], V)
            for r in radii:
                self._near[r] += ((apart <= 4 * r**2) @ self._weights).sum(axis=0)

    def __call__(self, radius: float, cluster: np.ndarray) -> dict[str, float]:
        """Return the errors and the bound; see ``measure_misses``.

        Parameters
        ----------
        radius : float
            One of `radii`.
        cluster : ndarray of int64 of shape (n,)
            The cluster of each instance.
        """
        order, V = np.argsort(cluster, kind="stable"), self._V
        starts = np.concatenate([[0], np.cumsum(np.bincount(cluster))])
        together = np.zeros(2)
        for i in self._seen:
            mates = order[starts[cluster[i]] : starts[cluster[i] + 1]]
            together += (_apart(V[[i]], V[mates])[0] <= 4 * radius**2) @ self._weights[mates]
        eps2, eps2_by_label = (self._near[radius] - together) / len(self._seen)
        eps1, eps1_by_label = self._eps1[radius]
        return {
            "eps1": float(eps1),
            "eps2": float(eps2),
            "bound": float(self.c1 * eps1 + self.c2 * eps2),
            "bound by label": float(eps1_by_label + eps2_by_label),
        }


def measure_misses(
    known: Embedded,
    sizes: Sequence[int],
    radii: Sequence[float],
    margin: float,
    batch_size: int,
    seed: int,
    report: Report,
) -> list[dict[str, Any]]:
    """Count the hard negatives that mini-batches miss, and compare with the bound of Theorem 1.

    A negative is hard within a radius, within the margin of the instance's drawn label, or among
    the ten that score best. It is found if it is a true label of an instance of the mini-batch: any
    ("labels"), or the one that each instance draws, as training has it ("one label each"). The
    theorem is on any, and on the instance's cluster; "bound by label" is the sum in its proof
    before the constants are drawn out of it.
    """
    kinds = [*(Hard(radius) for radius in radii), Hard(margin=margin), Hard(best=BEST)]
    theorem = Theorem(known, radii, seed)
    rows = []
    for batches, drawn, cluster in _mini_batches(known.V, sizes, batch_size, seed):
        counts = _count_misses(known, kinds, drawn[:N_BATCHES], cluster, seed)
        for kind, count in zip(kinds, counts, strict=True):
            row = {"set": known.name, "hard": kind.name, "clusters": batches, **count}
            rows.append(row | (theorem(kind.radius, cluster) if kind.radius else {}))
    rows.sort(key=lambda row: [kind.name for kind in kinds].index(row["hard"]))
    constants = f"c1 = {theorem.c1:,.2f}, c2 = {theorem.c2:,.0f}"
    report.table(f"{known.name}: hard negatives missed by {batch_size:,}; {constants}", rows)
    return rows


def _mini_batches(
    V: np.ndarray, sizes: Sequence[int], batch_size: int, seed: int
) -> Iterator[tuple[str, list[np.ndarray], np.ndarray]]:
    """Yield the kind of clusters, mini-batches of them, and the cluster of each row."""
    for size in (1, *sizes):
        rng, n_clusters = np.random.default_rng(seed), -(-len(V) // min(size, batch_size))
        if size == 1:  # the mini-batch takes the cluster's place
            rows = rng.permutation(len(V))
            batches = np.array_split(rows, -(-len(V) // batch_size))
            groups = batches
        else:
            cluster = balanced_clusters(V, n_clusters, seed, 1)
            order = np.argsort(cluster, kind="stable")
            groups = np.split(order, np.cumsum(np.bincount(cluster))[:-1])
            per_batch = max(1, batch_size // size)
            shuffled = np.array_split(rng.permutation(n_clusters), -(-n_clusters // per_batch))
            batches = [np.concatenate([groups[c] for c in some]) for some in shuffled]
        cluster = np.empty(len(V), np.int64)
        cluster[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [*map(len, groups)])
        yield "at random" if size == 1 else f"of {size}", batches, cluster


def _count_misses(
    known: Embedded,
    kinds: Sequence[Hard],
    batches: Sequence[np.ndarray],
    cluster: np.ndarray,
    seed: int,
) -> list[dict[str, float]]:
    """Return for each kind of hard negatives how many there are, and the shares missed."""
    _, V, W, Y = known
    n, n_labels = len(V), len(W)
    counts = np.diff(Y.indptr)
    at = np.minimum((np.random.default_rng(seed).random(n) * counts).astype(int), counts - 1)
    drawn = Y.indices[Y.indptr[:-1] + at]
    members = _indicator(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster)), n)
    by_cluster = members @ Y
    n_hard, n_found = np.zeros(len(kinds)), np.zeros((len(kinds), 3))
    pool_sizes, n_rows, n_pairs = np.zeros(2), 0, 0
    for batch in batches:
        pools = [np.unique(Y[batch].indices), np.unique(drawn[batch])]
        pool_sizes += [len(pool) for pool in pools]
        n_rows += len(batch)
        n_pairs += len(batch) * len(pools[1])
        for rows in _parts(batch, n_labels):
            scores = V[rows] @ W.T
            own = scores[np.arange(len(rows)), drawn[rows]]
            apart = _apart(V[rows], W)
            is_positive = Y[rows].toarray() > 0
            in_cluster = by_cluster[cluster[rows]].toarray() > 0
            for k, kind in enumerate(kinds):
                hard = kind.mask(scores, apart, own, is_positive)
                n_hard[k] += np.count_nonzero(hard)
                n_found[k] += [
                    *(np.count_nonzero(hard[:, pool]) for pool in pools),
                    np.count_nonzero(hard & in_cluster),
                ]
    missed = n_hard[:, None] - n_found
    all_, one, all_cluster = (missed / np.maximum(n_hard, 1)[:, None]).T
    return [
        {
            "an instance": n_hard[k] / n_rows,
            "labels": pool_sizes[0] / len(batches),
            "missed": all_[k],
            "in its cluster": all_cluster[k],
            "one label each": pool_sizes[1] / len(batches),
            "missed by one": one[k],
            "hits": n_found[k, 1] / n_pairs,
            "missed, of all pairs": missed[k, 2] / n_rows / n_labels,
        }
        for k in range(len(kinds))
    ]


def _indicator(columns: np.ndarray, ends: np.ndarray, n_columns: int) -> Any:
    """Return a matrix of ones at the columns of each row."""
    indptr = ends if ends[0] == 0 else np.concatenate([[0], ends])
    ones = np.ones(len(columns), np.float32)
    return sp.csr_array((ones, columns, indptr), shape=(len(indptr) - 1, n_columns))


def _parts(rows: np.ndarray, width: int) -> Iterator[np.ndarray]:
    """Yield rows, as many at a time as fit if each has that many numbers."""
    step = max(1, _TOGETHER // width)
    for first in range(0, len(rows), step):
        yield rows[first : first + step]


def _squares(V: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", V, V)


def _apart(V: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the squared distances of the rows of V from those of W."""
    apart = V @ W.T
    apart *= -2
    apart += _squares(V)[:, None]
    apart += _squares(W)
    return apart
