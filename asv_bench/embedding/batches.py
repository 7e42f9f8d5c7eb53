"""What mini-batches hold, for the NGAME experiment: hard negatives missed, inertia of clusters."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import BisectingKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.embedding.curves import epochs_of, examples_of, known_labels
from asv_bench.embedding.label_texts import LabelledSet
from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc.embedding._encoding import inputs_of
from sklearn_xc.encoders import BagOfEmbeddings
from sklearn_xc.parallel.row_ranges import one_blas_thread
from sklearn_xc.samplers import NgameSampler, balanced_clusters
from sklearn_xc.samplers._batches import Clusters
from sklearn_xc.samplers.protocol import Positives

#: Mini-batches that are looked at, instances whose distances to all others are, and negatives of an
#: instance that count as hard by their rank.
N_BATCHES, N_SEEN, BEST = 8, 1000, 10
#: Distances that are held at a time.
_TOGETHER = 2**23
#: More clusters than this are not made.
_MOST_CLUSTERS = 2500

_MISS_COLUMNS = [
    Column("hard", "hard negatives"),
    Column("per_instance", "an instance", ",.1f"),
    Column("batches", "mini-batches"),
    Column("pool_all", "labels", ",.0f"),
    Column("missed_all", "missed", ".1%"),
    Column("missed_all_cluster", "in its cluster", ".1%"),
    Column("pool_one", "one label each", ",.0f"),
    Column("missed_one", "missed", ".1%"),
    Column("hit_share", "hits", ".5f"),
]
_BOUND_COLUMNS = [
    Column("hard", "hard negatives"),
    Column("batches", "clusters"),
    Column("missed_pairs", "missed, of all pairs", ".2e"),
    Column("eps1", "eps1", ".3f"),
    Column("eps2", "eps2", ".1e"),
    Column("bound", "c1 eps1 + c2 eps2", ",.4g"),
    Column("bound_by_label", "by label", ".3f"),
]
_CLUSTER_COLUMNS = [
    Column("features", "rows"),
    Column("size", "cluster size"),
    Column("clusters", "clusters", ","),
    Column("ratio", "inertia / BisectingKMeans", ".3f"),
    Column("least", "its smallest", ","),
    Column("most", "its largest", ","),
    Column("cpu_s", "CPU s", ".2f"),
    Column("free_cpu_s", "BisectingKMeans", ".2f"),
]


class Embedded(NamedTuple):
    """A data set, and what a trained encoder makes of it.

    Attributes
    ----------
    name : str
    V : ndarray of float32 of shape (n, dim)
        Embeddings of the training instances that have a known word; others are no point of the
        sphere.
    W : ndarray of float32 of shape (n_labels, dim)
        Those of the labels that have a training instance.
    positives : Positives
        Labels of the instances, as rows of W.
    epochs : int
        Of the encoder.
    """

    name: str
    V: np.ndarray
    W: np.ndarray
    positives: Positives
    epochs: int


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


def trained(labelled: LabelledSet, parameters: dict[str, Any], epochs: int | None) -> Embedded:
    """Return a data set as an encoder sees it after some epochs of module M1 with NGAME's batches.

    Parameters
    ----------
    labelled : LabelledSet
    parameters : dict
        Of the estimator.
    epochs : int or None
        None is for the estimator's default.

    Returns
    -------
    Embedded
    """
    model = NGAMEEmbeddingXC(**parameters)
    examples, Z = examples_of(model, labelled)
    model.encoder_ = BagOfEmbeddings()  # of which "auto" depends
    epochs = epochs or model._epochs_for("encoder", examples)
    X, positives, _ = examples
    with one_blas_thread():
        encoder, _, training = epochs_of(model, examples, Z, NgameSampler(), epochs)
        for _ in training.run():
            pass
        V = encoder.encode(inputs_of(X))
        W = encoder.encode(inputs_of(Z.take(known_labels(Z))))
    Y = _indicator(positives.labels, positives.indptr, len(W))
    has_instance = np.bincount(Y.indices, minlength=len(W)) > 0
    labels = (np.cumsum(has_instance) - 1)[Y.indices].astype(np.int32)
    positives = Positives(Y.indptr.astype(np.int64), labels)
    return Embedded(labelled.name, V, W[has_instance], positives, epochs)


class Theorem:
    """The bound of Theorem 1 on the share of missed hard negatives, for clusters of embeddings.

    Parameters
    ----------
    embedded : Embedded
    radii : sequence of float
    seed : int
        Of the instances whose distances to all others are looked at.

    Attributes
    ----------
    c1, c2 : float
        The theorem's constants, of the numbers of labels and of instances alone.
    """

    def __init__(self, embedded: Embedded, radii: Sequence[float], seed: int) -> None:
        _, V, W, (indptr, labels), _ = embedded
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
            "eps1": float(eps1), "eps2": float(eps2),
            "bound": float(self.c1 * eps1 + self.c2 * eps2),
            "bound_by_label": float(eps1_by_label + eps2_by_label),
        }  # fmt: skip


def measure_misses(
    embedded: Embedded, sizes: Sequence[int], radii: Sequence[float], margin: float,
    batch_size: int, seed: int, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Count the hard negatives that mini-batches miss, and compare with the bound of Theorem 1.

    A negative is found if it is a true label of an instance of the mini-batch: any, or one that
    each instance draws, as training has it. The theorem is on any, and on the instance's cluster.

    Parameters
    ----------
    embedded : Embedded
    sizes : sequence of int
        Instances of a cluster; random mini-batches are always there.
    radii : sequence of float
        Negatives within them are hard.
    margin : float
        Negatives within it of the drawn label are, too; and the ten that score best.
    batch_size, seed : int
    report : Report

    Returns
    -------
    list of dict
        A row for each kind of hard negatives and of mini-batches: set, hard, batches, per_instance
        (hard negatives), pool_all, pool_one (labels of a mini-batch), missed_all, missed_one,
        missed_all_cluster (shares of the hard negatives), hit_share (the share of pool_one that is
        hard for an instance); for radii also missed_pairs (missed in
        the cluster, as a share of all instances times labels), eps1, eps2, bound, bound_by_label.

    Notes
    -----
    Labels without a training instance are left out: nothing could find them, and the theorem's
    constants have no value. `bound_by_label` is the sum in the theorem's proof before the constants
    are drawn out of it: the same two errors, where all labels weigh alike and in each its
    instances. It is eps1 + eps2 at most where all degrees are equal, and 2 at most anywhere.
    """
    kinds = [*(Hard(radius) for radius in radii), Hard(margin=margin), Hard(best=BEST)]
    theorem = Theorem(embedded, radii, seed)
    table = []
    for of_what, batches, cluster in _mini_batches(embedded.V, sizes, batch_size, seed):
        counts = _count_misses(embedded, kinds, batches[:N_BATCHES], cluster, seed)
        for kind, count in zip(kinds, counts, strict=True):
            row = {"set": embedded.name, "hard": kind.name, "batches": of_what, **count}
            if kind.radius is not None:
                row |= theorem(kind.radius, cluster)
            table.append(row)
    rows = [row for kind in kinds for row in table if row["hard"] == kind.name]
    name = embedded.name
    if embedded.epochs:
        name += f", {embedded.epochs} epochs of the encoder"
    report.table(
        f"{name}: hard negatives that mini-batches of {batch_size:,} miss", rows, _MISS_COLUMNS
    )
    report.line()
    report.line(
        f"Of {N_BATCHES} mini-batches. Hard: within the distance r, scored less than the margin "
        "below the drawn label, or scored best; labels: distinct ones of a mini-batch, all of each "
        "instance's, and one; in its cluster: missed if only the instance's own cluster is looked "
        "at; hits: the share of the labels, one each, that are hard negatives of an instance."
    )
    report.table(
        f"{embedded.name}: Theorem 1, c1 = {theorem.c1:,.2f}, c2 = {theorem.c2:,.0f}",
        [row for row in rows if "bound" in row], _BOUND_COLUMNS,
    )  # fmt: skip
    report.line()
    report.line(
        "Missed: in the instance's cluster (at random: mini-batch), with all labels; by label: the "
        "bound in the proof before its constants are drawn out."
    )
    return [{"part": "misses", **row} for row in rows]


