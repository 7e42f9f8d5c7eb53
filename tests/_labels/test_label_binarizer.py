"""Lists of names to an indicator and back, beside scikit-learn's MultiLabelBinarizer."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import MultiLabelBinarizer

from sklearn_xc import LabelBinarizerXC
from sklearn_xc.exceptions import UnknownLabelWarning

TAGS = [["soup", "bread"], [], ["bread"], ["soup", "ale"], None]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(st.lists(st.lists(NAMES, max_size=5), min_size=1, max_size=20).filter(any))
def test_as_scikit_learns(tags):
    ours = LabelBinarizerXC()
    Y = ours.fit_transform(tags)
    theirs = MultiLabelBinarizer(sparse_output=True)
    expected = theirs.fit_transform([set(row) for row in tags])
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert (expected != Y).nnz == 0
    assert [set(row) for row in ours.inverse_transform(Y)] == [set(row) for row in tags]
    np.testing.assert_array_equal(ours.label_counts_, np.ravel(expected.sum(axis=0)))
    assert isinstance(Y, sp.csr_array)
    assert Y.has_sorted_indices


@pytest.mark.parametrize(
    "rows",
    [
        ["soup;bread", "", "bread", " soup ; ale;; ", None],
        pd.Series(["soup;bread", np.nan, "bread", "soup;ale", pd.NA]),
        np.array(["soup;bread", "", "bread", "soup;ale", ""]),
        [("soup", "bread"), (), {"bread"}, ["soup", "ale", "soup"], float("nan")],
        iter(TAGS),
        pd.Series(TAGS),
    ],
)
def test_rows_as_people_have_them(rows):
    binarizer = LabelBinarizerXC(separator=";")
    Y = binarizer.fit_transform(rows)
    assert binarizer.classes_.tolist() == ["ale", "bread", "soup"]
    np.testing.assert_array_equal(
        Y.toarray(), [[0, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]]
    )


def test_integers_are_names_too():
    binarizer = LabelBinarizerXC().fit([[30, 4], np.array([4, 5]), []])
    assert binarizer.classes_.tolist() == [4, 5, 30]
    assert binarizer.inverse_transform(binarizer.transform([[30, 4]])) == [[4, 30]]


def test_given_classes_keep_their_order():
    binarizer = LabelBinarizerXC(classes=["soup", "wine", "bread", "ale"])
    Y = binarizer.fit_transform(TAGS)
    assert Y.toarray()[0].tolist() == [1, 0, 1, 0]
    assert binarizer.label_counts_.tolist() == [2, 0, 2, 1]
    with pytest.warns(UnknownLabelWarning, match=r"y holds 1 unknown names, 'tea'"):
        binarizer.fit([["tea", "soup"]])


def test_added_names_come_after_all_others():
    binarizer = LabelBinarizerXC().fit(TAGS)
    before = binarizer.transform(TAGS)
    binarizer.add_names(["soup", "zest", "aniseed"])
    assert binarizer.classes_.tolist() == ["ale", "bread", "soup", "aniseed", "zest"]
    assert binarizer.label_counts_.tolist() == [1, 2, 2, 0, 0]
    assert (binarizer.transform(TAGS)[:, :3] != before).nnz == 0
    adding = LabelBinarizerXC(classes=["soup"], handle_unknown="add").fit(TAGS)
    assert adding.classes_.tolist() == ["soup", "ale", "bread"]
    assert adding.label_counts_.tolist() == [2, 1, 2]
    assert adding.transform([["zest", "ale"]]).toarray().tolist() == [[0, 1, 0, 1]]
    with pytest.raises(ValueError, match=r"names were texts in fit\. Got 7\.$"):
        binarizer.add_names([7])


def test_unknown_names():
    binarizer = LabelBinarizerXC(handle_unknown="error").fit(TAGS)
    says = r"^LabelBinarizerXC: y holds 2 unknown names, 'tea' most often \(2 times\)\. "
    with pytest.raises(ValueError, match=f"{says}handle_unknown='ignore' leaves them out"):
        binarizer.transform([["tea"], ["soup", "tea", "jam"]])
    binarizer = LabelBinarizerXC().fit(TAGS)
    with pytest.warns(UnknownLabelWarning, match=f"{says}They are left out"):
        Y = binarizer.transform([["tea"], ["soup", "tea", "jam"]])
    assert Y.toarray().tolist() == [[0, 0, 0], [0, 0, 1]]
    known, counts = binarizer.encode([["tea"], ["soup", "tea", "jam"]])
    assert (known != Y).nnz == 0
    assert counts.tolist() == [1, 3]


def test_rare_names_are_left_out():
    binarizer = LabelBinarizerXC(min_count=2)
    assert binarizer.fit_transform(TAGS).toarray().tolist()[3] == [0, 1]
    assert binarizer.classes_.tolist() == ["bread", "soup"]
    assert binarizer.rare_classes_.tolist() == ["ale"]
    binarizer.transform([["ale"]])
    with pytest.raises(ValueError, match=r"no name is in 9 rows \(min_count\)\. The most frequent"):
        LabelBinarizerXC(min_count=9).fit(TAGS)


def test_a_forgotten_separator_is_noticed():
    with pytest.warns(UserWarning, match=r"such as 'soup;ale'\. If these are .* separator=';'\."):
        LabelBinarizerXC().fit(["soup;ale", "bread"])
    with pytest.warns(UserWarning, match=r"pass separator=';'\."):
        LabelBinarizerXC(separator=",").fit(["soup;ale", "bread"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelBinarizerXC().fit([["soup;ale", "bread"]])


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        ("soup;ale", TypeError, r"y must be a list of names for each row\. Got 'soup;ale'\.$"),
        (sp.eye_array(3), TypeError, r"Got dia_array of shape \(3, 3\), which looks like an indic"),
        ([["a"], 3.5], TypeError, r"Got 3\.5 in row 1\.$"),
        ([["a"], [None]], TypeError, r"Got None among the names of row 1\.$"),
        ([["a"], [7]], ValueError, r"names of one kind, all texts or all integers\. Got int and s"),
        ([[], None], ValueError, r"y holds no name, in 2 rows\.$"),
    ],
)
def test_what_is_no_list_of_names_is_refused(y, error, match):
    with pytest.raises(error, match=rf"^LabelBinarizerXC: .*{match}"):
        LabelBinarizerXC().fit(y)


def test_a_column_of_names_among_features():
    table = pd.DataFrame({"tags": ["soup;ale", "bread"], "year": [1900.0, 2000.0]})
    columns = ColumnTransformer(
        [("tag", LabelBinarizerXC(separator=";"), "tags"), ("rest", "passthrough", ["year"])]
    )
    np.testing.assert_array_equal(columns.fit_transform(table), [[1, 0, 1, 1900], [0, 1, 0, 2000]])
    names = ["tag__ale", "tag__bread", "tag__soup", "rest__year"]
    assert columns.get_feature_names_out().tolist() == names


def test_wrong_width_of_an_indicator():
    binarizer = LabelBinarizerXC().fit(TAGS)
    with pytest.raises(ValueError, match=r"Y must have 3 columns, one for each label\. Got shape"):
        binarizer.inverse_transform(np.eye(4))
