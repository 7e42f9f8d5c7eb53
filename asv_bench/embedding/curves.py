"""Progress of training by sampler, epoch by epoch, for the NGAME experiment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from asv_bench.common.figures import log_axis, panels, with_legend
from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Report
from asv_bench.embedding.label_texts import LabelledSet
from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc._checks import check_instances, check_targets
from sklearn_xc._data import CsrRows
from sklearn_xc.embedding._encoding import inputs_of
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._label_features import label_rows
from sklearn_xc.embedding._modules import SiameseModule
from sklearn_xc.embedding._training import SiameseTraining, TripletLoss
from sklearn_xc.encoders import BagOfEmbeddings
from sklearn_xc.metrics import precision_at_k
from sklearn_xc.mips import ExactIndex
from sklearn_xc.parallel.row_ranges import one_blas_thread
from sklearn_xc.samplers import SAMPLERS, NgameSampler, TrainingState

#: What is compared, by key: the name. All but "ngame_fixed" are keys of samplers.
METHODS = {
    "in_batch": "random mini-batches",
    "ngame": "NGAME, growing clusters",
    "ngame_fixed": "NGAME, clusters of {cluster_size}",
    "ance": "ANCE",
    "tas": "TAS",
    "o_sgd": "ordered SGD",
}
#: Instances of a warm-up.
_FEW = 2_000
# Okabe and Ito's colours, told apart by all common kinds of colour vision; with a marker each.
_LOOKS = {
    "in_batch": ("#000000", "o"),
    "ngame": ("#0072B2", "D"),
    "ngame_fixed": ("#56B4E9", "^"),
    "ance": ("#E69F00", "s"),
    "tas": ("#009E73", "P"),
    "o_sgd": ("#CC79A7", "v"),
}


class TimedSampler:
    """A sampler, with a clock for its refreshes.

    Attributes
    ----------
    refresh_s : float
        CPU seconds of all refreshes so far.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.refresh_s = 0.0

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Look at the embeddings again, if it is time to."""
        _, seconds = cpu_seconds(self._sampler.refresh, epoch, state)
        self.refresh_s += seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


def follow_samplers(
    labelled: LabelledSet, methods: Sequence[str], parameters: dict[str, Any], cluster_size: int,
    epochs: int, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return held-out precision, shares of violations and times of each epoch of module M1.

    All methods start with the same encoder and draw the same positives. What is held out is not
    looked at while a clock runs.

    Parameters
    ----------
    labelled : LabelledSet
    methods : sequence of str
        Keys of ``METHODS``.
    parameters : dict
        Of the estimator.
    cluster_size : int
        Of "ngame_fixed".
    epochs : int
    report : Report
        Where to show the points as they come.

    Returns
    -------
    list of dict
        A row per epoch: set, key, method, epoch, P@1, loss, violations, cpu_s and sampler_s (of all
        epochs so far), sampler_share (their ratio).
    """
    model = NGAMEEmbeddingXC(**parameters)
    examples, Z = examples_of(model, labelled)
    rows: list[dict[str, Any]] = []
    with one_blas_thread():
        for key in methods:
            name = METHODS[key].format(cluster_size=cluster_size)
            sampler: Any = NgameSampler(cluster_size=cluster_size)
            if key != "ngame_fixed":
                sampler = SAMPLERS[key]()
            few = examples.take(np.arange(min(_FEW, examples.X.shape[0])))
            for _ in epochs_of(model, few, Z, sampler, 2)[2].run():  # compiled
                pass
            encoder, timed, training = epochs_of(model, examples, Z, sampler, epochs)
            run, cpu_s = training.run(), 0.0
            for epoch in range(1, epochs + 1):
                seen, seconds = cpu_seconds(next, run)
                cpu_s += seconds
                row = {
                    "set": labelled.name, "key": key, "method": name, "epoch": epoch,
                    "P@1": _precision(model, encoder, Z, labelled), "loss": seen.loss,
                    "violations": seen.violations, "cpu_s": cpu_s, "sampler_s": timed.refresh_s,
                    "sampler_share": timed.refresh_s / cpu_s,
                }  # fmt: skip
                rows.append(row)
                report.line(
                    f"{labelled.name}, {name}, epoch {epoch}: P@1 {row['P@1']:.4f}, within margin "
                    f"{seen.violations:.4f}, {cpu_s:,.1f} s, refreshes {timed.refresh_s:,.1f} s"
                )
            next(run, None)  # its threads end
    return rows


