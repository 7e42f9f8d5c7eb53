"""How a model is trained: encoder, classifiers, fusion, in this order."""

import copy
from typing import Any

import numpy as np

from sklearn_xc._blank_rows import features_of
from sklearn_xc._checks import check_targets, check_weights, require_labels
from sklearn_xc._data import CsrRows, Targets
from sklearn_xc._seeds import draw_seed
from sklearn_xc.base import threshold_for
from sklearn_xc.embedding._encoding import first_strange, inputs_of, name_of, reads_texts
from sklearn_xc.embedding._examples import Examples, held_out, label_shards
from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.embedding._label_features import held_features, label_rows, label_texts, mean_rows
from sklearn_xc.embedding._lessons import pairs_of, pieces_of_pairs
from sklearn_xc.embedding._memory import FitSizes, of_added
from sklearn_xc.embedding._model import RankingModel
from sklearn_xc.embedding._modules import ClassifierModule, Module, SiameseModule
from sklearn_xc.embedding._new_classes import with_new_classes
from sklearn_xc.embedding._ranking import KnownFeatures
from sklearn_xc.embedding._parts import new_part
from sklearn_xc.embedding._report import EpochReport, FitReport, extended
from sklearn_xc.embedding._sampling import CheckedSampler
from sklearn_xc.embedding._training import SiameseTraining, TripletLoss
from sklearn_xc.encoders import ENCODERS
from sklearn_xc.mips import make_index
from sklearn_xc.parallel.progress import Progress
from sklearn_xc.parallel.row_ranges import for_row_ranges
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.solvers.adam import LazyAdam

#: What every encoder has; see `Encoder`.
_ENCODER_METHODS = ("start", "encode", "forward", "learn")
#: Held-out instances by which scores are fused and the threshold is set, at most. Source: appendix
#: C of the paper.
_MOST_HELD_OUT = 10_000
#: Instances of a mini-batch by default: an epoch has 200 of them, but for very few or many
#: instances. The largest is the paper's.
_STEPS_OF_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 200, 64, 1600
#: Weights of instances between which sums and products stay numbers, also of float32 in the tree.
_LIGHTEST, _HEAVIEST = 1e-20, 1e20
#: How often a pair of an instance and a label is drawn by default, and epochs at most. The fewest
#: epochs are those of one label each.
_DRAWS, _MOST_EPOCHS = {"encoder": 5, "classifier": 10}, 20
#: What parameters of the two modules are called.
_PREFIX = {"encoder": "", "classifier": "classifier_"}


