"""What every estimator refuses, in which words, and that its model stays as it was."""

import functools
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fitted import METHODS, Unchanged, fitted_names
from registry import ENTRIES, having, of_variant
from sklearn.exceptions import NotFittedError
from small_data import easy, made, rows_of_labels

from sklearn_xc import LabelFeatures
from sklearn_xc.ensemble.wrapped import WrappedClassifier

DATES = np.full((60, 15), "2020-01-01", "datetime64[D]")
X, Y = made(5, 0)
CLASSES_OF_Y = np.resize(["a", "b", "c"], 60)
#: Stands for all estimators where a check is in one shared place.
ONE = "OvALinearXC"
NAMES = {one.estimator.__name__ for one in ENTRIES.values()}
NOT_BINARY = r"y must be a binary indicator of 0 and 1 .* row {}, column {} holds {}"


def with_value(matrix, row, column, value):
    matrix = matrix.toarray()
    matrix[row, column] = value
    return sp.csr_array(matrix)


@pytest.fixture(scope="module", params=ENTRIES)
def name(request):
    return request.param


def on_one_and_some(table, some):
    """Try all cases on one estimator, for a check in one shared place, and `some` on each."""
    cases = [(ONE, kind) for kind in table] + [(n, kind) for n in ENTRIES for kind in some]
    return pytest.mark.parametrize(("name", "kind"), dict.fromkeys(cases), indirect=["name"])


@pytest.fixture(scope="module")
def entry(name):
    return ENTRIES[name]


# pytest makes a fixture anew for each pair of a name and something else.
@functools.cache
def fitted_of(name):
    model = ENTRIES[name].make().fit(X, Y)
    model.score(X, Y)
    return model


@pytest.fixture
def fitted(name):
    """Return a model that no test may change; what is computed on demand is there."""
    return fitted_of(name)


@pytest.fixture(scope="module")
def class_name(entry):
    return entry.estimator.__name__


@pytest.fixture(scope="module")
def any_name(entry):
    """Return a pattern of the estimator's name, and those of others that may speak for it.

    These are the ones that it derives from, and the one that it is wrapped around.
    """
    names = [base.__name__ for base in entry.estimator.__mro__ if base.__name__ in NAMES]
    if entry.has("estimator"):
        names.append(type(entry.make().estimator).__name__)
    return f"({'|'.join(names)})"


def asks(entry, model):
    """Return all functions of X that answer."""
    methods = [getattr(model, m) for m in (*METHODS, "predict_topk") if hasattr(model, m)]
    further = [lambda x, ask=ask: ask(model, x) for ask in entry.answers.values()]
    return [*methods, *further, lambda x: model.score(x, Y[: np.shape(x)[0]])]


@functools.cache
def trainings_of(name):
    entry = ENTRIES[name]
    calls = [entry.make().fit, entry.make().fit(X, Y).fit]
    if entry.has("warm_start"):
        calls.append(entry.make(warm_start=True).fit(X, Y).fit)
    return calls


@pytest.fixture
def trainings(name):
    """Return all functions that train, of models of their own, which refusals leave as they are."""
    return trainings_of(name)


def assert_refused(call, match, *arguments, error=(ValueError, TypeError), **named):
    """Expect an error, and that the estimator whose method it is stays as it was."""
    model = call.__self__
    before = Unchanged(model)
    with pytest.raises(error, match=match):
        call(*arguments, **named)
    before.check()


