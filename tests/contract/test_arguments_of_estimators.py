"""What every estimator refuses, in which words, and that its model stays as it was."""

import re
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from registry import ESTIMATORS, made

DATES = np.full((60, 15), "2020-01-01", "datetime64[D]")
ASKS = {
    "predict": lambda e, X: e.predict(X),
    "predict_topk": lambda e, X: e.predict_topk(X, 3),
    "decision_function": lambda e, X: e.decision_function(X),
    "score": lambda e, X: e.score(X, made(5, 0)[1]),
}
WEIGHTS = {
    "short": (np.ones(59), r"shape \(59,\), expected \(60,\)"),
    "column": (np.ones((60, 1)), r"shape \(60, 1\), expected \(60,\)"),
    "one number": (2.0, r"shape \(\), expected \(60,\)"),
    "negative": (np.r_[np.ones(59), -1], "must not be negative, row 59 holds -1.0"),
    "NaN": (np.r_[np.ones(59), np.nan], "contains NaN at entry 59"),
    "infinity": (np.r_[np.ones(59), np.inf], "contains infinity at entry 59"),
    "zeros": (np.zeros(60), "all entries of sample_weight are zero"),
    "texts": (["1"] * 60, "holds '1'"),
    "None": ([1.0] * 59 + [None], "dtype object"),
    "complex": (np.ones(60, complex), "dtype complex128"),
    "rows of different lengths": ([[1.0]] * 59 + [[1.0, 2.0]], "no array of one dimension"),
    "sparse": (sp.csr_array(np.ones((60, 1))), "is a sparse matrix"),
    "dates": (DATES[:, 0], "holds dates or times"),
    "masked": (np.ma.masked_array(np.ones(60), np.arange(60) == 1), "is a masked array"),
}
LABELS = {
    "missing": (pd.Series(["a", "b", None] * 20, dtype="string"), "missing"),
    "None": (np.array(["a", "b", None] * 20, object), "missing"),
    "two kinds": (np.array([1, "a", 2] * 20, object), "of one kind"),
    "fractions": (np.arange(60) / 7, "Unknown label type: continuous"),
    "complex": (np.arange(60) % 3 * 1j, "Complex data not supported"),
    "times": (DATES[:, 0] - DATES[:, 0], "holds times"),
    "texts of bytes": (np.array([b"a", b"b"] * 30), "bytes"),
}
CLASSES = {
    "masked": (np.ma.array(["a", "b", "c"], mask=[0, 0, 1]), "is a masked array"),
    "column": ([["a"], ["b"], ["c"]], "must be a sequence of class labels"),
    "sparse": (sp.csr_array(np.ones((1, 3))), "must be a sequence of class labels"),
    "empty": ([], "must be a sequence of class labels"),
    "one name": ("abc", "must be a sequence of class labels"),
    "None among them": (["a", "b", None], "must not be missing, entry 2 is None"),
    "NaN among them": ([1.0, np.nan, 2.0], "must not be missing, entry 1 is"),
    "of two kinds": (["a", 3, "c"], "must be of one kind that can be sorted"),
}
PARAMETERS = {
    "top_k": [0, -3, True, 2.0, "5", None, 2**70, np.nan],
    "n_jobs": [0, True, 1.5, "all", 2**70],
    "max_memory": [0, -1, np.nan, np.inf, "much", "0GB", True, [1]],
}
#: What is refused where the parameter is read, after a fit.
AT_PREDICTION = {"top_k": [0, -3, True, 2.0, "5", None], "n_jobs": [0, True, 1.5, "all"]}


@pytest.fixture(scope="module", params=ESTIMATORS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    return ESTIMATORS[name]().fit(*made(5, 0))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_sample_weight(name, fitted, weight):
    bad, says = WEIGHTS[weight]
    X, Y = made(5, 0)
    pattern = rf"{name}.*sample_weight.*{says}|{name}: all entries of sample_weight"
    calls = [lambda: ESTIMATORS[name]().fit(X, Y, sample_weight=bad)]
    calls.append(lambda: fitted.score(X, Y, sample_weight=bad))
    if hasattr(fitted, "partial_fit"):
        calls.append(lambda: ESTIMATORS[name]().fit(X, Y).partial_fit(X, Y, sample_weight=bad))
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=pattern):
            call()


def test_masked_arrays_and_dates(name, fitted):
    X, Y = made(5, 0)
    masked = np.ma.masked_array(X.toarray(), X.toarray() > 0.5)
    masked_y = np.ma.masked_array(Y.toarray(), X.toarray()[:, :5] > 0.5)
    for ask in ASKS.values():
        with pytest.raises(TypeError, match=rf"{name}: X is a masked array"):
            ask(fitted, masked)
        with pytest.raises(ValueError, match=rf"{name}: X holds dates or times"):
            ask(fitted, DATES)
    with pytest.raises(TypeError, match=rf"{name}: X is a masked array"):
        ESTIMATORS[name]().fit(masked, Y)
    with pytest.raises(TypeError, match=rf"{name}: y is a masked array"):
        ESTIMATORS[name]().fit(X, masked_y)
    with pytest.raises(TypeError, match=rf"{name}: y is a masked array"):
        fitted.score(X, masked_y)
    with pytest.raises(ValueError, match=rf"{name}: X holds dates or times"):
        ESTIMATORS[name]().fit(DATES, Y)


