"""A vectorizer, a classifier and the names of labels, as one estimator."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc import LabelBinarizerXC
from sklearn_xc._input.arguments import as_sequence, is_sequence
from sklearn_xc._input.checks import check_class_array, check_targets
from sklearn_xc._input.parts import ParameterizedParts, default_vectorizer, is_vectorizer
from sklearn_xc._input.refits import (
    RefittableFeatures,
    is_bound_to_columns,
    may_refit,
    vectorizer_names,
)
from sklearn_xc._input.routing import RoutesFit
from sklearn_xc._input.sklearn_private import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    num_samples,
)
from sklearn_xc._input.texts_with_features import TextsWithFeatures, as_texts
from sklearn_xc._labels.allowed import AllowedLabels, read_allowed
from sklearn_xc._labels.changes import ChangeableLabels, estimator_of_labels, estimator_with_classes
from sklearn_xc._labels.features import LabelFeatures
from sklearn_xc._labels.name_lists import are_name_lists, warn_of_missing, warn_of_separator
from sklearn_xc._labels.names import as_name_array
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import SavedEstimator, fits_in_one_step, reads_snapshot
from sklearn_xc._state.schema import Array, Estimator, Tested, declares
from sklearn_xc._topk import topk_allowed, topk_probabilities, unwrap
from sklearn_xc.ensemble.auto import AutoXC
from sklearn_xc.ensemble.members import fitted_counterpart
from sklearn_xc.ensemble.thresholds import ThresholdTuner
from sklearn_xc.metrics import precision_at_k
from sklearn_xc.one_vs_all import OvALinearXC
from sklearn_xc.text.inputs import check_texts, estimator_reads_texts, fit_with_label_texts


def _has(method: str) -> Any:
    """Return a check, for ``available_if``, that the classifier has a method."""

    def check(self: "TextClassifierXC") -> bool:
        classifier = getattr(self, "classifier_", self._given_classifier)
        return hasattr(OvALinearXC() if classifier is None else classifier, method)

    return check


@declares(
    binarizer_=Estimator("inverse_transform", optional=True, labels="labels"),
    classifier_=Estimator(labels="labels"),
    vectorizer_=Tested("a vectorizer of as many words as are known", is_vectorizer, optional=True),
    _unseen_labels=Array("int64", None, below="labels", ascending=True, optional=True),
)
class TextClassifierXC(
    RoutesFit,
    ParameterizedParts,
    ChangeableLabels,
    SavedEstimator,
    CallbackSupportMixin,
    BaseEstimator,
):
    """Classifier from texts to names of labels.

    It holds a vectorizer, a classifier and the names, which are cloned, searched, cross-validated
    and pickled as one. Label texts go through the same vectorizer, which is fitted again in each
    fold. A classifier that reads texts itself gets them unchanged:
    :class:`~sklearn_xc.NGAMEEmbeddingXC` with a
    :class:`~sklearn_xc.embedding.encoders.TransformerEncoder`,
    or a stack of such classifiers and of Pipelines that begin with a vectorizer.

    Parameters
    ----------
    vectorizer : transformer, default=None
        Turns texts, or whatever `X` is, into the input of the classifier. None is
        ``TfidfVectorizer(sublinear_tf=True, dtype=numpy.float32)``, or no vectorizer for a
        classifier that reads texts itself.
    classifier : classifier or "auto", default=None
        None is ``OvALinearXC()`` if each instance has one class, otherwise
        ``ThresholdTuner(OvALinearXC(), random_state=0)``, because rare labels seldom score above
        0. "auto" is ``AutoXC(random_state=0)``, which tries several classifiers on held-out rows.
    separator : str, default=None
        The separator between names, such as ";", if `y` has one string of names for each instance.
        Blanks around names are ignored.
    min_count : int, default=1
        Names that occur in fewer training instances are not learnt.
    label_texts : mapping of name to text, or pandas Series, default=None
        What is known about labels, for a classifier with a parameter `label_features`, such as
        :class:`~sklearn_xc.NGAMEEmbeddingXC`. If `y` is lists of names, names that occur only here
        become labels without a training instance. The vectorizer learns the words of label texts,
        too, and counts these among its documents. With None, :class:`~sklearn_xc.AutoXC`, and a
        classifier that reads texts itself, get the names as label texts.
    warm_start : bool, default=False
        Whether a further ``fit`` starts at the last one: pass all rows, old and new. The vectorizer
        is fitted again and everything is learned again, but each
        :class:`~sklearn_xc.OvALinearXC` starts at its last weights, also inside thresholds,
        probabilities and stacks; words and labels are matched by name. It ends at the same optimum,
        within its `tol`. All other classifiers are fitted from nothing, and so are classifiers that
        read texts themselves. Of its own candidates, :class:`~sklearn_xc.AutoXC` tries only what it
        has chosen last: one, or the members of a stack. It is an error if its `time_budget` is too
        short for that; the last fit is kept then.

    Attributes
    ----------
    vectorizer_, classifier_ : estimator
        Fitted. The vectorizer is None if the classifier reads texts itself.
    binarizer_ : LabelBinarizerXC or None
        Fitted, if `y` was names.
    classes_ : ndarray of shape (n_labels,)
        Names of the labels.
    label_counts_, n_samples_fit_
        The classifier's.

    See Also
    --------
    sklearn_xc.topk_names : The best labels by name.

    Notes
    -----
    If thresholds, probabilities or a stack are learned from rows held out of the classifier, the
    vectorizer is also fitted without these rows: otherwise all of their words would be known,
    unlike those of new texts. Only if parameters of the classifier refer to each column, such as
    `label_features` that are rows of numbers, it is fitted once, to all rows.

    With `warm_start`, a label with a held-out positive is fitted from nothing without the held-out
    rows, as the last weights have seen it.

    The form of `y` decides what ``predict`` returns: lists of names for lists of names, or for
    strings with a `separator`; an array of classes for one class per instance, as string or
    number; an indicator for an indicator, be it sparse, dense or a data frame.

    Examples
    --------
    >>> from sklearn_xc import TextClassifierXC, topk_names
    >>> texts = ["how to freeze soup", "freezing bread dough", "a clear soup stock", "rye bread"]
    >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
    >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
    >>> topk_names(tagger, ["freeze the soup"], k=2)
    [['soup', 'freezing']]
    """

    #: Of a classifier that does not rank them last itself.
    _unseen_labels: np.ndarray = np.empty(0, np.int64)

    _parameter_constraints: dict = {  # noqa: RUF012
        "vectorizer": [HasMethods(["fit", "transform"]), None],
        "classifier": [HasMethods(["fit"]), StrOptions({"auto"}), None],
        "separator": [str, None],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "label_texts": [None, Mapping, HasMethods(["items"])],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        vectorizer: Any = None,
        classifier: Any = None,
        *,
        separator: str | None = None,
        min_count: int = 1,
        label_texts: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.vectorizer = vectorizer
        self.classifier = classifier
        self.separator = separator
        self.min_count = min_count
        self.label_texts = label_texts
        self.warm_start = warm_start

    def _default_part(self, name: str) -> Any:
        if name == "vectorizer":
            return default_vectorizer()
        return ThresholdTuner(OvALinearXC(), random_state=0) if name == "classifier" else None

    @property
    def _given_classifier(self) -> Any:
        """The parameter, an object where it is a name."""
        is_name = isinstance(self.classifier, str)
        return AutoXC(random_state=0) if is_name else self.classifier

    @fit_context(prefer_skip_nested_validation=False)
    @fits_in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TextClassifierXC":
        """Fit the vectorizer and the classifier.

        Parameters
        ----------
        X : sequence of n texts
            Texts, also as a data frame of one column, or whatever the vectorizer accepts.
        y : sequence of n lists of names, or of n texts; or an indicator of shape (n, n_labels)
            The labels of each instance. Lists of integers are names, unless all have one length
            and hold only 0 and 1. A row of None, NaN or NA is trained as one without labels, with
            a warning: drop it if they are unknown. With one class for each instance, it is an
            error.
        sample_weight : array-like of shape (n,), default=None
            Passed to the classifier; with metadata routing enabled, if it requests them.

        Returns
        -------
        TextClassifierXC
            Itself.

        Raises
        ------
        ValueError, TypeError
            If the vectorizer or the classifier refuses the input; for invalid names, and for
            `label_texts` that no part of the classifier takes.
        """
        caller = type(self).__name__
        fit = Fit(self, X, y, sample_weight)
        vectorizer = self._new_vectorizer()
        last = self._last_fit() if vectorizer is not None else None
        X = check_texts(X, vectorizer, caller)
        given = y
        self.binarizer_, y = self._read_targets(y)
        if self.binarizer_ is not None:
            warn_of_missing(as_sequence(given), caller)
        n = int(num_samples(X))
        if num_samples(y) != n:
            raise ValueError(f"{caller}: y has {num_samples(y)} rows and X has {n}.")
        progress = fit.parts("step", 1 if vectorizer is None else 2)

        # 1. Vectorize. Folds inside the classifier refit the vectorizer to their own rows.
        self.vectorizer_, refittable = vectorizer, None
        if vectorizer is None:
            features = self._vectorized(X)
        else:
            with progress.part(name="vectorizer").around(vectorizer, may_lack_callbacks=True):
                features = fit_with_label_texts(vectorizer, X, self._texts_of_labels())
        self._check_n_rows(X, features)

        # 2. Fit the classifier, by default one that tunes thresholds on held-out rows.
        self.classifier_ = self._with_labels(y)
        if vectorizer is not None:
            is_bound = is_bound_to_columns(self.classifier_, features)
            names = None if last is None else vectorizer_names(vectorizer)
            refittable = RefittableFeatures(features, X, None if is_bound else vectorizer, names)
        if last is not None:
            self._start_at(*last, y, n)
        # The default classifier requests no weights, and gets them all the same.
        routing = False if self.classifier is None or isinstance(self.classifier, str) else None
        with (
            sklearn.config_context(enable_metadata_routing=routing),
            progress.part(name="classifier").around(self.classifier_),
            may_refit(refittable),
        ):
            params = self._routed(sample_weight, {}).classifier.fit
            self.classifier_.fit(features, y, **params)
        if last is not None:
            self._forget_starts()
        if self._tries_last_choice:
            self._require_all_trials()
        self._unseen_labels = np.empty(0, np.int64)
        if not hasattr(unwrap(self.classifier_, None)[0], "predict_topk"):
            counts = check_targets(self, y, n).label_counts(np.ones(n, bool))
            self._unseen_labels = np.flatnonzero(counts == 0)
        fit.end()
        return self

    def _last_fit(self) -> tuple[Any, np.ndarray | None] | None:
        """Return the classifier to start at and the names of its features, None without one."""
        if not (self.warm_start and getattr(self, "vectorizer_", None) is not None):
            return None
        return self.classifier_, vectorizer_names(self.vectorizer_)

    def _start_at(self, last: Any, feature_names: np.ndarray | None, y: Any, n: int) -> None:
        """Let each part of the classifier that can start at its counterpart in the last one."""
        targets = check_targets(self, y, n)
        present = targets.classes, targets.label_counts(np.ones(n, bool))
        for key, part in self._parts_of_classifier().items():
            if hasattr(part, "_start_at") and not isinstance(part, type):
                part._start_at(fitted_counterpart(last, key), feature_names, present)

    def _forget_starts(self) -> None:
        """Remove what parts were to start at: it is not saved."""
        chosen = getattr(self.classifier_, "estimator_", self.classifier_)
        for part in (*self._parts_of_classifier().values(), *chosen.get_params(deep=True).values()):
            if isinstance(part, OvALinearXC):
                vars(part).pop("_start", None)

    @property
    def _tries_last_choice(self) -> bool:
        """Whether the candidates of an AutoXC are what it chose in the last fit."""
        found = self.classifier_
        has_list = isinstance(found, AutoXC) and found.estimators is not None
        return has_list and self._given_classifier.estimators is None

    def _require_all_trials(self) -> None:
        """Refuse a choice for which time was too short: the last fit is better."""
        report = self.classifier_.fit_report_
        if any(one == "no time left" or one.startswith("chosen,") for one in report["outcome"]):
            raise ValueError(
                f"{type(self).__name__}: time_budget is too short to try "
                f"{' and '.join(report['name'].tolist())} again. Got "
                f"{self.classifier_.time_budget} s. The last fit is kept: raise it by "
                "set_params(classifier__time_budget=...), or set it to None."
            )

    def _parts_of_classifier(self) -> dict[str, Any]:
        """Return the parts that may start at the last fit, and where to find them in it."""
        found = self.classifier_
        if not isinstance(found, AutoXC):
            return {"": found, **found.get_params(deep=True)}
        parts = dict(found.estimators) if self._tries_last_choice else {}
        for name, member in list(parts.items()):
            parts |= {f"{name}__{key}": one for key, one in member.get_params(deep=True).items()}
        return parts

    #: A classifier that takes no weights refuses them itself.
    _weighs_answers = False

    def _routed_parts(self) -> dict[str, Any]:
        return {"classifier": self._given_classifier}

    def predict(self, X: Any) -> Any:
        """Return the labels of each instance, those that pass the threshold of the classifier.

        Parameters
        ----------
        X : sequence of n texts
            As in fit.

        Returns
        -------
        list of n lists of names, ndarray of shape (n,), or indicator of shape (n, n_labels)
            In the form of `y` in fit. An instance may get no label; ``topk_names`` always returns
            some.

        Examples
        --------
        >>> from sklearn_xc import TextClassifierXC
        >>> texts = ["how to freeze soup", "freezing bread dough", "clear soup stock", "rye bread"]
        >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
        >>> tagger = TextClassifierXC(separator=";").fit(5 * texts, 5 * tags)
        >>> tagger.predict(["freeze the soup"])
        [['freezing', 'soup']]
        """
        features = self._features(X)
        answer = self.classifier_.predict(features)
        return answer if self.binarizer_ is None else self.binarizer_.inverse_transform(answer)

    def predict_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : sequence of n texts
            As in fit.
        k : int, default=5
            How many labels; may exceed their number.
        candidates : sequence of names, sequence of n lists of names, or indicator of shape \
                (n, n_labels), default=None
            The labels that may be returned: names, for all instances; or, for each instance, a
            list of names or a row of a sparse matrix or array whose non-zeros mark the labels.
            None allows all.
        exclude : sequence of names, sequence of n lists of names, or indicator of shape \
                (n, n_labels), default=None
            The labels that may not be returned, in the same forms. Not together with `candidates`.
            Lists for each instance may hold names that the tagger does not know.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf.

        Examples
        --------
        >>> from sklearn_xc import TextClassifierXC
        >>> texts = ["how to freeze soup", "freezing bread dough", "clear soup stock", "rye bread"]
        >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
        >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
        >>> labels, scores = tagger.predict_topk(["freeze the soup"], k=2)
        >>> tagger.classes_[labels].tolist()
        [['soup', 'freezing']]

        For a text that already has one of its tags:

        >>> labels, scores = tagger.predict_topk(["freeze the soup"], k=1, exclude=["soup"])
        >>> tagger.classes_[labels].tolist()
        [['freezing']]
        """
        features = self._features(X)
        allowed = self._allowed(X, candidates, exclude)
        return topk_allowed(self.classifier_, features, k, allowed, self._unseen_labels)

    @available_if(_has("predict_proba_topk"))
    def predict_proba_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance by score, and their probabilities.

        Parameters
        ----------
        X : sequence of n texts
            As in fit.
        k : int, default=5
            How many labels; may exceed their number.
        candidates, exclude : object, default=None
            As in ``predict_topk``.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1.
        probabilities : ndarray of float of shape (n, k)
            Padded with 0.
        """
        features = self._features(X)
        return topk_probabilities(
            self.classifier_, features, k, self._allowed(X, candidates, exclude)
        )

    def _sk_visual_block_(self) -> Any:
        """Return the parts as scikit-learn displays a Pipeline."""
        vectorizer = getattr(self, "vectorizer_", self._new_vectorizer())
        classifier = getattr(self, "classifier_", self.classifier)
        if classifier is None:
            classifier = self._default_part("classifier")
        parts = [("vectorizer", vectorizer), ("classifier", classifier)]
        return Pipeline(parts)._sk_visual_block_()

    def _allowed(self, X: Any, candidates: Any, exclude: Any) -> AllowedLabels | None:
        n = int(num_samples(X))
        caller = type(self).__name__
        return read_allowed(candidates, exclude, self.classes_, n, caller, by_name=True)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classifier.

        Parameters
        ----------
        X : sequence of n texts
            As in fit.

        Returns
        -------
        ndarray or CSR of shape (n, n_labels)
            As returned by the classifier.
        """
        features = self._features(X)
        return self.classifier_.decision_function(features)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classifier.

        Parameters
        ----------
        X : sequence of n texts
            As in fit.

        Returns
        -------
        ndarray or CSR of shape (n, n_labels)
            As returned by the classifier.
        """
        features = self._features(X)
        return self.classifier_.predict_proba(features)

    @available_if(_has("explain"))
    def explain(self, text: Any, label: Any, *, n_features: int | None = 10) -> Any:
        """Return the features that made the score of one label for one text.

        Parameters
        ----------
        text : str, or an X of one instance
            As in fit, a list, an array or a pandas Series of one text.
        label : object
            A name, one of ``classes_``.
        n_features : int or None, default=10
            How many features to return at most; None for all with a contribution.

        Returns
        -------
        Explanation
            As returned by the classifier, with the feature names of the vectorizer; for a
            :class:`~sklearn_xc.TopKCalibrator`, also with the probability of the label.

        Raises
        ------
        ValueError
            For several texts, and for an unknown label.

        Examples
        --------
        >>> from sklearn_xc import TextClassifierXC
        >>> texts = ["how to freeze soup", "freezing bread dough", "clear soup stock", "rye bread"]
        >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
        >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
        >>> explanation = tagger.explain("freeze the soup", "soup")
        >>> explanation.features.tolist()
        ['soup', 'freeze']
        """
        check_is_fitted(self)
        X = [text] if isinstance(text, str) or not hasattr(text, "__len__") else text
        if num_samples(X) != 1:
            raise ValueError(
                f"{type(self).__name__}: explain takes one text. Got {num_samples(X)}: use "
                "explain(list(texts)[0], label) for the first."
            )
        features = self._features(X)
        names = None if self.vectorizer_ is None else self.vectorizer_.get_feature_names_out()
        return self.classifier_.explain(features, label, feature_names=names, n_features=n_features)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return precision@1: the share of instances whose best label is one of theirs.

        Parameters
        ----------
        X : sequence of n texts
            As in fit.
        y : sequence of n lists of names, or of n texts; or an indicator of shape (n, n_labels)
            In the form of fit. Names that were not seen in fit count as missed, with a warning if
            no name was seen.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        float
            In [0, 1].

        Examples
        --------
        >>> from sklearn_xc import TextClassifierXC
        >>> texts = ["how to freeze soup", "freezing bread dough", "clear soup stock", "rye bread"]
        >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
        >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
        >>> tagger.score(["dark rye bread", "apple pie"], ["bread", "pie"])  # pie is not known
        0.5
        """
        features = self._features(X)
        if self.binarizer_ is None:
            return self.classifier_.score(features, y, sample_weight=sample_weight)
        best, _ = topk_allowed(self.classifier_, features, 1, None, self._unseen_labels)
        return precision_at_k(self.encode_targets(y), best, k=1, sample_weight=sample_weight)

    def encode_targets(self, y: Any) -> Any:
        """Return names in the form for metrics: an indicator with the columns of ``classes_``.

        Use it to compare ``predict_topk`` by :func:`~sklearn_xc.metrics.precision_at_k` and other
        metrics, and for the output of ``predict``. Names that were not seen in fit have no column
        and are left out; ``score``, scorers and displays take names, and count unseen
        ones as missed.

        Parameters
        ----------
        y : sequence of n lists of names, or of n texts; or an indicator of shape (n, n_labels)
            In the form of fit.

        Returns
        -------
        csr_array of shape (n, n_labels), or y as it came
            The latter if fit was not given names.

        Examples
        --------
        >>> from sklearn_xc import TextClassifierXC
        >>> texts = ["how to freeze soup", "freezing bread dough", "clear soup stock", "rye bread"]
        >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
        >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
        >>> tagger.classes_.tolist()
        ['bread', 'freezing', 'soup']
        >>> tagger.encode_targets(["soup", "bread;rye"]).toarray()
        array([[0, 0, 1],
               [1, 0, 0]], dtype=int8)
        """
        return self._encode_targets(y)[0]

    def _encode_targets(self, y: Any) -> tuple[Any, np.ndarray | None]:
        """Return also the names of each instance, unknown ones included; None without names."""
        check_is_fitted(self)
        return (y, None) if self.binarizer_ is None else self.binarizer_.encode(y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    @property
    def classes_(self) -> np.ndarray:  # type: ignore[override]
        """Names of the labels."""
        return self._fitted("classes_")

    @property
    def label_counts_(self) -> np.ndarray:
        """Training instances of each label."""
        return self._fitted("label_counts_")

    @property
    def n_samples_fit_(self) -> int:
        """Instances seen in fit."""
        return self._fitted("n_samples_fit_")

    @property
    def _targets_kind(self) -> str:  # type: ignore[override]
        if self.binarizer_ is not None:
            return "sparse"
        return getattr(unwrap(self.classifier_, None)[0], "_targets_kind", "classes")

    def _take_labels(self, places: np.ndarray) -> None:
        if self.binarizer_ is not None:
            self.binarizer_ = self.binarizer_._of_labels(places)
        self.classifier_ = estimator_of_labels(self.classifier_, places)

    def _name_labels(self, classes: np.ndarray) -> None:
        if self.binarizer_ is not None:
            self.binarizer_ = self.binarizer_._with_names(classes.tolist())
        self.classifier_ = estimator_with_classes(self.classifier_, classes)

    def _fitted(self, name: str) -> Any:
        if not hasattr(self, "classifier_"):
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet.")
        if name == "classes_" and self.binarizer_ is not None:
            return self.binarizer_.classes_
        return getattr(self.classifier_, name)

    @reads_snapshot
    def _features(self, X: Any) -> Any:
        """Return what the classifier reads, of checked instances."""
        check_is_fitted(self)
        X = check_texts(X, self.vectorizer_, type(self).__name__)
        features = self._vectorized(X)
        self._check_n_rows(X, features)
        return features

    def _vectorized(self, X: Any) -> Any:
        if self.vectorizer_ is not None:
            return self.vectorizer_.transform(X)
        return X if isinstance(X, TextsWithFeatures) else as_texts(X, f"{type(self).__name__}: X")

    def _check_n_rows(self, X: Any, features: Any) -> None:
        n, n_made = int(num_samples(X)), int(num_samples(features))
        if n_made != n:
            raise ValueError(
                f"{type(self).__name__}: X must be a sequence of {n} texts, such as table['text']. "
                f"Got {type(X).__name__}, of which {type(self.vectorizer_).__name__} makes "
                f"{n_made} rows."
            )

    def _new_vectorizer(self) -> Any:
        """Return the vectorizer to fit, None for a classifier that reads texts itself."""
        if self.vectorizer is not None:
            return clone(self.vectorizer)
        return None if estimator_reads_texts(self.classifier) else self._default_part("vectorizer")

    def _read_targets(self, y: Any) -> tuple[LabelBinarizerXC | None, Any]:
        """Return a binarizer and its indicator of names; for other targets, None and y.

        Also used before ``fit``.
        """
        caller = type(self).__name__
        if y is None:
            raise ValueError(f"{caller} requires y to be passed, but the target y is None")
        y = as_sequence(y)
        if self.separator is None and not are_name_lists(y):
            if sp.issparse(y) or np.ndim(y) != 1:
                return None, y
            y = check_class_array(y, f"{caller}: y")
            warn_of_separator([one for one in y if isinstance(one, str)], caller)
            return None, y
        binarizer = LabelBinarizerXC(separator=self.separator, min_count=self.min_count)
        Y = binarizer.fit_transform(y)
        if self.label_texts is not None:
            binarizer.add_names(name for name, _ in self.label_texts.items())
            Y.resize(Y.shape[0], len(binarizer.classes_))
        return binarizer, Y

    def _with_labels(self, y: Any) -> Any:
        """Return a clone of the classifier that has the names of labels, and their texts."""
        classifier = self._given_classifier
        is_auto = isinstance(classifier, AutoXC)
        has_chosen = self.warm_start and isinstance(getattr(self, "classifier_", None), AutoXC)
        if is_auto and has_chosen and classifier.estimators is None:
            classifier = clone(classifier).set_params(estimators=self._last_choice())
        if classifier is None:
            is_one_class = len(np.shape(y)) == 1
            classifier = OvALinearXC() if is_one_class else self._default_part("classifier")
        classifier = clone(classifier)
        parameters = {"": classifier, **classifier.get_params(deep=True)}

        def parameters_named(name: str) -> list[str]:
            return [key for key in parameters if key.split("__")[-1] == name]

        given: dict[str, Any] = {}
        if self.binarizer_ is not None:
            unset = (key for key in parameters_named("label_names") if parameters[key] is None)
            given |= dict.fromkeys(unset, self.binarizer_.classes_)
        takers = parameters_named("label_features")
        if self.label_texts is None:
            names = self._names_of(y)
            takers = [key for key in takers if parameters[key] is None and names is not None]
            for key in takers:  # names are the texts of labels for a part that reads texts
                part = parameters[key.removesuffix("label_features").removesuffix("__")]
                texts: Any = [str(name) for name in names]
                if is_auto and not estimator_reads_texts(part):
                    texts = sp.csr_array(self._vectorized(texts))
                    if texts.nnz:
                        given[key] = LabelFeatures(texts, classes=names)
                elif estimator_reads_texts(part):
                    given[key] = LabelFeatures(texts, classes=names)
        elif takers:
            given |= dict.fromkeys(takers, self._label_features())
        else:
            raise ValueError(
                f"{type(self).__name__}: label_texts are for a classifier with a parameter "
                f"label_features, such as NGAMEEmbeddingXC. Got {type(classifier).__name__}."
            )
        return classifier.set_params(**given)

    def _last_choice(self) -> list[tuple[str, Any]]:
        """Return what was chosen in the last fit, without what is known of its labels."""
        found = []
        for name, member in self.classifier_.named_estimators_.items():
            known = {"label_features", "label_names"} & set(member.get_params(deep=False))
            found.append((name, clone(member).set_params(**dict.fromkeys(known))))
        return found

    def _names_of(self, y: Any) -> np.ndarray | None:
        """Return the names of the labels, as far as y has any."""
        if self.binarizer_ is not None:
            return self.binarizer_.classes_
        if sp.issparse(y) or len(np.shape(y)) != 1:
            return None
        names = np.unique(np.asarray(y))
        return names if all(isinstance(name, str) for name in names) else None

    def _texts_of_labels(self) -> list[Any]:
        return [] if self.label_texts is None else [text for _, text in self.label_texts.items()]

    def _label_features(self) -> LabelFeatures:
        """Return the label texts as features, empty ones for names that have no text."""
        names = [name for name, _ in self.label_texts.items()]
        others = [] if self.binarizer_ is None else self.binarizer_.classes_.tolist()
        missing = [name for name in others if name not in set(names)]
        classes = as_name_array([*names, *missing])
        Z = self._vectorized(self._texts_of_labels())
        if not sp.issparse(Z) and is_sequence(Z):  # texts, which the classifier reads
            return LabelFeatures([*Z, *[""] * len(missing)], classes=classes)
        Z = sp.csr_array(Z)
        Z.resize(len(classes), Z.shape[1])
        return LabelFeatures(Z, classes=classes)
