"""Values become JSON and come back: equal, of the same types, and one where they were one."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.linear_model import LogisticRegression

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
dtypes = npst.boolean_dtypes() | npst.integer_dtypes() | npst.floating_dtypes(endianness="=") | (
    npst.unicode_string_dtypes(max_len=3) | npst.datetime64_dtypes()
)  # fmt: skip
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=4)
    | dtypes.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0)))
    | npst.floating_dtypes().flatmap(lambda d: npst.from_dtype(d)).map(np.float64)
    | st.lists(texts | st.none(), max_size=3).map(lambda items: np.array(items, object))
    | st.sampled_from([np.float32, np.int64, str, range(3, 9, 2), slice(1, None), np.int8(4)])
    | st.frozensets(texts, max_size=3) | st.sets(st.integers(), max_size=3)
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


@pytest.mark.parametrize("kind", [int, np.int64])
def test_numbered_texts_come_back(kind):
    value = {f"w{i}\ud800é": kind(3 * i - 5) for i in range(500)}
    assert same(there_and_back(value), value)
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
    value = {"a": np.random.RandomState(3), "b": np.random.default_rng(4)}
    value["a"].normal()
    value["b"].normal(size=7)
    back = there_and_back(value)
    assert back["a"].normal() == value["a"].normal()
    assert back["b"].normal() == value["b"].normal()


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
        (np.zeros(2, [("x", int)]), r"a\.b\.0 is an array of records, not saved"),
        (np.array([mine], object), r"a\.b\.0\.0 is a function"),
        (math, r"a\.b\.0 is a module"),
        (np.ma.masked_array([1]), r"a\.b\.0 is a MaskedArray"),
    ],
)
def test_what_cannot_be_saved_is_named(value, says):
    with pytest.raises(TypeError, match=says):
        Writer(Files().put).node({"a": {"b": [value]}})


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
        {"bytes": "0"},
        {"same": ["x"]},
        {"same": []},
        {"array": "no"},
        {"array": []},
        {"tuple": 3},
        {"dict": []},
        {"pairs": [[1]]},
        {"set": {"tuple": [[1]]}},
        {"texts": {"utf-8": "no", "ends": "no"}},
        {"object array": [1], "shape": [2]},
        {"random generator": {"dict": {"bit_generator": "default_rng"}}},
        {"form": "LabelWeights", "of": {}},
        {"form": "os", "of": {}},
        {"nothing": 1},
        {},
    ],
)
def test_nodes_that_stand_for_nothing(node):
    with pytest.raises(SavedModelError, match=r"^meta\.json: "):
        Reader(node, Files()).value(node)
