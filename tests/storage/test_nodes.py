"""Values become JSON and come back: equal, of the same types, and one where they were one."""

import json
import math
import re
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.initialisers import Bias
from sklearn_xc.storage import nodes
from sklearn_xc.storage.nodes import Reader, Writer


class Files:
    """Arrays by name, as a folder has them."""

    def __init__(self):
        self.arrays = {}

    def put(self, array, name):
        self.arrays[f"{name}-{len(self.arrays)}.npy"] = array
        return list(self.arrays)[-1]

    def array(self, name):
        return self.arrays[name]

    def make(self, kind, state, reader):
        made = object.__new__(kind)
        vars(made).update({place[-1]: reader.value(node, place) for place, node in state.items()})
        return made


def there_and_back(value):
    files = Files()
    node = json.loads(json.dumps(Writer(files.put).node(value), allow_nan=False))
    return Reader(node, files).value(node)


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
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | texts
    | dtypes.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0)))
    | npst.floating_dtypes(sizes=(16, 32, 64)).flatmap(lambda d: npst.from_dtype(d)).map(np.float64)
    | st.lists(texts | st.none(), max_size=3).map(lambda items: np.array(items, object))
    | st.sampled_from([np.float32, np.int64, float, np.int8(4)])
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(values, st.sampled_from([1, 200]))
def test_values_come_back(value, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "_MANY_TEXTS", many)
        assert same(there_and_back(value), value)


def test_paths_come_back_as_their_names():
    assert there_and_back({"checkpoint_dir": Path("a")}) == {"checkpoint_dir": "a"}


def test_subclasses_of_str_come_back_as_str():
    start = StrEnum("Start", ["msi", "bias"])
    value = there_and_back({"init": start.msi, "loss": np.str_("logistic")})
    assert same(value, {"init": "msi", "loss": "logistic"})


@pytest.mark.parametrize("kind", [int, np.int64])
def test_numbered_texts_come_back(kind):
    value = {f"w{i}\ud800é": kind(3 * i - 5) for i in range(500)}
    assert same(there_and_back(value), {word: int(number) for word, number in value.items()})
    value["w"] = 2**70  # as no array holds it
    assert same(there_and_back(value), value)


def test_what_is_one_object_stays_one():
    array, part, held = np.arange(3.0), Bias(-1.5), {"a": [1]}
    value = {
        "a": held, "b": [held, held["a"], part], "c": (part, array, array[:]), "d": array[::2],
        "e": {1: part},
    }  # fmt: skip
    back = there_and_back(value)
    assert back["a"] is back["b"][0]
    assert back["a"]["a"] is back["b"][1]
    assert back["b"][2] is back["c"][0] is back["e"][1]
    assert type(back["b"][2]) is Bias
    assert back["c"][1] is back["c"][2]
    np.testing.assert_array_equal(back["d"], [0.0, 2.0])


def test_random_states_go_on():
    value = np.random.RandomState(3)
    value.normal()
    assert there_and_back(value).normal() == value.normal()


def test_bytes_are_in_native_order():
    back = there_and_back([np.arange(3, dtype=">i4"), np.array(["a", "é"], ">U1")])
    assert [array.dtype.str for array in back] == ["<i4", "<U1"]
    assert [array.tolist() for array in back] == [[0, 1, 2], ["a", "é"]]


def mine():
    """Return what a user might pass."""


class Mine:
    """What a user might pass."""