class TrainableModel(RankingModel):
    """A model that learns; its subclass has the parameters and the methods that users call."""

    encoder: Any
    label_features: Any
    label_vectorizer: Any
    embedding_dim: int
    sampler: Any
    radius: float | None
    batch_size: Any
    n_shards: int
    fusion: bool
    fusion_weight: float
    validation_fraction: float
    random_state: Any
    verbose: int
    fit_report_: FitReport
    n_iter_: int
    _steps: LazyAdam | None
    _n_further: int

    def _fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, label_features: Any) -> None:
        name = type(self).__name__
        self.encoder_ = new_part(
            self.encoder, ENCODERS, _ENCODER_METHODS, f"{name}: encoder",
            "sklearn_xc.encoders.Encoder",
        )  # fmt: skip
        self._new_sampler()
        make_index(self.index, who=f"{name}: index")
        self._reads_texts = reads_texts(self.encoder_, type(self).__name__)
        instances = self._instances(X, reset=True, is_training=True)
        targets = check_targets(self, y, instances.shape[0], classes)
        weight = self._weights(sample_weight, instances.shape[0])
        examples = self._examples(instances, targets, weight)
        self._keep_targets(targets)
        self._seed = seed = draw_seed(self.random_state)
        n, n_labels = len(examples.weight), len(self.classes_)
        n_wanted = min(_MOST_HELD_OUT, int(self.validation_fraction * n))
        train, chosen = held_out(examples.positives, n_labels, n_wanted, seed)
        self._train(examples, train, chosen, label_features, seed)
        self._seen = examples.frequencies(n_labels)
        self._count_instances(targets, weight)
        self._fuse(examples, train, chosen, seed)
        self._n_further, self._steps = 0, None

    def _weights(self, sample_weight: Any, n: int) -> np.ndarray:
        weight = check_weights(self, sample_weight, n)
        if weight is None:
            return np.ones(n)
        strange = (weight > 0) & ((weight < _LIGHTEST) | (weight > _HEAVIEST))
        if strange.any():
            at = int(strange.argmax())
            raise ValueError(
                f"{type(self).__name__}: sample_weight must be 0 or from {_LIGHTEST:g} to "
                f"{_HEAVIEST:g}. Got {weight[at]:g} in row {at}. Divide all by their mean."
            )
        return weight

    def _examples(self, instances: CsrRows, targets: Targets, weight: np.ndarray) -> Examples:
        indptr, labels = targets.by_instance(instances.shape[0])
        examples = Examples.distinct(instances, indptr, labels, weight)
        require_labels(self, targets, examples.weight)
        return examples

    # Encoder and classifiers

    def _train(
        self, every: Examples, train: np.ndarray, chosen: np.ndarray, label_features: Any,
        seed: int,
    ) -> None:  # fmt: skip
        """Train encoder and classifiers on some of the examples; the others are held out."""
        n_labels = len(self.classes_)
        given = self.label_features if label_features is None else label_features
        Z = self._label_rows(given, n_labels, every.X.dtype)
        self._budget.require(self._sizes(every, train, chosen, Z).largest_phase())
        examples = every.take(train)
        self._features = None if Z is None or self._reads_texts else KnownFeatures(Z)
        self._described = None if Z is None else np.diff(Z.indptr) > 0
        self._known = features_of(every.X)
        if Z is not None:
            self._known |= features_of(Z)
        else:
            Z = mean_rows(examples.X, *examples.positives, n_labels, examples.weight)
        self._frequencies = examples.frequencies(n_labels).counts
        examples = examples.with_features()
        self.encoder_.start(inputs_of(examples.X), self.embedding_dim, seed)
        self._report(None, "encoder", self._train_encoder(examples, Z, seed))
        self.label_embeddings_ = self._encode(Z, int(self.embedding_dim), Z.dtype)
        self._require_finite("learning_rate", self.label_embeddings_)
        self.coef_ = self.label_embeddings_.copy()
        epochs = self._train_classifiers(examples, seed + 1)
        self._report(self.fit_report_, "classifier", epochs)
        self._require_finite("classifier_learning_rate", self.coef_)

    def _label_rows(self, given: Any, n_labels: int, dtype: Any) -> CsrRows | None:
        """Return what the encoder reads of the labels."""
        name, vectorizer = type(self).__name__, self.label_vectorizer
        if self._reads_texts:
            return label_texts(name, given, vectorizer, n_labels)
        return label_rows(name, given, vectorizer, n_labels, self.n_features_in_, dtype)

    def _train_encoder(self, examples: Examples, Z: CsrRows, seed: int) -> list[EpochReport]:
        """Train the encoder on what it can embed: instances and labels that have a feature."""
        known, n_jobs = np.flatnonzero(np.diff(Z.indptr) > 0), count_threads(self.n_jobs)
        _, examples = examples.of_labels(known, Z.shape[0])
        module = SiameseModule(
            self.encoder_, examples.X, Z.take(known), int(self.embedding_dim), n_jobs,
            type(self).__name__, keep="last_seen" in self._new_sampler().reads,
        )  # fmt: skip
        return self._run("encoder epoch", module, examples, seed)

    def _train_classifiers(self, examples: Examples, seed: int) -> list[EpochReport]:
        """Train the classifiers, of all labels together or shard by shard."""
        V = self._encode(examples.X, self.coef_.shape[1], self.coef_.dtype)
        self._require_finite("learning_rate", V)
        n_labels, n_epochs = len(self.classes_), self._epochs_for("classifier", examples)
        if min(self.n_shards, n_labels) < 2:
            module = ClassifierModule(V, self.coef_)
            return self._run("classifier epoch", module, examples, seed, n_epochs)
        shards = label_shards(n_labels, min(self.n_shards, n_labels), seed)
        reports: list[list[EpochReport]] = [[] for _ in shards]

        def work(first: int, last: int) -> None:
            for s in range(first, last):
                rows, own = examples.of_labels(shards[s], n_labels)
                W, what = self.coef_[shards[s]], f"shard {s + 1}, classifier epoch"
                reports[s] = self._run(
                    what, ClassifierModule(V[rows], W), own, seed + s, n_epochs, n_workers=1
                )
                self.coef_[shards[s]] = W

        for_row_ranges(work, len(shards), 1, count_threads(self.n_jobs))
        return [
            EpochReport.joined(of_epoch) for of_epoch in zip(*filter(None, reports), strict=True)
        ]

    def _run(
        self, what: str, module: Module, examples: Examples, seed: int,
        n_epochs: int | None = None, n_workers: int | None = None,
    ) -> list[EpochReport]:  # fmt: skip
        """Train a module; what it is for names its parameters."""
        kind = "encoder" if module.moves_instances else "classifier"
        if n_epochs is None:
            n_epochs = self._epochs_for(kind, examples)
        n = len(examples.weight)
        if n == 0:  # nothing of what there is has a feature
            return []
        n_jobs = count_threads(self.n_jobs)
        sampler = self._new_sampler()
        sampler.start(self._batch_size_for(n), n_epochs, seed, n_jobs)
        margin, rate = (getattr(self, _PREFIX[kind] + name) for name in ("margin", "learning_rate"))
        training = SiameseTraining(
            module, examples.positives, examples.weight, sampler,
            TripletLoss(float(margin), self.radius), rate, n_epochs, seed, n_workers or n_jobs,
            lambda: inputs_of(examples.X),
        )  # fmt: skip
        progress, reports = Progress(type(self).__name__, what, n_epochs), []
        for report in training.run():
            reports.append(report)
            if self.verbose:
                progress.show(len(reports), str(report))
        return reports

    def _new_sampler(self) -> CheckedSampler:
        """Return a sampler that has not started."""
        return CheckedSampler(self.sampler, type(self).__name__)

    def _epochs_for(self, kind: str, examples: Examples) -> int:
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
        if first_strange(values) < 0:
            return
        whose = name_of(self.encoder_) if rate == "learning_rate" else "a label's vector"
        raise ValueError(
            f"{type(self).__name__}: training diverged at {rate}={getattr(self, rate):g}: "
            f"{whose} has NaN or infinity. Lower it, or scale X and label_features "
            "(sklearn.preprocessing.normalize)."
        )

    def _sizes(
        self, every: Examples, train: np.ndarray, chosen: np.ndarray, Z: CsrRows | None
    ) -> FitSizes:
        """Return what memory is told by: of a fit, or of further training without held-out rows."""
        X, n_labels, n = every.X, len(self.classes_), len(train)
        shapes: Any = getattr(self.encoder_, "parameter_shapes", lambda n_features, dim: [])
        batch_size = min(self._batch_size_for(n), n)
        sampler = self._new_sampler()
        # Parameters of samplers are checked as they start.
        sampler.start(self._batch_size_for(n), self._epochs_for("encoder", every), 0, None)
        counts, n_values = np.diff(every.positives.indptr), np.diff(X.indptr)
        n_of_means = np.bincount(
            every.positives.labels, np.repeat(n_values, counts), minlength=n_labels
        )
        n_shards = min(self.n_shards, n_labels)
        n_scores = 2 if Z is None or self._reads_texts else 3
        return FitSizes(
            n=n,
            n_held_out=len(chosen),
            n_values=len(X.data),
            n_true=int(counts[chosen].sum()),
            n_labels=n_labels,
            n_label_values=len(Z.data)
            if Z is not None
            else int(np.minimum(n_of_means, X.shape[1]).sum()),
            dim=int(self.embedding_dim),
            itemsize=X.dtype.itemsize,
            parameters=shapes(None if self._reads_texts else X.shape[1], int(self.embedding_dim)),
            batch_size=batch_size,
            n_pool=min(batch_size * (1 + sampler.n_negatives), n_labels),
            reads=sampler.reads,
            n_copies=min(n_shards, count_threads(self.n_jobs)) if n_shards > 1 else 0,
            n_listed=min((n_scores - 1) * self.n_candidates, n_labels),
            n_scores=n_scores,
        )

    # Fusion

    def _fuse(self, examples: Examples, train: np.ndarray, chosen: np.ndarray, seed: int) -> None:
        """Grow the tree by held-out instances, and set the threshold of predictions."""
        self.fusion_ = None
        rng = np.random.default_rng((seed, 2))
        rows = chosen if len(chosen) else np.sort(rng.permutation(train)[:_MOST_HELD_OUT])
        unseen = examples.take(rows)
        if self.fusion and len(chosen):
            self._grow_tree(unseen, seed)
        self.threshold_ = 0.0
        if self._targets_kind != "classes":
            _, scores = self._topk_of(unseen.X, self._n_considered(), "fused", n_copies=2)
            self.threshold_ = threshold_for(scores, len(unseen.positives.labels))

    def _grow_tree(self, examples: Examples, seed: int) -> None:
        """Grow the tree by pairs of the shortlists, and the true ones."""
        ranking = self._ranking(with_shortlists=True)
        n_at_most = self._budget.piece // (100 * ranking.n_scores)
        lessons = []
        for rows in pieces_of_pairs(examples, self._n_listed(1), n_at_most):
            part = examples.take(rows)
            V = self._embed(part.X, "a row")
            lessons.append(pairs_of(part, V, ranking, self.n_candidates, self._frequencies))
        scores, label, is_own, weight = (
            np.concatenate(part) for part in zip(*lessons, strict=True)
        )
        if len(weight):  # otherwise the tree would be asked of no instance
            fusion = ScoreFusion(weight=float(self.fusion_weight), random_state=seed)
            self.fusion_ = fusion.fit(scores, self._frequencies[label], is_own, weight)

    # Changes to a fitted model

    def _partial_fit(self, examples: Examples) -> None:
        self._n_further += 1
        further = examples.frequencies(len(self.classes_))
        self._seen = self._seen.plus(further)
        self._frequencies = self._frequencies + further.counts
        examples = examples.with_features()
        everything = np.arange(len(examples.weight))
        sizes = self._sizes(examples, everything, everything[:0], None)
        self._budget.require(sizes._replace(dim=self.coef_.shape[1]).further())
        V = self._embed(examples.X, "a row")  # equal ones are one: their numbers say nothing
        self.coef_ = self.coef_.copy()
        steps = copy.deepcopy(self._steps)  # this call may be interrupted
        if steps is None:
            steps = LazyAdam(self.coef_.shape, self.coef_.dtype)
        module, self._steps = ClassifierModule(V, self.coef_, steps), steps
        seed = self._seed + self._n_further + 1
        epochs = self._run("classifier epoch", module, examples, seed, n_epochs=1)
        self._report(self.fit_report_, "classifier", epochs)
        self._require_finite("classifier_learning_rate", self.coef_)

    def _add_labels(self, label_features: Any, classes: Any) -> None:
        assert self._described is not None
        name = type(self).__name__
        held = held_features(label_features, f"{name}: label_features")
        Z = self._label_rows(held, held.n_labels, self.coef_.dtype)
        assert Z is not None
        classes = self._classes_with(classes, held.n_labels)
        n_values = len(Z.data) + (0 if self._features is None else len(self._features.rows.data))
        dim, itemsize = self.coef_.shape[1], self.coef_.itemsize
        self._budget.require(of_added(len(classes), dim, itemsize, n_values))
        order = np.argsort(classes, kind="stable")
        self.classes_ = classes[order]
        if self._features is not None:
            self._features = self._features.joined(Z, order)
        self._known = self._known | features_of(Z)
        vectors, zeros = self._embed(Z, "new label {}"), np.zeros(held.n_labels, np.int64)
        for name, new in (
            ("label_embeddings_", vectors), ("coef_", vectors), ("label_counts_", zeros),
            ("_frequencies", zeros), ("_described", np.diff(Z.indptr) > 0),
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), new])[order])
        self._seen = self._seen.with_labels(held.n_labels, order)
        self._unseen_labels = self._find_unseen()
        self._steps = None

    def _classes_with(self, classes: Any, n_new: int) -> np.ndarray:
        """Return the classes, and new ones after them."""
        name, n_old = type(self).__name__, len(self.classes_)
        if self._targets_kind == "classes":
            if self._is_binary:
                raise ValueError(
                    f"{name}: add_labels would make more than two classes of two; fit with an "
                    "indicator y, or with more classes."
                )
            return with_new_classes(name, self.classes_, classes, n_new)
        if classes is not None:
            raise ValueError(
                f"{name}: classes must be None after an indicator y, whose new columns follow from "
                f"{n_old} on. Got {type(classes).__name__}."
            )
        return np.arange(n_old + n_new)