def examples_of(model: NGAMEEmbeddingXC, labelled: LabelledSet) -> tuple[Examples, CsrRows]:
    """Return what an encoder trains on, instances and labels that have a feature, and all labels.

    Returns
    -------
    examples : Examples
        Labels are numbered as in the rows of `Z` that are not empty.
    Z : CsrRows of shape (n_labels, n_features)
    """
    n, n_labels = labelled.Y_train.shape
    instances = check_instances(model, labelled.X_train, reset=True)
    targets = check_targets(model, labelled.Y_train, n)
    examples = Examples.distinct(instances, *targets.by_instance(n), np.ones(n))
    Z = label_rows("ngame", labelled.Z, None, n_labels, instances.shape[1], instances.dtype)
    assert Z is not None
    _, examples = examples.with_features().of_labels(known_labels(Z), n_labels)
    return examples, Z


def known_labels(Z: CsrRows) -> np.ndarray:
    """Return the labels that have a feature."""
    return np.flatnonzero(np.diff(Z.indptr) > 0)


def epochs_of(
    model: NGAMEEmbeddingXC, examples: Examples, Z: CsrRows, sampler: Any, epochs: int
) -> tuple[BagOfEmbeddings, TimedSampler, SiameseTraining]:  # fmt: skip
    """Return an encoder that has started, its sampler, and the training to run."""
    encoder, seed = BagOfEmbeddings(), int(model.random_state)
    X, positives, weight = examples
    model.encoder_ = encoder  # of which "auto" depends
    encoder.start(inputs_of(X), model._dim, seed)
    timed = TimedSampler(clone(sampler))
    timed.start(model._batch_size_for(X.shape[0]), epochs, seed, 1)
    module = SiameseModule(
        encoder,
        X,
        Z.take(known_labels(Z)),
        model._dim,
        1,
        "ngame_curves",
        keep="last_seen" in sampler.reads,
    )
    training = SiameseTraining(
        module, positives, weight, timed, TripletLoss(model.margin, model.radius),
        model._rate_of("encoder"), epochs, seed, 1, lambda: inputs_of(X),
    )  # fmt: skip
    return encoder, timed, training


def _precision(
    model: NGAMEEmbeddingXC, encoder: BagOfEmbeddings, Z: CsrRows, labelled: LabelledSet
) -> float:
    """Return P@1 of the cosine with the labels' embeddings, on held-out instances."""
    V = encoder.encode(inputs_of(check_instances(model, labelled.X_test, reset=False)))
    index = ExactIndex(1)
    index.build(encoder.encode(inputs_of(Z)))
    return float(precision_at_k(labelled.Y_test, index.query(V, 1).labels, k=1))


def draw_samplers(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw held-out precision and the share of negatives within the margin against epochs.

    Parameters
    ----------
    rows : sequence of dict
        Of ``follow_samplers``, for one set.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(2)
    names = {
        "P@1": "held-out P@1 of the embedding",
        "violations": "share of negatives within the margin",
    }
    for ax, (value, name) in zip(axes, names.items(), strict=True):
        for key in dict.fromkeys(row["key"] for row in rows):
            of_key = [row for row in rows if row["key"] == key]
            colour, marker = _LOOKS[key]
            ax.plot(
                [row["epoch"] for row in of_key], [row[value] for row in of_key], color=colour,
                marker=marker, markersize=4, label=of_key[0]["method"],
            )  # fmt: skip
        ax.set_xlabel("epochs")
        ax.set_ylabel(name)
        ax.xaxis.get_major_locator().set_params(integer=True)
    log_axis(axes[1], "y")
    return with_legend(figure, axes[1])
