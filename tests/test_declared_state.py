"""Attributes are checked against each other in whichever order they are read."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sklearn_xc._declared_state import (
    Array,
    Lengths,
    MisfitError,
    Number,
    Record,
    check_attribute,
    check_record,
    declarations,
    declares,
)
from sklearn_xc._plain_state import RECORDS


@declares(of_rows=Array("real", "rows"), ids=Array("int64", None, below="labels", rises=True))
@dataclass
class Inner:
    of_rows: Any
    ids: Any


@declares(
    coef=Array("real", "labels", "features"),
    intercept=Array("real", "labels", optional=True),
    n=Number("int", "features"),
    inner=Record("Inner", rows="labels"),
)
@dataclass
class Outer:
    coef: Any
    intercept: Any
    n: Any
    inner: Any


NAMES = ["coef", "intercept", "n", "inner"]


def fitting(**other):
    inner = {"of_rows": np.zeros(5), "ids": np.array([1, 4])}
    inner |= {name: other.pop(name) for name in list(other) if name in inner}
    own = {"coef": np.ones((5, 3)), "intercept": np.ones(5), "n": 3, "inner": Inner(**inner)}
    return Outer(**(own | other))


@pytest.mark.parametrize(
    "order", [["coef", "intercept", "n", "inner"], ["inner", "n", "intercept", "coef"]]
)
@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, ""),
        ({"intercept": None}, ""),
        ({"intercept": np.ones(4)}, "must be an array of float32 or float64 and shape"),
        ({"intercept": np.ones(5, np.float32)}, "must be an array of float32 or float64"),
        ({"intercept": np.full(5, np.nan)}, r"intercept: must be finite numbers\. Got array"),
        ({"coef": np.ones((3, 5)).T}, "must be"),
        ({"coef": None}, r"coef: must be an array of .* Got None"),
        ({"coef": np.ones(5)}, "must be"),
        ({"n": 4}, "must be"),
        ({"n": True}, r"n: must be a number \(int\)\. Got True"),
        ({"of_rows": np.zeros(3)}, "must be"),
        ({"ids": np.array([1, 5])}, "must be"),
        ({"ids": np.array([-1, 4])}, "at least 0"),
        ({"ids": np.array([4, 1])}, "rising"),
        ({"ids": np.array([1, 4], np.int32)}, "must be an array of int64"),
        ({"inner": {}}, r"must be Inner\. Got \{\}"),
    ],
)  # fmt: skip
def test_each_order(order, other, says):
    owner, lengths = fitting(**other), Lengths()

    def check():
        for name in order:
            check_attribute(owner, name, lengths, lambda estimator: Lengths(), "model")

    if not says:
        check()
    else:
        with pytest.raises(MisfitError, match=says):
            check()


def test_a_missing_attribute_is_named():
    owner = fitting()
    del owner.coef
    with pytest.raises(MisfitError, match=r"model\.coef: is missing"):
        check_record(owner, Lengths(), "model")


def test_all_records_of_fitted_estimators_declare():
    for name, module in RECORDS.items():
        kind = getattr(importlib.import_module(module), name)
        assert hasattr(kind, "_fits"), name
        assert all(hasattr(held, "check") for held in declarations(kind).values())