#: Instances, made of good ones, and the message.
INSTANCES = {
    "NaN": (lambda x: with_value(x, 3, 2, np.nan), "Input X contains NaN"),
    "infinity, dense": (lambda x: with_value(x, 3, 2, -np.inf).toarray(), "X contains infinity"),
    "no rows": (lambda x: x[:0], r"0 sample\(s\) \(shape=\(0, 15\)\).* by {}"),
    "no columns": (lambda x: x[:, :0], r"0 feature\(s\) \(shape=\(\d+, 0\)\).* by {}"),
    "one dimension": (lambda x: x.toarray()[0], "X must be .* Expected 2D array, got 1D array"),
    "texts": (lambda x: np.full((60, 15), "a"), "X must be .* could not convert string to float"),
    "complex": (
        lambda x: x.toarray() * 1j,
        "X must be a matrix of real .* Complex data not supported",
    ),
    "masked": (
        lambda x: np.ma.array(x.toarray(), mask=x.toarray() > 0.5),
        "{}: (.*: )?X is a masked ar",
    ),
    "dates": (lambda x: DATES, "{}: (.*: )?X holds dates or times"),
}


@on_one_and_some(INSTANCES, ["NaN", "masked", "no rows"])
def test_instances(any_name, entry, fitted, trainings, kind):
    make, says = INSTANCES[kind]
    bad, says = make(X), says.format(any_name)
    if entry.has("estimator"):  # which checks X itself
        says += "|y has 60 rows and X has (1|15);"
    y = Y[:0] if kind == "no rows" else Y
    for call in trainings:
        # Later calls may find another number of features first.
        assert_refused(call, f"{says}|is expecting 15", bad, y)
    for ask in asks(entry, fitted):
        with pytest.raises((ValueError, TypeError), match=f"{says}|is expecting 15"):
            ask(bad)


def test_another_number_of_features(any_name, entry, fitted):
    says = rf"X has 14 features, but {any_name} is expecting 15"
    bad = X[:, :14]
    for ask in asks(entry, fitted):
        for x in (bad, bad.toarray()):
            with pytest.raises(ValueError, match=says):
                ask(x)
    if entry.has("warm_start") and not (entry.labels_apart or entry.reads_texts):
        assert_refused(entry.make(warm_start=True).fit(X, Y).fit, says, bad, Y)


def test_more_columns_than_int32_counts(any_name, entry):
    says = rf"{any_name}: X must have at most 2\*\*31 - 2 .*{2**31 - 1}"
    assert_refused(entry.make().fit, says, sp.csr_array((60, 2**31 - 1)), Y)


def twice(matrix, container, dtype):
    """Return an indicator with its first entry stored twice."""
    rows, columns = (np.append(c, c[0]) for c in matrix.tocoo().coords)
    if container is sp.coo_array:
        return container((np.ones(rows.size, dtype), (rows, columns)), shape=matrix.shape)
    matrix = container(matrix)
    indptr = np.concatenate(([0], matrix.indptr[1:] + 1))
    indices = np.append(matrix.indices[0], matrix.indices)
    return container((np.ones(indices.size, dtype), indices, indptr), shape=matrix.shape)


