"""How a model is fitted: encoder, classifiers, fusion, in this order."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sklearn_xc._blank_rows import features_of
from sklearn_xc._checks import check_targets, check_weights, require_labels
from sklearn_xc._data import CsrRows, Targets
from sklearn_xc._label_features import LabelFeatures
from sklearn_xc._parts import new_part
from sklearn_xc._seeds import draw_seed
from sklearn_xc.base import threshold_for
from sklearn_xc.embedding._encoding import inputs_of, reads_texts
from sklearn_xc.embedding._examples import Examples, held_out
from sklearn_xc.embedding._fusion import Pairs
from sklearn_xc.embedding._fusion_pairs import pairs_of, pieces_of_pairs
from sklearn_xc.embedding._fusions import FUSIONS
from sklearn_xc.embedding._label_features import label_rows, label_texts, mean_rows
from sklearn_xc.embedding._label_means import (
    STAND_IN,
    LabelMeans,
    StandIns,
    best_cosines,
    best_word_cosines,
)
from sklearn_xc.embedding._memory import pieces_of
from sklearn_xc.embedding._ranking import KnownFeatures
from sklearn_xc.embedding._remembered import Remembered
from sklearn_xc.embedding._report import of_module
from sklearn_xc.embedding._texts import TextRows, content_of, features_beside, is_described
from sklearn_xc.embedding._trainable import TrainableEmbedding
from sklearn_xc.embedding._vectorizer import fitted_vectorizer, vectorized_rows
from sklearn_xc.encoders import ENCODERS
from sklearn_xc.mips import make_index
from sklearn_xc.parallel.progress import Fit
from sklearn_xc.parallel.ranks import ALONE, ranks
from sklearn_xc.samplers import SAMPLERS
from sklearn_xc.solvers.adam import LazyAdam
from sklearn_xc.storage.checkpoints import data_of
from sklearn_xc.storage.loops import Loop, kept_loops

#: What every encoder has; see `Encoder`.
_ENCODER_METHODS = ("start", "encode", "forward", "learn")
#: Held-out instances by which scores are fused and the threshold is set, at most. Source: appendix
#: C of the paper.
_MOST_HELD_OUT = 10_000
#: ``validation_fraction="auto"``: a share, or as many as are enough, but no larger share than that.
#: P@1 at 305, 775 and 1,294 rows with three tenths, and a tenth: 46.0 and 41.6, 56.3 and 56.2, 44.6
#: and 43.2, all rows being trained on afterwards.
_SHARE, _ENOUGH, _LARGEST_SHARE = 0.1, 300, 0.3
#: Held-out instances that tell how long what stands in for means is, at most.
_MOST_TELLING = 500
#: Instances that are embedded at a time for the means of their labels: sums round by it.
_EMBEDDED = 4096
#: Weights of instances between which sums and products stay numbers, also of float32 in a tree.
_LIGHTEST, _HEAVIEST = 1e-20, 1e20


class FittableEmbedding(TrainableEmbedding):
    """A model that is fitted; a subclass has the parameters."""

    encoder: Any
    checkpoint_dir: Any
    label_features: Any
    label_vectorizer: Any
    vectorizer: Any
    fusion: str
    validation_fraction: float | str
    random_state: Any
    _steps: LazyAdam | None
    _n_further: int

    def _fit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, label_features: Any, *,
        is_told: bool = True,
    ) -> None:  # fmt: skip
        """Train, and set all fitted attributes; without `is_told` callbacks hear nothing of it."""
        name = type(self).__name__
        self.encoder_ = new_part(
            self.encoder, ENCODERS, _ENCODER_METHODS, f"{name}: encoder",
            "sklearn_xc.encoders.Encoder",
        )  # fmt: skip
        self._check_objective()
        self._new_sampler()
        make_index(self.index, who=f"{name}: index")
        self._reads_texts = reads_texts(self.encoder_, type(self).__name__)
        self._check_vectorizer()
        instances = self._instances(X, reset=True, is_training=True)
        targets = check_targets(self, y, instances.shape[0], classes)
        weight = self._weights(sample_weight, instances.shape[0])
        examples = self._examples(instances, targets, weight)
        examples = examples._replace(X=self._fit_vectorizer(examples.X))
        self._keep_targets(targets)
        Z = self._given_label_rows(label_features, examples.X)
        seed = draw_seed(self.random_state)
        told = (X, y, sample_weight) if is_told else None
        data = data_of(instances, targets, weight)
        data |= {
            "X": content_of(instances), "label_features": None if Z is None else content_of(Z)
        }  # fmt: skip
        together = ranks() if getattr(self.encoder_, "trains_together", False) else ALONE
        self._require_own_parts()
        kept = kept_loops(self, data if is_told else None, seed, together)
        with kept as (loop, seed):
            self._fit_examples(examples, targets, weight, Z, seed, told, loop)

    def _require_own_parts(self) -> None:
        """Raise TypeError where what a part learns cannot be kept in ``checkpoint_dir``."""
        if self.checkpoint_dir is None:
            return
        sampler = self._new_sampler().kind
        parts = (("encoder", type(self.encoder_), ENCODERS), ("sampler", sampler, SAMPLERS))
        for name, kind, known in parts:
            if "_kept" not in vars(kind) and kind not in known.values():
                raise TypeError(
                    f"{type(self).__name__}: with checkpoint_dir, {name} must be one of "
                    f"{sorted(known)}, or an object of their classes: what others learn cannot be "
                    f"saved. Fit without checkpoint_dir. Got {kind.__name__}."
                )

    def _check_vectorizer(self) -> None:
        """Raise ValueError for a vectorizer beside an encoder that reads rows."""
        self.__dict__.pop("vectorizer_", None)  # of an earlier fit
        if not self._reads_texts and not isinstance(self.vectorizer, str | None):
            raise ValueError(
                f"{type(self).__name__}: vectorizer must be 'tfidf', its default, or None: the "
                "encoder reads features, not texts. Put a vectorizer before the classifier, "
                f"make_pipeline(TfidfVectorizer(), {type(self).__name__}()). Got "
                f"{type(self.vectorizer).__name__}."
            )

    def _fit_vectorizer(self, X: CsrRows) -> CsrRows:
        """Return instances with features beside texts: those that came with them, or ours."""
        if not isinstance(X, TextRows):
            return X
        self.vectorizer_ = None
        if X.features is not None:
            return X
        name = type(self).__name__
        self.vectorizer_ = fitted_vectorizer(self.vectorizer, X.texts, name)
        if self.vectorizer_ is None:
            return X
        return TextRows.of(X.texts, vectorized_rows(self.vectorizer_, X.texts, name))

    def _fit_examples(
        self, examples: Examples, targets: Targets, weight: np.ndarray, Z: CsrRows | None,
        seed: int, told: tuple[Any, Any, Any] | None, loop: Loop,
    ) -> None:  # fmt: skip
        """Train on examples; callbacks are `told` of the X, y and weights that they are of."""
        self._seed = seed
        n, n_labels = len(examples.weight), len(self.classes_)
        train, chosen = held_out(examples.positives, n_labels, self._n_to_hold_out(n), seed)
        # Encoder, classifiers and fusion, and with the held-out rows both or these once more.
        n_stages = 3 + (0 if not len(chosen) else 2 if self._learns_anew(chosen, n) else 1)
        fit = Fit.untold(self) if told is None else Fit(self, *told, n_stages)
        self._train(examples, train, chosen, Z, seed, fit, loop.within("held-out"))
        self._seen = examples.frequencies(n_labels)
        self._count_instances(targets, weight)
        progress = fit.parts("fusion", 0, stage="fusion")
        self._fuse(examples, train, chosen, seed)
        progress.close()
        self._learn_of_held_out(examples, chosen, Z, seed, fit, loop.within("all"))
        self._n_further, self._steps = 0, None
        self.__dict__.pop("_remembered", None)
        getattr(self.encoder_, "finish", lambda: None)()
        fit.end()

    def _n_to_hold_out(self, n: int) -> int:
        share = self.validation_fraction
        if isinstance(share, str):
            share = min(_LARGEST_SHARE, max(_SHARE, _ENOUGH / max(1, n)))
        return min(_MOST_HELD_OUT, int(share * n))

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

    def _check_objective(self) -> None:
        """Raise ValueError for an objective that wants probabilities where none can be had."""
        if self.objective == "propensity" and (
            self.fusion != "boosting" or self.validation_fraction == 0
        ):
            raise ValueError(
                f"{type(self).__name__}: objective='propensity' must have probabilities to weigh: "
                "fusion='boosting' and a validation_fraction above 0. Got "
                f"fusion={self.fusion!r}, validation_fraction={self.validation_fraction!r}."
            )

    def _examples(self, instances: CsrRows, targets: Targets, weight: np.ndarray) -> Examples:
        indptr, labels = targets.by_instance(instances.shape[0])
        examples = Examples.distinct(instances, indptr, labels, weight)
        require_labels(self, targets, examples.weight)
        return examples

    def _train(
        self, every: Examples, train: np.ndarray, chosen: np.ndarray, Z: CsrRows | None, seed: int,
        fit: Fit, loop: Loop,
    ) -> None:  # fmt: skip
        """Train encoder and classifiers on some of the examples; the others are held out."""
        n_labels = len(self.classes_)
        sizes = self._sizes(every, train, chosen, Z)
        self._budget.require(sizes._replace(n=len(every.weight)).largest_phase())
        examples = every.take(train)
        features = None if Z is None else features_beside(Z)
        self._features = None if features is None else KnownFeatures(features)
        self._described = None if Z is None else is_described(Z)
        self._known = features_of(every.X)
        if Z is not None:
            self._known |= features_of(Z)
        else:
            Z = mean_rows(examples.X, *examples.positives, n_labels, examples.weight)
        with_features = examples.with_features()
        self._start_encoder(with_features.X, seed)
        epochs = self._train_encoder(with_features, Z, seed, fit, loop.within("encoder"))
        self._report(None, "encoder", epochs)
        if isinstance(every.X, TextRows):
            is_told = self._is_frozen and bool(self.verbose)
            self._remembered = Remembered(
                every.X.texts, self._dim, type(self).__name__, is_told=is_told
            )
        self.label_embeddings_ = self._encode(Z, self._dim, Z.dtype)
        self._require_unit_rows(self.label_embeddings_)
        self._train_labels(examples, seed, fit, loop)

    def _start_encoder(self, X: CsrRows, seed: int) -> None:
        """Start the encoder, which is told what features are called; vectors it has are known."""
        self.__dict__.pop("_remembered", None)  # of another start
        hear = getattr(self.encoder_, "name_features", None)
        if hear is not None:
            hear(self._feature_names())
        self.encoder_.start(inputs_of(X), self._dim, seed)
        is_given = getattr(self.encoder_, "is_given_", None)
        if is_given is not None:
            self._known |= is_given

    def _feature_names(self) -> np.ndarray | None:
        """Return what features are called, as X or the vectorizer of label texts says."""
        if self._reads_texts:
            return None
        names, vectorizer = self.__dict__.get("feature_names_in_"), self.label_vectorizer
        if names is None and hasattr(vectorizer, "get_feature_names_out"):
            # One that is not fitted, or of no use here, is none of this method's business.
            with contextlib.suppress(ValueError, AttributeError):
                names = vectorizer.get_feature_names_out()
        return None if names is None or len(names) != self.n_features_in_ else np.asarray(names)

    def _train_labels(self, examples: Examples, seed: int, fit: Fit, loop: Loop) -> None:
        """Train classifiers, and find means, for the encoder that there is."""
        self._trained_counts = examples.frequencies(len(self.classes_)).counts
        examples = examples.with_features()
        self.coef_ = self.label_embeddings_.copy()
        epochs = self._train_classifiers(examples, seed + 1, fit, loop)
        self._report(of_module(self.fit_report_, "encoder"), "classifier", epochs)
        self._require_finite("classifier_learning_rate", self.coef_)
        self._means = self._means_of(examples)

    def _learn_of_held_out(
        self, every: Examples, chosen: np.ndarray, Z: CsrRows | None, seed: int, fit: Fit,
        loop: Loop,
    ) -> None:  # fmt: skip
        """Train again with all instances: the encoder only if it lacked many."""
        if self._learns_anew(chosen, len(every.weight)):
            everything = np.arange(len(every.weight))
            self._train(every, everything, everything[:0], Z, seed, fit, loop)
        elif len(chosen):
            self._train_labels(every, seed, fit, loop)
        self._fill_means()

    def _learns_anew(self, chosen: np.ndarray, n: int) -> bool:
        """Return whether an encoder was trained without so many of n rows that it learns anew."""
        return len(chosen) > _SHARE * n and not self._is_frozen

    def _means_of(self, examples: Examples) -> LabelMeans:
        """Return the means of the labels' instances."""
        dim, dtype = self.coef_.shape[1], self.coef_.dtype

        def embedded() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for rows in pieces_of(len(examples.weight), _EMBEDDED):
                yield rows, self._encode(examples.X.take(rows), dim, dtype)

        return LabelMeans.of(examples, embedded(), len(self.classes_), dim)

    def _given_label_rows(self, label_features: Any, X: CsrRows) -> CsrRows | None:
        """Return what is known of the labels, as ``fit`` or the constructor was given it."""
        given = self.label_features if label_features is None else label_features
        if isinstance(given, LabelFeatures):
            given = given.of_classes(self.classes_, f"{type(self).__name__}: label_features")
        features = features_beside(X)
        width = None if features is None else features.shape[1]
        return self._label_rows(given, len(self.classes_), X.dtype, width)

    def _label_rows(
        self, given: Any, n_labels: int, dtype: Any, n_features: int | None
    ) -> CsrRows | None:
        """Return what is known of labels; `n_features` is what instances have, None without any."""
        name, vectorizer = type(self).__name__, self.label_vectorizer
        if not self._reads_texts:
            return label_rows(name, given, vectorizer, n_labels, self.n_features_in_, dtype)
        width = n_features if self._is_given_features else None
        texts = label_texts(name, given, vectorizer, n_labels, width)
        return self._with_features(texts, n_features)

    def _fuse(self, examples: Examples, train: np.ndarray, chosen: np.ndarray, seed: int) -> None:
        """Fuse scores by held-out instances, and set the threshold of predictions."""
        self.fusion_ = None
        rng = np.random.default_rng((seed, 2))
        rows = chosen if len(chosen) else np.sort(rng.permutation(train)[:_MOST_HELD_OUT])
        unseen = examples.take(rows)
        self._stand_ins = self._find_stand_ins(examples.take(chosen[:_MOST_TELLING]))
        self._fill_means()
        if self.fusion != "sum" and len(chosen):
            self._learn_fusion(unseen, seed)
        self.threshold_ = 0.0
        if self._targets_kind != "classes":
            n = self._n_considered()
            _, scores = self._topk_of(unseen.X, n, "fused", n_copies=2, with_gains=False)
            self.threshold_ = threshold_for(scores, len(unseen.positives.labels))

    def _find_stand_ins(self, examples: Examples) -> StandIns:
        """Return how long what stands in for means is, by instances held out."""
        words = None if self._features is None else self._features.rows
        seen = np.flatnonzero(self._means.lengths > 0)
        if not len(examples.weight) or not seen.size or words is None:
            return StandIns()
        V, every = self._embed(examples.X, "a row"), slice(None)
        highest = [
            best_cosines(V, rows[at]).mean()
            for rows, at in ((self._means.vectors, seen), (self.label_embeddings_, every))
        ]
        features = features_beside(examples.X)
        if self._means.words is not None and features is not None:
            highest += [
                best_word_cosines(features, rows).mean() for rows in (self._means.words, words)
            ]
        ratios = [
            min(1.0, float(a / b)) if a > 0 and b > 0 else STAND_IN
            for a, b in zip(highest[::2], highest[1::2], strict=True)
        ]
        return StandIns(*ratios)

    def _fill_means(self) -> None:
        """Let embeddings and features of labels stand in for means of instances, where none are."""
        words = None if self._features is None else self._features.rows
        self._means = self._means.filled(self.label_embeddings_, words, self._stand_ins)

    def _learn_fusion(self, examples: Examples, seed: int) -> None:
        """Learn from pairs of the shortlists how to fuse scores."""
        ranking = self._ranking(with_shortlists=True)
        n_at_most = self._budget.piece // (100 * ranking.n_scores)
        lessons = []
        for rows in pieces_of_pairs(examples, self._n_listed(1), n_at_most):
            part = examples.take(rows)
            V = self._embed(part.X, "a row")
            lesson = pairs_of(part, V, ranking, self.n_candidates, len(self.classes_))
            lessons.append(lesson._replace(of=rows[lesson.of]))
        pairs = Pairs(*(np.concatenate(part) for part in zip(*lessons, strict=True)))
        frequencies = self._trained_counts[pairs.label]
        # Every label of a held-out instance also has training instances, by choice. Shown labels
        # without any, a learner would find that they are always wrong: they count as the rarest.
        seen = np.flatnonzero(frequencies > 0)
        pairs = Pairs(*(column[seen] for column in pairs))
        if pairs.is_own.any() and not pairs.is_own.all():  # there is something to learn
            self.fusion_ = FUSIONS[self.fusion](random_state=seed).fit(pairs, frequencies[seen])