class Derived(LogisticRegression):
    """Would be made a LogisticRegression if names were all that counted."""


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (mine, r"a\.b\.0 is a function of builtins, which cannot be saved.*joblib\.dump"),
        (Mine(), r"a\.b\.0 is a Mine of"),
        (Derived(), r"a\.b\.0 is a Derived of"),
        (Mine, r"a\.b\.0 is the class Mine, which cannot be saved"),
        (np.zeros(2, [("x", int)]), r"a\.b\.0 is an array of \[\('x', .* not saved"),
        (np.array([mine], object), r"a\.b\.0 is an array of objects, not saved"),
        (np.array(["2020"], "M8[Y]"), r"a\.b\.0 is an array of datetime64\[Y\], not saved"),
        ({"a"}, r"a\.b\.0 is a set of builtins"),
        (CountVectorizer(input="filename"), r"a\.b\.0: .*input must be 'content'\. Got 'filename'"),
        (CountVectorizer(tokenizer=str), r"a\.b\.0\.tokenizer is the class str"),
        (CountVectorizer(analyzer=float), r"analyzer must be a text"),
        (CountVectorizer(ngram_range=(1, 10**9)), r"ngram_range must be two integers from 1 to 20"),
        (CountVectorizer(token_pattern="(a+)+$"), r"token_pattern must be characters, or sets of"),
        (Pipeline([], memory="cache"), r"memory must be None"),
        (FeatureUnion([], n_jobs=10**6), r"n_jobs must be at most 64"),
        (math, r"a\.b\.0 is a module"),
        (np.ma.masked_array([1]), r"a\.b\.0 is a MaskedArray"),
    ],
)
def test_what_cannot_be_saved_is_named(value, says):
    with pytest.raises(TypeError, match=says):
        Writer(Files().put).node({"a": {"b": [value]}})


@pytest.mark.parametrize(
    ("pattern", "is_kept"),
    [
        (r"(?u)\b\w\w+\b", True), (r"\S+", True), (r"[^ ]+", True), (r"\b[a-zåäö]{3,}\b", True),
        (r"(?u)\b\w[\w-]+\b", True), (r"\w{1,9}", True), (r"\w\w+\b", True),
        (r"(\w+)+\b", False), (r"\w*\w*x", False), (r"[^ ]+\b", False), (r"\w+x", False),
        (r"(?=\w+)\w", False), (r"(a|b)+", False), (r"\S{99999}", False),
    ],
)  # fmt: skip
def test_patterns_that_take_no_longer_than_a_text(pattern, is_kept):
    if is_kept:
        long = "aaa--- " + "a" * 200_000 + "!"
        assert re.findall(pattern, long)
        there_and_back(CountVectorizer(token_pattern=pattern))
    else:
        with pytest.raises(TypeError, match="so that no text takes it for ever"):
            there_and_back(CountVectorizer(token_pattern=pattern))


@pytest.mark.parametrize(
    "node",
    [
        {"object": "os.system", "parameters": {}, "state": {}},
        {"object": "sklearn_xc._state.sharing", "parameters": {}, "state": {}},
        {"object": "sklearn_xc.show_versions", "parameters": {}, "state": {}},
        {"object": "sklearn_xc.storage.models.Unread", "parameters": {}, "state": {}},
        {"object": "sklearn.base.clone", "parameters": {}, "state": {}},
        {"object": "sklearn.datasets.fetch_openml", "parameters": {}, "state": {}},
        {"object": 3, "parameters": {}, "state": {}},
        {"type": "os.system"},
        {"float": "1e5"},
        {"scalar": ["O", "00" * 8]},
        {"scalar": ["<f8", "00"]},
        {"bytes": "00"},
        {"tuple": [{"same": ["tuple", 1]}, {"same": ["tuple", 0]}]},
        {"random state": {"tuple": ["MT19937", {"array": "key"}, 10**6, 0, 0.0]}},
        {"same": ["x"]},
        {"same": []},
        {"array": "no"},
        {"array": []},
        {"tuple": 3},
        {"dict": []},
        {"pairs": [[1]]},
        {"texts": {"utf-8": "no", "ends": "no"}},
        {"object array": [1], "shape": [2]},
        {"object array": [{"type": "int"}], "shape": [1]},
        {"form": "LabelWeights", "of": {}},
        {"form": "os", "of": {}},
        {"nothing": 1},
        {},
    ],
)
def test_nodes_that_stand_for_nothing(node):
    with pytest.raises(SavedModelError, match=r"^meta\.json: "):
        Reader(node, Files()).value(node)


@pytest.mark.parametrize("kind", ["list", "sklearn.frozen.FrozenEstimator"])
def test_what_would_be_without_end_if_it_were_written_out(kind):
    """Each level holds the one below it twice, or once: `repr` goes through it again and again."""
    node = []
    for depth in reversed(range(40)):
        if kind == "list":
            node = [node, {"same": [0] * (depth + 1)}]
        else:
            node = {"object": kind, "parameters": {"estimator": node}, "state": {}}
    with pytest.raises(SavedModelError, match="values, in objects"):
        Reader(node, Files())