#: Targets, and the message.
TARGETS = {
    "2": (with_value(Y, 8, 3, 2), NOT_BINARY.format(8, 3, 2)),
    "0.5, dense": (with_value(Y, 8, 3, 0.5).toarray(), NOT_BINARY.format(8, 3, 0.5)),
    "NaN": (with_value(Y, 8, 3, np.nan), NOT_BINARY.format(8, 3, "nan")),
    "NaN, dense": (with_value(Y, 8, 3, np.nan).toarray(), "Input y contains NaN or infinity"),
    "NaN, classes": (np.append(np.arange(59.0), np.nan), "1 of 60 rows whose class is missing"),
    "257 times one": (
        sp.coo_array((np.ones(257, np.int8), (np.zeros(257, int),) * 2), shape=(60, 2)),
        NOT_BINARY.format(0, 0, "257") + ".* summed",
    ),
    "twice, CSR of bool": (
        twice(Y, sp.csr_array, bool),
        NOT_BINARY.format(0, 0, "2") + ".* summed",
    ),
    "twice, CSC": (twice(Y, sp.csc_array, float), NOT_BINARY.format(0, 0, "2") + ".* summed"),
    "no columns": (sp.csr_array((60, 0)), r"y must have at least one label .*\(60, 0\)"),
    "fewer rows": (Y[:50], "y has 50 rows and X has 60"),
    "fewer rows, classes": (np.arange(50) % 3, "y has 50 rows and X has 60"),
    "none": (None, "requires y to be passed, but the target y is None"),
    "lists": ([[1], [2, 3]] * 30, r"MultiLabelBinarizer\(sparse_output=True\)"),
    "tuples": ([("cat",), ("cat", "dog")] * 30, "MultiLabelBinarizer"),
    "three dimensions": (np.zeros((2, 60, 3)), r"y must be 1-D or 2-D.* \(2, 60, 3\)"),
    "texts in columns": (np.full((60, 2), "a"), "a 2-D y must be a binary indicator.*<U1"),
    "complex, sparse": (sp.csr_array((60, 2), dtype=complex), "a sparse y .*complex128"),
    "rows of an indicator": (
        [Y[[i]] for i in range(60)],
        r"Got an array of shape \(1, \d+\) in row 0: stack rows",
    ),
    "one sparse dimension": (sp.coo_array(np.ones(60)), r"y.* 2 dimensions .*\(60,\)"),
    "one class": (np.full(60, "a"), "y holds one class, 'a'; at least two classes"),
    "fractions": (np.arange(60) / 7, "Unknown label type: continuous"),
    "missing": (pd.Series(["a", "b", None] * 20, dtype="string"), "missing"),
    "two kinds": (np.array([1, "a", 2] * 20, object), "of one kind"),
    "times": (DATES[:, 0] - DATES[:, 0], "holds times"),
    "texts of bytes": (np.array([b"a", b"b"] * 30), "bytes"),
    "masked": (np.ma.masked_array(Y.toarray(), X.toarray()[:, :5] > 0.5), "y is a masked array"),
}


@on_one_and_some(TARGETS, ["2", "fewer rows", "masked"])
def test_targets(class_name, trainings, kind):
    bad, says = TARGETS[kind]
    # After an indicator anything else may be refused for its kind or its columns.
    says = rf"{class_name}.*({says})"
    later = "|y was an indicator in the first call|label columns, before it had"
    for number, call in enumerate(trainings):
        assert_refused(call, says + later * (number > 1), X, bad)


def test_too_few_labels(class_name, entry):
    """Of those who train labels apart each is a problem; others need something to tell apart."""
    fit, says = entry.make().fit, f"{class_name}: no row of y has a label"
    for container in (sp.csr_array, sp.csr_array.toarray):
        if entry.labels_apart:
            assert not fit(X, container(sp.csr_array((60, 4)))).predict(X).sum()
        else:
            assert_refused(fit, says, X, container(sp.csr_array((60, 4))))
    if entry.labels_apart or issubclass(entry.estimator, WrappedClassifier):
        assert fit(X, Y[:, [0]]).predict(X).shape == (60, 1)
    else:
        assert_refused(fit, f"{class_name}: y needs at least two label columns", X, Y[:, [0]])
    if not entry.labels_apart:
        weighted = with_value(Y, 9, slice(None), 0)
        weight = (np.arange(60) == 9).astype(float)
        assert_refused(fit, says, X, weighted, sample_weight=weight)


WEIGHTS = {
    "short": (np.ones(59), r"shape \(59,\), expected \(60,\)"),
    "column": (np.ones((60, 1)), r"shape \(60, 1\), expected \(60,\)"),
    "negative": (np.r_[np.ones(59), -1], "must not be negative, row 59 holds -1.0"),
    "NaN": (np.r_[np.ones(59), np.nan], "contains NaN at entry 59"),
    "zeros": (np.zeros(60), "all entries of sample_weight are zero"),
    "texts": (["1"] * 60, "holds '1'"),
    "sparse": (sp.csr_array(np.ones((60, 1))), "is a sparse matrix"),
    "masked": (np.ma.masked_array(np.ones(60), np.arange(60) == 1), "is a masked array"),
}


