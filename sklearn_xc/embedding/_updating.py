"""How a fitted model changes: further instances, and further labels."""

import copy
from typing import Any

import numpy as np

from sklearn_xc._blank_rows import features_of
from sklearn_xc._label_features import LabelFeatures
from sklearn_xc._new_classes import are_names, with_new_classes, with_new_names
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._fitting import FittableEmbedding
from sklearn_xc.embedding._label_features import held_features
from sklearn_xc.embedding._label_means import LabelMeans
from sklearn_xc.embedding._memory import of_added
from sklearn_xc.embedding._modules import ClassifierModule
from sklearn_xc.embedding._texts import features_beside, is_described, n_values
from sklearn_xc.parallel.progress import Fit
from sklearn_xc.solvers.adam import LazyAdam
from sklearn_xc.storage.loops import Loop


class UpdatableEmbedding(FittableEmbedding):
    """A fitted model that takes further instances and labels."""

    def _partial_fit(self, examples: Examples) -> None:
        self._n_further += 1
        examples = examples._replace(X=self._with_features(examples.X))
        further = examples.frequencies(len(self.classes_))
        self._seen = self._seen.plus(further)
        self._trained_counts = self._trained_counts + further.counts
        examples = examples.with_features()
        everything = np.arange(len(examples.weight))
        sizes = self._sizes(examples, everything, everything[:0], None)
        self._budget.require(sizes._replace(dim=self.coef_.shape[1]).further())
        V = self._embed(examples.X, "a row")  # equal ones are one: their numbers say nothing
        further_means = LabelMeans.of(examples, [(np.arange(len(V)), V)], *self.coef_.shape)
        self._means = self._means.plus(further_means)
        self.coef_ = self.coef_.copy()
        steps = copy.deepcopy(self._steps)  # this call may be interrupted
        if steps is None:
            steps = LazyAdam(self.coef_.shape, self.coef_.dtype)
        module, self._steps = ClassifierModule(V, self.coef_, steps), steps
        seed = self._seed + self._n_further + 1
        epochs = self._run(module, examples, seed, Fit.untold(self), Loop(), n_epochs=1)
        self._report(self.fit_report_, "classifier", epochs)
        self._require_finite("classifier_learning_rate", self.coef_)

    def _add_labels(self, label_features: Any, classes: Any) -> None:
        assert self._described is not None
        name = type(self).__name__
        held = held_features(label_features, f"{name}: label_features")
        if held.classes is not None:
            held, classes = self._rows_of_new(held, classes)
        width = None if self._features is None else self._features.rows.shape[1]
        Z = self._label_rows(held, held.n_labels, self.coef_.dtype, width)
        assert Z is not None
        classes = self._classes_with(classes, held.n_labels)
        n_known = 0 if self._features is None else len(self._features.rows.data)
        dim, itemsize = self.coef_.shape[1], self.coef_.itemsize
        self._budget.require(of_added(len(classes), dim, itemsize, n_values(Z) + n_known))
        is_one_d = self._targets_kind == "classes"  # columns stay where they are
        order = np.argsort(classes, kind="stable") if is_one_d else np.arange(len(classes))
        self.classes_ = classes[order]
        features = features_beside(Z)
        if self._features is not None and features is not None:
            self._features = self._features.joined(features, order)
        self._known = self._known | features_of(Z)
        vectors, zeros = self._embed(Z, "new label {}"), np.zeros(held.n_labels, np.int64)
        words = None if self._features is None else self._features.rows.take(np.argsort(order))
        n_old = len(classes) - held.n_labels
        new_words = None if words is None else words.take(np.arange(n_old, len(classes)))
        self._means = self._means.joined(vectors, new_words, order, self._stand_ins)
        for name, new in (
            ("label_embeddings_", vectors), ("coef_", vectors), ("label_counts_", zeros),
            ("_trained_counts", zeros), ("_described", is_described(Z)),
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), new])[order])
        self._seen = self._seen.with_labels(held.n_labels, order)
        self._unseen_labels = self._find_unseen()
        self._steps = None

    def _rows_of_new(self, held: LabelFeatures, classes: Any) -> tuple[LabelFeatures, Any]:
        """Return the rows of new classes, and these; for columns, which follow, None."""
        name = f"{type(self).__name__}: label_features"
        if self._targets_kind == "classes" or self._has_names:
            classes = held.classes if classes is None else np.asarray(classes)
            return held.of_classes(classes, name), classes
        n_old = len(self.classes_)
        return held.of_classes(np.arange(n_old, n_old + held.n_labels), name), classes

    def _classes_with(self, classes: Any, n_new: int) -> np.ndarray:
        """Return the classes, and new ones after them."""
        name = type(self).__name__
        if self._targets_kind == "classes":
            if self._is_binary:
                raise ValueError(
                    f"{name}: add_labels would make more than two classes of two; fit with an "
                    "indicator y, or with more classes."
                )
            return with_new_classes(name, self.classes_, classes, n_new)
        return with_new_names(name, self.classes_, classes, n_new)

    @property
    def _has_names(self) -> bool:
        """Whether the columns of an indicator have names."""
        return are_names(self.classes_)