def measure_clusters(
    labelled: LabelledSet, embedded: Embedded, sizes: Sequence[int], n_rows: int, seed: int,
    report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Compare the inertia of balanced clusters with scikit-learn's bisecting 2-means.

    Parameters
    ----------
    labelled : LabelledSet
    embedded : Embedded
    sizes : sequence of int
        Rows of a cluster; sizes that make too many clusters for scikit-learn are passed over.
    n_rows : int
        Rows of a random sample.
    seed : int
    report : Report

    Returns
    -------
    list of dict
        A row for each kind of features and size: set, features, size, clusters, inertia and
        free_inertia (means of a row), ratio, least and most (rows of an unbalanced cluster), cpu_s
        and free_cpu_s.
    """
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.permutation(len(embedded.V))[:n_rows])
    dim = min(embedded.V.shape[1], labelled.X_train.shape[1] - 1)
    some = np.sort(rng.permutation(labelled.X_train.shape[0])[:n_rows])
    reduced = TruncatedSVD(dim, random_state=seed).fit_transform(labelled.X_train[some])
    features = {
        "embeddings": embedded.V[sample],
        "tf-idf, SVD": normalize(reduced).astype(embedded.V.dtype),
    }
    rows = []
    for name, V in features.items():
        balanced_clusters(V, 2, seed, 1)  # compiled
        for size in sizes:
            n_clusters = -(-len(V) // size)
            if not 1 < n_clusters <= _MOST_CLUSTERS:
                continue
            cluster, cpu_s = cpu_seconds(balanced_clusters, V, n_clusters, seed, 1)
            bisecting = BisectingKMeans(n_clusters, random_state=seed)
            with threadpool_limits(1):
                free, free_cpu_s = cpu_seconds(bisecting.fit_predict, V)
            counts, inertia, least = np.bincount(free), _inertia(V, cluster), _inertia(V, free)
            rows.append(
                {
                    "part": "clusters", "set": embedded.name, "features": name, "size": size,
                    "clusters": n_clusters, "inertia": inertia, "free_inertia": least,
                    "ratio": inertia / least, "least": int(counts.min()),
                    "most": int(counts.max()), "cpu_s": cpu_s, "free_cpu_s": free_cpu_s,
                }
            )  # fmt: skip
    report.table(
        f"{embedded.name}, {embedded.epochs} epochs of the encoder: clusters of {len(sample):,} "
        "rows", rows, _CLUSTER_COLUMNS,
    )  # fmt: skip
    return rows


def _mini_batches(
    V: np.ndarray, sizes: Sequence[int], batch_size: int, seed: int
) -> Iterator[tuple[str, list[np.ndarray], np.ndarray]]:
    """Yield what mini-batches are made of, those of an epoch, and the cluster of each row."""
    for size in (1, *sizes):
        clusters = Clusters(V, -(-len(V) // min(size, batch_size)), (seed, 0), 1)
        batches = list(clusters.batches(batch_size, (seed, 0)))
        name, groups = f"clusters of {size}", np.split(clusters.rows, clusters.starts[1:-1])
        if size == 1:  # the mini-batch takes the cluster's place
            name, groups = "at random", batches
        cluster = np.empty(len(V), np.int64)
        cluster[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [*map(len, groups)])
        yield name, batches, cluster


def _count_misses(
    embedded: Embedded, kinds: Sequence[Hard], batches: Sequence[np.ndarray], cluster: np.ndarray,
    seed: int,
) -> list[dict[str, float]]:  # fmt: skip
    """Return for each kind of hard negatives how many there are, and the shares missed."""
    _, V, W, positives, _ = embedded
    n, n_labels = len(V), len(W)
    drawn = _drawn(positives, seed)
    Y = _indicator(positives.labels, positives.indptr, n_labels)
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
            "per_instance": n_hard[k] / n_rows, "pool_all": pool_sizes[0] / len(batches),
            "pool_one": pool_sizes[1] / len(batches), "missed_all": all_[k],
            "missed_one": one[k], "hit_share": n_found[k, 1] / n_pairs,
            "missed_all_cluster": all_cluster[k],
            "missed_pairs": missed[k, 2] / n_rows / n_labels,
        }
        for k in range(len(kinds))
    ]  # fmt: skip


def _drawn(positives: Positives, seed: int) -> np.ndarray:
    """Return a label of each instance, drawn at random."""
    indptr, labels = positives
    counts = np.diff(indptr)
    rng = np.random.default_rng(seed)
    return labels[
        indptr[:-1] + np.minimum((rng.random(len(counts)) * counts).astype(int), counts - 1)
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


def _inertia(V: np.ndarray, cluster: np.ndarray) -> float:
    """Return the mean squared distance of rows from the mean of their cluster."""
    counts = np.bincount(cluster)
    ends = np.cumsum(counts)
    members = _indicator(np.argsort(cluster, kind="stable"), ends, len(V))
    means = (members @ V.astype(np.float64)) / counts[:, None]
    return float(_squares(V - means[cluster]).mean())