@on_one_and_some(WEIGHTS, ["short", "negative"])
def test_sample_weight(class_name, fitted, trainings, kind):
    bad, says = WEIGHTS[kind]
    says = rf"{class_name}.*sample_weight.*{says}|{class_name}: all entries of sample_weight"
    for call in [*trainings, fitted.score]:
        assert_refused(call, says, X, Y, sample_weight=bad)


class TestParameters:
    """The registry lists what is refused of each parameter, in place of a list in each folder."""

    def test_of_a_fit(self, name, class_name, entry):
        for parameter, bad_ones in entry.refused.items():
            for bad in bad_ones:
                model = entry.make().set_params(**{parameter: bad})
                says = rf"(?s)({class_name}.*{parameter}|{parameter}.*{class_name})"
                if isinstance(bad, float | int | str) and bad is not True:
                    says += ".*" + re.escape(repr(bad))[:12] if bad != "" else ""
                # A list of scorers, folds, or a grid of C: scikit-learn's words for them.
                if parameter in ("cv", "scoring"):
                    says = parameter
                errors = ValueError, TypeError, MemoryError
                try:
                    assert_refused(model.fit, says, X, Y, error=errors)
                except BaseException as error:
                    raise AssertionError(f"{parameter}={bad!r}") from error
                assert not [n for n in fitted_names(model) if n[-1] == "_"]

    def test_each_has_some(self, entry):
        if entry.refused:
            assert set(entry.make().get_params(deep=False)) == set(entry.refused)

    def test_of_an_answer(self, entry):
        """What was set after the fit; of more than one piece of work."""
        model = entry.make().fit(X, Y)
        many = sp.vstack([X] * 60, format="csr")
        for parameter, bad_ones in {
            "top_k": [0, -3, True, 2.0, "5", None],
            "n_jobs": [0, True, 1.5, "all"],
        }.items():
            if parameter == "n_jobs" and entry.has("estimator"):
                continue  # of models that are trained side by side; answers go by its own
            given = model.get_params()[parameter]
            for bad in bad_ones:
                model.set_params(**{parameter: bad})
                with pytest.raises(ValueError, match=rf"{parameter}.*{re.escape(repr(bad))}"):
                    model.decision_function(many)
            model.set_params(**{parameter: given})


def test_how_many_labels(entry, fitted):
    for bad in (0, 1.0, True, None):
        message = rf"^{entry.estimator.__name__}: k must be .*{re.escape(repr(bad))}"
        with pytest.raises(ValueError, match=message):
            fitted.predict_topk(X, bad)
    for bad in (10**13, 2**70):
        with pytest.raises((ValueError, MemoryError), match=r"k=|k must"):
            fitted.predict_topk(X, bad)
    model = entry.make(top_k=10**12, n_jobs=10**9).fit(X, Y)
    assert model.decision_function(X).shape == (60, 5)


class TestUnfitted:
    def test_answers(self, class_name, entry):
        model = entry.make()
        for ask in asks(entry, model):
            with pytest.raises(NotFittedError, match=f"{class_name}.* not fitted yet"):
                ask(X)

    def test_attributes(self, class_name, entry):
        """Those that are computed when they are read."""
        model = entry.make()
        for attribute in dir(entry.estimator):
            if attribute[0] != "_" and attribute[-1] == "_":
                assert not hasattr(model, attribute)
                says = f"{attribute}: this {class_name} is not fitted yet"
                with pytest.raises(AttributeError, match=says):
                    getattr(model, attribute)


