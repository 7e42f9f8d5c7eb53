"""The most similar name, as difflib measures it."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._labels.names import did_you_mean

WORDS = st.text("abcd ", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(WORDS, st.lists(WORDS, max_size=30, unique=True))
def test_names_are_compared_as_by_difflib(name, names):
    names = [one for one in names if one != name]
    near = difflib.get_close_matches(name, names, 1)
    assert did_you_mean(name, names) == (f" Did you mean {near[0]!r}?" if near else "")


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        (" Soup ", ["soup"], " Did you mean 'soup'?"),
        ("3", [1, 2, 3], " Did you mean 3?"),
        (3, ["1", "2", "3"], " Did you mean '3'?"),
        (31, [1, 2, 30], ""),
        (True, ["True"], ""),
        (["soup"], ["soup"], ""),
        ("soup", [], ""),
    ],
)
def test_numbers_and_other_objects(name, names, expected):
    assert did_you_mean(name, names) == expected
