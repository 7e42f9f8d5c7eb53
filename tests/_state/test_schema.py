"""Attributes are checked against each other."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sklearn_xc._state.schema import (
    Array,
    MisfitError,
    Number,
    Record,
    Shape,
    check_attributes,
    declares,
    schema_of,
)
from sklearn_xc._state.values import MODULES


@declares(of_rows=Array("real", "rows"), ids=Array("int64", None, below="labels", ascending=True))
@dataclass
class Inner:
    of_rows: Any
    ids: Any


@declares(
    coef=Array("real", "labels", "features"),
    intercept=Array("real", "labels", optional=True),
    n=Number("int", "features"),
    inner=Record("Inner", rows="labels"),
    pair=Record("Inner", lists=True, n=2, optional=True),
    shape=Shape("labels", "features"),
)
@dataclass
class Outer:
    coef: Any
    intercept: Any
    n: Any
    inner: Any
    pair: Any = None
    shape: Any = (5, 3)


NAMES = ["coef", "intercept", "n", "inner"]


def fitting(**other):
    inner = {"of_rows": np.zeros(5), "ids": np.array([1, 4])}
    inner |= {name: other.pop(name) for name in list(other) if name in inner}
    own = {"coef": np.ones((5, 3)), "intercept": np.ones(5), "n": 3, "inner": Inner(**inner)}
    return Outer(**(own | other))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, ""),
        ({"intercept": None}, ""),
        ({"intercept": np.ones(4)}, "must be an array of float32 or float64 and shape"),
        ({"intercept": np.ones(5, np.float32)}, "must be an array of float32 or float64"),
        ({"coef": np.ones((3, 5)).T}, "must be"),
        ({"coef": None}, r"coef: must be an array of .* Got None"),
        ({"n": 4}, "must be"),
        ({"n": True}, r"n: must be a number \(int\)\. Got True"),
        ({"of_rows": np.zeros(3)}, "must be"),
        ({"ids": np.array([1, 5])}, "must be"),
        ({"ids": np.array([-1, 4])}, "at least 0"),
        ({"ids": np.array([4, 1])}, "ascending"),
        ({"ids": np.array([1, 4], np.int32)}, "must be an array of int64"),
        ({"inner": {}}, r"must be Inner\. Got \{\}"),
        ({"pair": []}, r"must be a list of 2\. Got \[\]"),
        ({"shape": 5}, "must be a shape of 2 lengths"),
    ],
)
def test_attributes_fit_each_other(other, says):
    if not says:
        check_attributes(fitting(**other), "model")
    else:
        with pytest.raises(MisfitError, match=says):
            check_attributes(fitting(**other), "model")


@pytest.mark.parametrize("name", ["coef", "intercept"])  # also one that may be None
def test_a_missing_attribute_is_named(name):
    owner = fitting()
    delattr(owner, name)
    with pytest.raises(MisfitError, match=rf"model\.{name}: is missing"):
        check_attributes(owner, "model")


def test_the_classes_that_a_folder_may_hold_are_where_the_list_says():
    for name, module in MODULES.items():
        kind = getattr(importlib.import_module(module), name)
        if "._" in module or kind.__module__ == module:
            assert hasattr(kind, "_schema") or hasattr(kind, "get_params"), name
        assert all(hasattr(one, "check") for one in schema_of(kind).values())