class TestLabelFeatures:
    @pytest.mark.parametrize("of", having("label_features"))
    @pytest.mark.parametrize("in_fit", [True, False])
    def test_refused(self, of, in_fit):
        Z = rows_of_labels()
        calls = ENTRIES[of].make().fit, ENTRIES[of].make().fit(X, Y).fit
        for bad, says in (
            (LabelFeatures(Z[:4]), "label_features .*4 rows"),
            (["a", "b"], "label_features .*2 rows"),
            (Z[:, :14], "label_features .*Got 14"),
            (with_value(Z, 3, 3, np.nan), "label_features: .* contains NaN"),
            (["a"] * 5, "label_features .*[Tt]exts|label_features .*text"),
            (7, "a matrix with a row for each label, or a seq"),
            (np.ma.masked_array(Z.toarray(), Z.toarray() > 0.5), "label_features.* masked array"),
        ):
            for call in calls:
                if in_fit:
                    assert_refused(call, says, X, Y, label_features=bad)
                else:
                    call.__self__.set_params(label_features=bad)
                    assert_refused(call, says, X, Y)


class TestScore:
    """``score`` takes what ``fit`` took."""

    @pytest.mark.parametrize(
        ("y", "says"),
        [
            (None, "y is None"),
            (["a"], "y has 1 rows and X has 60"),
            (np.zeros((60, 2)), r"y was 1-D in fit.*an array of shape \(60, 2\)"),
            (sp.csr_array(np.eye(60, 3)), r"y was 1-D in fit.*a sparse matrix of shape \(60, 3\)"),
            (np.where(np.arange(60) == 3, np.nan, 0.0), "class is missing or infinite"),
            (["a"] * 60, "not of the kind of classes_"),
            ([[0]] * 59 + [[0, 1]], "rows of different lengths"),
        ],
        ids=range(7),
    )
    def test_classes(self, y, says):
        model = ENTRIES[ONE].make().fit(X, np.arange(60) % 3)
        with pytest.raises(ValueError, match=says):
            model.score(X, y)

    @pytest.mark.parametrize(
        ("y", "says"),
        [
            (None, "y is None"),
            (np.arange(60) % 3, r"y has shape \(60,\), an indicator of shape \(60, 5\)"),
            (np.zeros((60, 4)), r"y has shape \(60, 4\), an indicator of shape \(60, 5\)"),
            (np.full((60, 5), 0.5), "y must be a binary indicator"),
            (sp.csr_array(np.full((60, 5), 2)), "y must be a binary indicator"),
            (np.full((60, 5), np.nan), "contains NaN or infinity"),
        ],
        ids=range(6),
    )
    def test_indicators(self, y, says):
        model = ENTRIES[ONE].make().fit(X, Y)
        with pytest.raises(ValueError, match=says):
            model.score(X, y)


def test_texts(any_name, entry):
    """The message says what makes features of them."""
    texts = [f"text {i}" for i in range(60)]
    message = r"X must be a matrix of features.* Got texts: .*make_pipeline\(TfidfVectorizer\(\), "
    with pytest.raises(ValueError, match=rf"^{any_name}: (estimator: \w+: )?{message}"):
        entry.make().fit(texts, Y)