@pytest.mark.parametrize("known", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("kind", CLASSES)
def test_classes_of_partial_fits(name, kind, known):
    model, bad = ESTIMATORS[name](), CLASSES[kind][0]
    if "classes" not in signature(getattr(model, "partial_fit", len)).parameters:
        pytest.skip("takes no classes")
    X, y = made(5, 0)[0], np.resize(["a", "b", "c"], 60)
    if known:
        model.partial_fit(X, y, classes=["a", "b", "c", "d"])
    with pytest.raises((ValueError, TypeError), match=rf"{name}: classes.*{CLASSES[kind][1]}"):
        model.partial_fit(X, y, classes=bad)


@pytest.mark.parametrize("shape", [(60, 2**31), (60, 2**31 - 1)])
def test_more_columns_than_int32_counts(name, shape):
    _, Y = made(5, 0)
    with pytest.raises(ValueError, match=rf"{name}: X must have at most 2\*\*31 - 2 .*{shape[1]}"):
        ESTIMATORS[name]().fit(sp.csr_array(shape), Y)


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_parameters_at_fit(name, parameter):
    X, Y = made(5, 0)
    for bad in PARAMETERS[parameter]:
        model = ESTIMATORS[name]().set_params(**{parameter: bad})
        with pytest.raises(ValueError, match=rf"{parameter}.*{name}|{name}.*{parameter}"):
            model.fit(X, Y)
        assert not hasattr(model, "classes_")


def test_no_parameter_is_a_time(name):
    """Times of numpy are integers to Python."""
    for parameter in ("top_k", "max_iter", "n_jobs", "max_iter"):
        if parameter in ESTIMATORS[name]().get_params():
            model = ESTIMATORS[name]().set_params(**{parameter: np.timedelta64(3, "s")})
            with pytest.raises(ValueError, match=rf"{name}: {parameter} must be no time"):
                model.fit(*made(5, 0))


@pytest.mark.parametrize("parameter", AT_PREDICTION)
def test_parameters_after_a_fit(name, fitted, parameter):
    X, Y = made(5, 0)
    model = ESTIMATORS[name]().fit(X, Y)
    many = sp.vstack([X] * 60, format="csr")  # more than one piece of work
    for bad in AT_PREDICTION[parameter]:
        model.set_params(**{parameter: bad})
        with pytest.raises(ValueError, match=rf"{parameter}.*{re.escape(repr(bad))}"):
            model.decision_function(many)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint16])
def test_integers_of_numpy(name, fitted, kind):
    X, Y = made(5, 0)
    model = ESTIMATORS[name]().set_params(top_k=kind(2), n_jobs=kind(1), max_memory=np.int64(2**30))
    model.fit(X, Y)
    assert (np.diff(model.decision_function(X).indptr) <= 2).all()
    labels, scores = fitted.predict_topk(X, kind(3))
    expected = fitted.predict_topk(X, 3)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_array_equal(scores, expected[1])


@pytest.mark.parametrize("kind", LABELS)
def test_class_labels(name, kind):
    bad, says = LABELS[kind]
    X, _ = made(5, 0)
    with pytest.raises((ValueError, TypeError), match=rf"{name}.*y.*{says}"):
        ESTIMATORS[name]().fit(X, bad)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
@pytest.mark.parametrize(
    "kind", [np.uint8, np.int8, np.int64, np.uint64, np.float16, np.float32, np.longdouble]
)
def test_arithmetic_of_parameters_is_that_of_python(name, kind):
    """uint8 ends at 255, uint64 and int64 make a float64, no kernel is for float16."""
    X, Y = made(5, 0)
    is_whole = kind(0.5) == 0
    plain, other = ESTIMATORS[name](), ESTIMATORS[name]()
    for parameter, value in plain.get_params().items():
        takes = {str(t) for one in plain._parameter_constraints[parameter] for t in [one]}
        takes_whole = any("int" in t or "Integral" in t for t in takes)
        takes_real = any("float" in t for t in takes)
        if parameter in {"verbose", "cv", "random_state", "n_jobs", "n_hard_negatives"}:
            continue
        if is_whole and takes_whole and not takes_real:
            plain.set_params(**{parameter: 3})
            other.set_params(**{parameter: kind(3)})
        elif not is_whole and isinstance(value, float) and takes_real:
            plain.set_params(**{parameter: 0.25})
            other.set_params(**{parameter: kind(0.25)})
    given = other.get_params()
    found, expected = other.fit(X, Y), plain.fit(X, Y)
    for one, two in zip(found.predict_topk(X, 5), expected.predict_topk(X, 5), strict=True):
        np.testing.assert_array_equal(one, two)
    assert all(other.get_params()[key] is value for key, value in given.items())


def test_absurd_counts(name, fitted):
    X, _ = made(5, 0)
    for bad in (10**13, 2**62, 2**70):
        with pytest.raises((ValueError, MemoryError), match=r"k=|k must"):
            fitted.predict_topk(X, bad)
    model = ESTIMATORS[name]().set_params(top_k=10**12, n_jobs=10**9).fit(*made(5, 0))
    assert model.decision_function(X).shape == (60, 5)
