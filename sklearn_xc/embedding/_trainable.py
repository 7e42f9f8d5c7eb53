"""How encoder and classifiers are trained by the parameters of an estimator, and reported."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.embedding._encoding import first_non_finite, inputs_of, name_of, require_unit_rows
from sklearn_xc.embedding._examples import Examples, label_shards
from sklearn_xc.embedding._memory import FitSizes
from sklearn_xc.embedding._model import RankingModel
from sklearn_xc.embedding._modules import ClassifierModule, Module, SiameseModule
from sklearn_xc.embedding._report import EpochReport, FitReport, extended
from sklearn_xc.embedding._sampling import CheckedSampler
from sklearn_xc.embedding._shortlist import is_exact
from sklearn_xc.embedding._texts import features_beside, n_values
from sklearn_xc.embedding._training import SiameseTraining, TripletLoss
from sklearn_xc.parallel.engines import Engine, engine_at_work
from sklearn_xc.parallel.progress import Fit, Progress
from sklearn_xc.parallel.row_ranges import for_row_ranges
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.storage.loops import Loop

#: Instances of a mini-batch by default: an epoch has 200 of them, except with very few or many
#: instances. The largest is the paper's.
_STEPS_OF_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 200, 64, 1600
#: How often a pair of an instance and a label is drawn by default, and epochs at most. The fewest
#: epochs are those of one label each.
_DRAWS, _MOST_EPOCHS = {"encoder": 5, "classifier": 10}, 20
#: Dimension, and learning rates, where neither the user nor the encoder says one.
_DIM, _RATE = 256, {"encoder": 0.003, "classifier": 0.01}
#: What parameters of the two modules are called.
_PREFIX = {"encoder": "", "classifier": "classifier_"}


class _Shards(NamedTuple):
    """What the training of every shard of labels needs."""

    estimator: "TrainableEmbedding"
    examples: Examples
    V: np.ndarray
    shards: list[np.ndarray]
    n_labels: int
    n_epochs: int
    seed: int


def _train_shard(
    shared: _Shards, s: int, W: np.ndarray, loop: Loop
) -> tuple[np.ndarray, list[EpochReport]]:
    """Return the classifiers of a shard, and what its epochs were, in a worker."""
    rows, own = shared.examples.of_labels(shared.shards[s], shared.n_labels)
    W = np.array(W)
    reports = shared.estimator._run(
        ClassifierModule(shared.V[rows], W), own, shared.seed + s, Fit.untold(shared.estimator),
        loop.where_shared(), shared.n_epochs, n_workers=1,
    )  # fmt: skip
    return W, reports


class TrainableEmbedding(RankingModel):
    """A model whose encoder and classifiers learn from examples."""

    embedding_dim: Any
    learning_rate: Any
    classifier_learning_rate: Any
    sampler: Any
    radius: float | None
    batch_size: Any
    n_shards: int
    verbose: int
    fit_report_: FitReport
    n_iter_: int

    def _train_encoder(
        self, examples: Examples, Z: CsrRows, seed: int, fit: Fit, loop: Loop
    ) -> list[EpochReport]:
        """Train the encoder on what it can embed: instances and labels that have a feature."""
        known, n_jobs = np.flatnonzero(np.diff(Z.indptr) > 0), count_threads(self.n_jobs)
        _, examples = examples.of_labels(known, Z.shape[0])
        module = SiameseModule(
            self.encoder_, examples.X, Z.take(known), self._dim, n_jobs,
            type(self).__name__, keep="last_seen" in self._new_sampler().reads,
        )  # fmt: skip
        return self._run(module, examples, seed, fit, loop)

    def _train_classifiers(
        self, examples: Examples, seed: int, fit: Fit, loop: Loop
    ) -> list[EpochReport]:
        """Train the classifiers, of all labels together or shard by shard."""
        V = self._encode(examples.X, self.coef_.shape[1], self.coef_.dtype)
        self._require_unit_rows(V)
        n_labels, n_epochs = len(self.classes_), self._epochs_for("classifier", examples)
        if min(self.n_shards, n_labels) < 2:
            module = ClassifierModule(V, self.coef_)
            return self._run(module, examples, seed, fit, loop.within("classifiers"), n_epochs)
        shards = label_shards(n_labels, min(self.n_shards, n_labels), seed)
        reports: list[list[EpochReport]] = [[] for _ in shards]
        progress = fit.parts(
            "shard", len(shards), stage="classifier", unit="shards", in_order=False
        )

        engine = engine_at_work()
        if engine.is_cluster:
            self._send_shards(engine, examples, V, shards, n_epochs, seed, loop, progress, reports)
        else:
            self._train_shards(examples, V, shards, n_epochs, seed, fit, loop, progress, reports)
        progress.close()
        # Shards may have different numbers of epochs only where a callback has stopped some.
        return [
            EpochReport.joined([report for report in of_epoch if report is not None])
            for of_epoch in itertools.zip_longest(*filter(None, reports))
        ]

    def _train_shards(
        self, examples: Examples, V: np.ndarray, shards: list[np.ndarray], n_epochs: int,
        seed: int, fit: Fit, loop: Loop, progress: Progress, reports: list[list[EpochReport]],
    ) -> None:  # fmt: skip
        """Train the classifiers of all shards in threads."""
        n_labels = len(self.classes_)

        def work(first: int, last: int) -> None:
            for s in range(first, last):
                rows, own = examples.of_labels(shards[s], n_labels)
                task = progress.part(s, n_epochs if len(own.weight) else 0).begin()
                of_shard = fit.within(
                    task, "epoch", n_epochs, unit=f"shard {s + 1}, classifier epoch"
                )
                W = self.coef_[shards[s]]
                reports[s] = self._run(
                    ClassifierModule(V[rows], W), own, seed + s, fit, loop.within(f"shard-{s}"),
                    n_epochs, n_workers=1, progress=of_shard,
                )  # fmt: skip
                self.coef_[shards[s]] = W
                progress.ended("trained")

        for_row_ranges(work, len(shards), 1, count_threads(self.n_jobs))

    def _send_shards(
        self, engine: Engine, examples: Examples, V: np.ndarray, shards: list[np.ndarray],
        n_epochs: int, seed: int, loop: Loop, progress: Progress,
        reports: list[list[EpochReport]],
    ) -> None:  # fmt: skip
        """Train the classifiers of all shards on a cluster; callbacks hear of no epochs."""
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        parameters["classifier_learning_rate"] = self._rate_of("classifier")  # an encoder may say
        like_this = type(self)(**{**parameters, "verbose": 0, "n_jobs": None})
        tasks = {s: progress.part(s) for s in range(len(shards))}

        def begun() -> Iterator[tuple[int, tuple[Any, ...]]]:
            for s, task in tasks.items():
                task.begin()
                yield s, (s, self.coef_[shards[s]], loop.within(f"shard-{s}"))

        shared = _Shards(like_this, examples, V, shards, len(self.classes_), n_epochs, seed)
        with engine.sharing(shared, type(self).__name__) as place:
            for s, found in place.run(_train_shard, begun(), engine.count(self.n_jobs).n):
                self.coef_[shards[s]], reports[s] = found
                tasks[s].end()
                progress.ended("trained")

    def _run(
        self, module: Module, examples: Examples, seed: int, fit: Fit, loop: Loop,
        n_epochs: int | None = None, n_workers: int | None = None,
        progress: Progress | None = None,
    ) -> list[EpochReport]:  # fmt: skip
        """Train a module, as a stage of its own or as what is told to `progress`.

        What a module is for names its parameters. There are fewer epochs if a callback asks for it.
        """
        kind = "encoder" if module.moves_instances else "classifier"
        if n_epochs is None:
            n_epochs = self._epochs_for(kind, examples)
        n = len(examples.weight)
        if progress is None:
            n_parts = n_epochs if n else 0
            progress = fit.parts("epoch", n_parts, stage=kind, unit=f"{kind} epoch")
        if n == 0:  # nothing of what there is has a feature
            progress.close()
            return []
        n_jobs = count_threads(self.n_jobs)
        sampler = self._new_sampler()
        sampler.start(self._batch_size_for(n), n_epochs, seed, n_jobs)
        margin, rate = getattr(self, f"{_PREFIX[kind]}margin"), self._rate_of(kind)
        training = SiameseTraining(
            module, examples.positives, examples.weight, sampler,
            TripletLoss(float(margin), self.radius), rate, n_epochs, seed, n_workers or n_jobs,
            lambda: inputs_of(examples.X),
        )  # fmt: skip
        found = loop.get()
        reports: list[EpochReport] = [] if found is None else training.resume(found)
        for _ in reports:
            progress.known()
        n_known = len(reports)

        def reached() -> dict[str, np.ndarray]:
            return training.kept(reports)

        with contextlib.closing(training.run(len(reports))) as epochs:
            for _ in range(len(reports), n_epochs):
                task = progress.begin()
                reports.append(next(epochs))
                loop.put(reached)
                if progress.end(task, str(reports[-1])):
                    break
        if len(reports) > n_known:
            loop.put(reached, is_final=True)
        progress.close()
        return reports

    def _new_sampler(self) -> CheckedSampler:
        """Return a sampler that has not started."""
        return CheckedSampler(self.sampler, type(self).__name__)

    @property
    def _dim(self) -> int:
        """How long embeddings are: as asked for, or as suits the encoder."""
        if self.embedding_dim != "auto":
            return int(self.embedding_dim)
        default: Any = getattr(self.encoder_, "default_dim", lambda: _DIM)
        return int(default())

    def _rate_of(self, kind: str) -> float:
        """Return the learning rate of a module at the beginning."""
        rate = getattr(self, f"{_PREFIX[kind]}learning_rate")
        if rate == "auto":
            name = f"default_{_PREFIX[kind]}learning_rate"
            rate = getattr(self.encoder_, name, _RATE[kind])
        return float(rate)

    @property
    def _is_frozen(self) -> bool:
        """Whether the encoder is not to be trained."""
        return bool(getattr(self.encoder_, "is_frozen", False))

    def _epochs_for(self, kind: str, examples: Examples) -> int:
        if kind == "encoder" and self._is_frozen:
            return 0
        n_epochs = getattr(self, f"{_PREFIX[kind]}max_iter")
        if n_epochs != "auto":
            return int(n_epochs)
        n_pairs, n = len(examples.positives.labels), len(examples.weight)
        return round(min(_MOST_EPOCHS, _DRAWS[kind] * n_pairs / max(1, n)))

    def _batch_size_for(self, n: int) -> int:
        if self.batch_size != "auto":
            return int(self.batch_size)
        return min(_LARGEST_BATCH, max(_SMALLEST_BATCH, n // _STEPS_OF_EPOCH))

    def _report(self, report: FitReport | None, module: str, epochs: list[EpochReport]) -> None:
        self.fit_report_ = extended(report, module, epochs)
        self.n_iter_ = len(self.fit_report_["loss"])

    def _require_finite(self, rate: str, values: np.ndarray) -> None:
        """Raise an error for what overflowed: NaN is within no margin, so that no loss tells."""
        if first_non_finite(values) < 0:
            return
        kind = "encoder" if rate == "learning_rate" else "classifier"
        whose = name_of(self.encoder_) if kind == "encoder" else "a label's vector"
        raise ValueError(
            f"{type(self).__name__}: training diverged at {rate}={self._rate_of(kind):g}: "
            f"{whose} has NaN or infinity. Lower it, or scale X and label_features "
            "(sklearn.preprocessing.normalize)."
        )

    def _require_unit_rows(self, V: np.ndarray) -> None:
        """Raise an error for embeddings of a trained encoder that are no unit vectors."""
        self._require_finite("learning_rate", V)
        require_unit_rows(V, f"{type(self).__name__}: encode of {name_of(self.encoder_)}")

    def _sizes(
        self, every: Examples, train: np.ndarray, chosen: np.ndarray, Z: CsrRows | None
    ) -> FitSizes:
        """Return what memory is told by: of a fit, or of further training without held-out rows."""
        X, n_labels, n = every.X, len(self.classes_), len(train)
        shapes: Any = getattr(self.encoder_, "parameter_shapes", lambda n_features, dim: [])
        of_batch: Any = getattr(self.encoder_, "batch_shapes", lambda n: [])
        batch_size = min(self._batch_size_for(n), n)
        sampler = self._new_sampler()
        # Parameters of samplers are checked as they start.
        sampler.start(self._batch_size_for(n), self._epochs_for("encoder", every), 0, None)
        counts, lengths = np.diff(every.positives.indptr), np.diff(X.indptr)
        n_of_means = np.bincount(
            every.positives.labels, np.repeat(lengths, counts), minlength=n_labels
        )
        n_shards = min(self.n_shards, n_labels)
        has_features = Z is not None and features_beside(Z) is not None
        n_kinds = 1 + has_features * (1 + is_exact(self.index))
        return FitSizes(
            n=n,
            n_held_out=len(chosen),
            n_values=n_values(X),
            n_true=int(counts[chosen].sum()),
            n_labels=n_labels,
            n_label_values=n_values(Z)
            if Z is not None
            else int(np.minimum(n_of_means, X.shape[1]).sum()),
            dim=self._dim,
            itemsize=X.dtype.itemsize,
            parameters=shapes(None if self._reads_texts else X.shape[1], self._dim),
            batch_size=batch_size,
            n_pool=(n_pool := min(batch_size * (1 + sampler.n_negatives), n_labels)),
            passes=of_batch(batch_size + n_pool) if self._epochs_for("encoder", every) else (),
            is_of_texts=bool(self._reads_texts),
            reads=sampler.reads,
            n_copies=min(n_shards, count_threads(self.n_jobs)) if n_shards > 1 else 0,
            n_listed=min(n_kinds * self.n_candidates, n_labels),
            n_scores=3 + has_features + (features_beside(X) is not None),
        )