class TestLargeNumbers:
    """Overflow is an error that names what was large, or the answer is finite; nothing between."""

    SIZES = ((np.float32, 1e25), (np.float64, 1e300))

    @staticmethod
    def is_finite(entry, model, x):
        values = [entry.learnt(model), model.predict_topk(x, 5)[1]]
        if hasattr(model, "intercept_"):
            values.append(model.intercept_)
        return all(np.isfinite(part).all() for part in values)

    @pytest.mark.parametrize(("dtype", "size"), SIZES)
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
    @pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
    def test_training(self, name, any_name, entry, dtype, size):
        x = X.astype(dtype)
        big = x * dtype(size)
        variants = [*entry.variants]
        # Each variant is tried at one of the sizes.
        for variant in ["", *variants[self.SIZES.index((dtype, size)) :: len(self.SIZES)]]:
            first = of_variant(name, variant)
            calls = [first.fit, of_variant(name, variant).fit(x, Y).fit]
            for call in calls:
                before = Unchanged(call.__self__)
                try:
                    call(big, Y)
                except ValueError as error:
                    assert re.search(any_name, str(error))  # noqa: PT017
                    assert re.search("X|learning_rate", str(error))  # noqa: PT017
                    before.check()
                else:
                    try:
                        assert self.is_finite(entry, call.__self__, big), variant
                    except ValueError as error:
                        assert re.search(r"\bX\b", str(error))  # noqa: PT017

    @pytest.mark.parametrize(
        ("dtype", "size", "container"),
        [(np.float32, 3e38, sp.csr_array.toarray), (np.float64, 1e308, sp.csr_array)],
    )
    @pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
    def test_answers(self, entry, container, dtype, size):
        """Sums of numbers of both signs: NaN would be among the scores."""
        x = X.astype(dtype)
        model = entry.make().fit(x, container(Y))
        huge = x.copy()
        huge.data = np.where(np.arange(x.nnz) % 2, size, -size).astype(dtype)
        for ask in asks(entry, model):
            try:
                answer = ask(huge)
            except ValueError as error:
                assert re.search(r"\bX\b", str(error))  # noqa: PT017
            else:
                for part in answer if isinstance(answer, tuple) else (answer,):
                    values = part.data if sp.issparse(part) else np.asarray(part)
                    # The logarithm of a probability that no float tells from 0.
                    assert not np.isnan(values).any()
                    assert not (values == np.inf).any()

    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
    def test_weights_of_instances(self, any_name, entry):
        """As one number for all; huge sums are refused, and what is not is a finite model."""
        for weight in (1e-300, 1e-20, 1e19, 1e300, 1e308):
            model = entry.make()
            before = Unchanged(model)
            try:
                model.fit(X, Y, sample_weight=np.full(60, weight))
            except ValueError as error:
                assert re.search(rf"{any_name}.*(sample_weight|learning_rate)", str(error))  # noqa: PT017
                before.check()
            else:
                assert self.is_finite(entry, model, X)


#: What is wrong, early or as late as before the training; whether the fit is a warm start.
FAILURES = [
    *((name, "memory" if name in having("max_memory") else "targets", False) for name in ENTRIES),
    *((name, "memory", True) for name in having("warm_start")),
    *((ONE, what, is_warm) for what in ("targets", "names") for is_warm in (False, True)),
]


@pytest.mark.parametrize(("of", "what", "is_warm"), FAILURES)
def test_a_failed_fit_leaves_an_earlier_one(of, what, is_warm):
    """The new X had another width, and names, before something else turned out to be wrong."""
    model = ENTRIES[of].make(**{"warm_start": True} if is_warm else {}).fit(X, Y)
    expected = model.predict_topk(X, 3)
    other = X if is_warm else pd.DataFrame(X.toarray()[:, :3], columns=list("abc"))
    y = Y
    if what == "targets":
        y = 2 * Y
    elif what == "memory":
        model.set_params(max_memory=10)
    else:
        other = other * np.nan
    error = MemoryError if what == "memory" else ValueError
    assert_refused(model.fit, ".", other, y, error=error)
    assert model.n_features_in_ == 15
    assert not hasattr(model, "feature_names_in_")
    if what == "memory":
        model.set_params(max_memory=None)
    for one, two in zip(expected, model.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
def test_a_learning_rate_that_is_too_high_is_named(class_name, entry):
    """Where weights are no longer finite; and the model before stays."""
    x, y = easy()
    for parameter in entry.make().get_params():
        if "learning_rate" not in parameter:
            continue
        model = entry.make().fit(x.astype(np.float32), y)
        model.set_params(**{parameter: 1e36})
        before = Unchanged(model)
        try:
            with np.errstate(all="ignore"):
                model.fit((x * 1e6).astype(np.float32), y)
        except ValueError as error:
            assert re.search(f"{class_name}.*(learning_rate|X)", str(error))  # noqa: PT017
            before.check()
        else:
            assert np.isfinite(entry.learnt(model)).all()
