"""Values become JSON and arrays, and come back equal and of the same types."""

import json
import re
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

import sklearn_xc
from sklearn_xc import LabelHierarchy, TextClassifierXC
from sklearn_xc._state.schema import check_attributes
from sklearn_xc._state.values import Reader, Writer
from sklearn_xc.exceptions import SavedModelError


def there_and_back(value):
    writer = Writer()
    node = json.loads(json.dumps(writer.json_of(value, ""), allow_nan=False))
    return Reader(writer.arrays).value_of(node)


def same(a, b):
    """Whether two values are equal, and so are their types, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype.hasobject:
            return a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    return a == b


texts = st.text(st.characters(exclude_categories=[]), max_size=4)
keys = texts | st.integers() | st.tuples(st.integers(0, 3), texts)
dtypes = (
    npst.boolean_dtypes()
    | npst.integer_dtypes(endianness="<")
    | npst.floating_dtypes(endianness="<", sizes=(16, 32, 64))
    | npst.unicode_string_dtypes(endianness="<", max_len=3)
)
arrays = dtypes.flatmap(lambda d: npst.arrays(d, npst.array_shapes(min_dims=0, min_side=0)))
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts
    | arrays
    | st.lists(texts | st.none(), max_size=3).map(lambda items: np.array(items, object))
    | st.sampled_from([np.float32, float, np.int8(4), np.float32(0.1), np.float64("nan")])
    | st.sampled_from([np.dtype("<f4"), np.dtype("<U3"), np.dtype("O"), slice(1, None)])
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(values)
def test_values_come_back(value):
    assert same(there_and_back(value), value)


def test_paths_and_subclasses_of_str_come_back_as_str():
    start = StrEnum("Start", ["msi", "bias"])
    value = {"checkpoint_dir": Path("a"), "init": start.msi, "loss": np.str_("logistic")}
    expected = {"checkpoint_dir": "a", "init": "msi", "loss": "logistic"}
    assert same(there_and_back(value), expected)


def test_an_array_in_two_places_is_one():
    array = np.arange(6.0)
    back = there_and_back({"a": array, "b": [array, array[::2], array.reshape(2, 3).T]})
    assert back["a"] is back["b"][0]
    assert back["b"][1].tolist() == [0.0, 2.0, 4.0]
    assert back["b"][2].flags.f_contiguous
    assert back["b"][2].tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix"])
def test_sparse_matrices_keep_their_dtypes(kind):
    matrix = getattr(sp, kind)(np.eye(3, 4, dtype=np.float32))
    matrix.indices = matrix.indices.astype(np.int64)
    back = there_and_back(matrix)
    assert type(back) is type(matrix)
    assert (back.indices.dtype, back.indptr.dtype) == (np.int64, matrix.indptr.dtype)
    np.testing.assert_array_equal(back.toarray(), matrix.toarray())


TABLE = np.array([["a", "soup broth", 3], ["b", "bread", 1], ["a", "soup", 2]], object)


@pytest.mark.parametrize(
    ("fitted", "X"),
    [
        (
            ColumnTransformer(
                [("kind", OneHotEncoder(), [0]), ("text", TfidfVectorizer(), 1)],
                remainder=MinMaxScaler(),
            ),
            TABLE,
        ),
        (
            ColumnTransformer([("kind", OneHotEncoder(), [0])], remainder="passthrough"),
            TABLE[:, ::2],
        ),
        (make_pipeline(DictVectorizer(sparse=False), MinMaxScaler()), [{"a": 1}, {"b": "x"}]),
    ],
    ids=["ColumnTransformer", "passthrough", "DictVectorizer"],
)
def test_transformers_of_scikit_learn_come_back(fitted, X):
    back = there_and_back(fitted.fit(X))
    check_attributes(back, "")
    one, other = (sp.csr_array(each.transform(X), dtype=float) for each in (fitted, back))
    np.testing.assert_array_equal(one.toarray(), other.toarray())


def test_skops_trusts_what_its_list_names(xy):
    skops = pytest.importorskip("skops.io")
    clf = sklearn_xc.OvALinearXC().fit(*xy)
    loaded = skops.loads(skops.dumps(clf), trusted=sklearn_xc.SKOPS_TRUSTED_TYPES)
    assert (loaded.predict(xy[0]) != clf.predict(xy[0])).nnz == 0


def test_a_hierarchy_comes_back():
    tree = LabelHierarchy.from_parents({"oak": "tree", "tree": "plant", "moss": "plant"})
    back = there_and_back(tree)
    assert back.with_ancestors([["oak"]]) == tree.with_ancestors([["oak"]])


class Mine:
    """What a user might pass."""


class Derived(LogisticRegression):
    """Would be made a LogisticRegression if names were all that counted."""


def within_itself():
    held = []
    held.append(held)
    return held


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (len, r"a\.b\.0 is a builtin_function_or_method of builtins, which .*joblib\.dump"),
        (Mine(), r"a\.b\.0 is a Mine of"),
        (Derived(), r"a\.b\.0 is a Derived of"),
        (Mine, r"a\.b\.0 is a Mine of"),
        (np.zeros(2, [("x", int)]), r"a\.b\.0 is an array of \[\('x', .* not saved"),
        (np.array([len], object), r"a\.b\.0 is an array of objects, not saved"),
        (np.array(["2020"], "M8[Y]"), r"a\.b\.0 is an array of datetime64\[Y\], not saved"),
        (np.random.RandomState(0), r"a\.b\.0 is a RandomState of"),
        (CountVectorizer(input="filename"), r"a\.b\.0 .*input must be 'content'\. Got 'filename'"),
        (CountVectorizer(analyzer=float), r"analyzer must be a text"),
        (CountVectorizer(encoding="rot13"), r"encoding must be utf-8, latin-1 or ascii"),
        (CountVectorizer(ngram_range=(1, 21)), r"ngram_range must be two integers from 1 to 20"),
        (CountVectorizer(stop_words=[1]), r"stop_words must be texts"),
        (CountVectorizer(token_pattern="(a+)+$"), r"token_pattern must be characters, or sets of"),
        (CountVectorizer(tokenizer=str.split), r"is a method_descriptor"),
        (FeatureUnion([], n_jobs=10**6), r"n_jobs must be at most 64"),
        (OneHotEncoder(min_frequency=2), r"min_frequency must be None"),
        (Pipeline([], memory="cache"), r"memory must be None"),
        (np.ma.masked_array([1]), r"a\.b\.0 is a MaskedArray"),
        (within_itself(), r"is within itself"),
    ],
)
def test_what_cannot_be_saved_is_named(value, says):
    with pytest.raises(TypeError, match=says):
        Writer().json_of({"a": {"b": [value]}}, "")


@pytest.mark.parametrize(
    ("pattern", "is_kept"),
    [
        (r"(?u)\b\w\w+\b", True),
        (r"\S+", True),
        (r"\b[a-zåäö]{3,}\b", True),
        (r"(\w+)+\b", False),
        (r"\w*\w*x", False),
        (r"[^ ]+\b", False),
    ],
)
def test_token_patterns_whose_time_grows_with_the_text(pattern, is_kept):
    if is_kept:
        assert re.findall(pattern, "aaa--- " + "a" * 200_000 + "!")
        there_and_back(CountVectorizer(token_pattern=pattern))
    else:
        with pytest.raises(TypeError, match="of which only the last repeats"):
            there_and_back(CountVectorizer(token_pattern=pattern))


@pytest.mark.parametrize(
    "node",
    [
        {"object": "system", "state": {}},
        {"object": "clone", "state": {}},
        {"object": "unittest.TestCase", "state": {"methodName": ""}},
        {"object": "Bias", "state": {}},
        {"object": "Bias", "state": {"value": "x"}},
        {"object": "OvALinearXC", "state": {"fit": 1}},
        {"type": "os.system"},
        {"dtype": "|V0"},
        {"dtype": "<U99999999"},
        {"float": "1e5"},
        {"scalar": "O", "value": 1},
        {"scalar": "<f8", "value": "x"},
        {"array": "no"},
        {"array": "floats", "width": 2},
        {"array": "codes", "width": 3},
        {"array": "codes", "width": 1},
        {"sparse": "csr_array", "shape": [9, 9], "arrays": [{"array": "floats"}] * 3},
        {"tuple": 3},
        {"pairs": [[1]]},
        {"objects": [1], "shape": [2]},
        {"objects": [{"type": "int"}], "shape": [1]},
        {"nothing": 1},
        {},
    ],
)
def test_nodes_without_a_value(node):
    arrays = {"floats": np.arange(3.0), "codes": np.array([[2**31]], np.uint32)}
    with pytest.raises(SavedModelError, match=r"^meta\.json: "):
        Reader(arrays).value_of(node)


def test_objects_too_deep_within_each_other():
    """`repr` would go through them again and again; what cannot be loaded is not saved."""
    nested = CountVectorizer()
    for _ in range(9):
        nested = make_pipeline(nested)
    assert repr(there_and_back(nested)) == repr(nested)
    with pytest.raises(TypeError, match=r"^vectorizer(\.steps\.0\.1){9} is .* within 10 objects"):
        Writer().json_of(TextClassifierXC(make_pipeline(nested)), "")
    node = 1
    for _ in range(40):
        node = {"object": "FrozenEstimator", "state": {"estimator": node}}
    with pytest.raises(SavedModelError, match="too deep within each other"):
        Reader({}).value_of(node)
