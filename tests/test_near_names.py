"""Which name may have been meant: as difflib has it, also among very many."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc import _near_names
from sklearn_xc._near_names import did_you_mean

WORDS = st.text("abcd ", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(WORDS, st.lists(WORDS, max_size=30, unique=True))
def test_few_names_are_compared_as_by_difflib(name, names):
    names = [one for one in names if one != name]
    near = difflib.get_close_matches(name, names, 1)
    assert did_you_mean(name, names) == (f" Did you mean {near[0]!r}?" if near else "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("label 7412x", "label 7412"),
        (" Label 123 ", "label 123"),
        ("labl 19999", "label 19999"),
        ("something else", None),
        ("x", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("look_ups", [1, 10_000_000])
def test_of_many_names_the_nearest_is_found(name, expected, look_ups, monkeypatch):
    monkeypatch.setattr(_near_names, "_LOOK_UPS", look_ups)
    found = did_you_mean(name, [f"label {i}" for i in range(20_000)])
    if expected is None:
        assert found == ""
    elif look_ups > 1:
        assert found == f" Did you mean {expected!r}?"
    else:  # of one pair of characters
        assert found.startswith(" Did you mean 'label ")


def test_no_more_names_are_compared_than_is_quick(monkeypatch):
    seen = []

    def compare(name, names, *_):
        seen.append(len(names))
        return []

    monkeypatch.setattr(difflib, "get_close_matches", compare)
    did_you_mean("label 7x", (f"label {i}" for i in range(5000)))
    did_you_mean("label 7x", (f"label {i}" for i in range(50)))
    assert seen == [_near_names._COMPARED, 50]
    monkeypatch.setattr(_near_names, "_MOST_NAMES", 3)
    did_you_mean("label 7x", (f"label {i}" for i in range(50)))
    assert seen[-1] == 3


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("3", [1, 2, 3], " Did you mean 3?"),
        (3, ["1", "2", "3"], " Did you mean '3'?"),
        (31, [1, 2, 30], ""),
        ("31", [1, 2, 30], ""),
        (True, ["True"], ""),
        (None, ["None"], ""),
        (["soup"], ["soup"], ""),
        ("soup", [], ""),
        ("soup" * 1000, ["soup"], ""),
    ],
)
def test_numbers_and_what_is_no_name(name, names, expected):
    assert did_you_mean(name, names) == expected
