"""Names, classes, indicators and texts from the containers that users bring."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_xc import LabelBinarizerXC, OvALinearXC, TextClassifierXC, topk_names
from sklearn_xc.exceptions import UnknownLabelWarning
from sklearn_xc.metrics import precision_at_k
from sklearn_xc.model_selection import RareLabelSplit

TEXTS = ["soup stock", "bread dough", "stock of soup", "rye bread"] * 6
X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 6)


def tagger(y, texts=TEXTS, **parameters):
    return TextClassifierXC(classifier=OvALinearXC(), **parameters).fit(texts, y)


def arrow(values):
    """Return a pyarrow array, or skip."""
    return pytest.importorskip("pyarrow").array(values)


def arrow_table(**columns):
    return pytest.importorskip("pyarrow").table(columns)


FRAME = pd.DataFrame(Y, columns=["a", "b"])


@pytest.mark.parametrize(
    "frame",
    [
        lambda: FRAME.astype("Int64"),
        lambda: FRAME.astype(bool).astype("boolean"),
        lambda: FRAME.assign(a=FRAME["a"].astype(bool)),
        lambda: arrow_table(a=Y[:, 0], b=Y[:, 1]).to_pandas(types_mapper=pd.ArrowDtype),
        lambda: pl.DataFrame({"a": Y[:, 0], "b": Y[:, 1]}),
        lambda: arrow_table(a=Y[:, 0], b=Y[:, 1]),
    ],
    ids=["Int64", "boolean", "mixed", "Arrow", "polars", "pyarrow"],
)
def test_frames_are_indicators(frame):
    given, expected = frame(), OvALinearXC().fit(X, FRAME)
    model = OvALinearXC().fit(X, given)
    assert model.classes_.tolist() == ["a", "b"]
    assert (model.coef_ != expected.coef_).nnz == 0
    assert model.score(X, given) == expected.score(X, Y)
    assert precision_at_k(given, np.zeros((24, 1), int), k=1) == Y[:, 0].mean()
    assert (model.predict_topk(X, 2, exclude=given)[0] >= 0).sum() == (Y == 0).sum()
    np.testing.assert_array_equal(
        next(RareLabelSplit(2).split(X, given))[0], next(RareLabelSplit(2).split(X, Y))[0]
    )


CLASSES = ["a", "b", None, "b"] * 6
READERS = {
    "tagger": tagger,
    "classifier": lambda y: OvALinearXC().fit(X, y),
    "splitter": lambda y: list(RareLabelSplit(2).split(X, y)),
    "score": lambda y: OvALinearXC().fit(X, ["a", "b"] * 12).score(X, y),
}


@pytest.mark.parametrize(
    ("container", "reader"),
    [
        (list, "tagger"),
        (lambda y: [*y[:2], np.nan, *y[3:4] * 21], "score"),
        (tuple, "classifier"),
        (lambda y: np.array(y, object), "splitter"),
        (lambda y: pd.Series(y, dtype="category"), "classifier"),
        (lambda y: pd.Series(pd.Categorical(y).codes, dtype="Int64").replace(-1, pd.NA), "tagger"),
        (lambda y: pd.Series(y, dtype=pd.ArrowDtype(arrow(y).type)), "splitter"),
        (pl.Series, "splitter"),
        (arrow, "tagger"),
        (lambda y: pd.to_datetime(pd.Series(y).map({"a": "2001", "b": "2002"})), "classifier"),
    ],
)
def test_a_missing_class_is_an_error(container, reader):
    says = r"Got \d+ of 24 rows whose class is missing or infinite, row 2 first: drop"
    with pytest.raises(ValueError, match=says):
        READERS[reader](container(CLASSES))


def test_equal_lists_of_zeros_and_ones_are_an_indicator():
    assert tagger(Y.tolist()).classes_.tolist() == [0, 1]
    with pytest.raises(TypeError, match=r"Got 0\.5 among the names of row 1"):
        tagger([[1], [0.5, 1]] * 12)


def test_a_warning_if_no_name_is_known():
    model = tagger([["soup"], ["bread"]] * 12)
    for ask in (
        lambda: model.score(TEXTS, [["Soup", "tea"]] * 24),
        lambda: topk_names(model, TEXTS, exclude=[["Soup"], ["tea"]] * 12),
    ):
        with pytest.warns(
            UnknownLabelWarning,
            match=r"none of the 2 names is known: 'Soup', \.\.\. Did you mean 'soup'\?$",
        ) as told:
            ask()
        assert len(told) == 1


@pytest.mark.parametrize(
    "texts",
    [
        lambda: pd.DataFrame({"text": TEXTS}),
        lambda: np.array(TEXTS)[:, None],
        lambda: pl.DataFrame({"text": TEXTS}),
        lambda: arrow(TEXTS),
        lambda: arrow_table(text=TEXTS),
    ],
    ids=["pandas", "(n, 1)", "polars", "pyarrow array", "pyarrow table"],
)
def test_columns_of_texts(texts):
    y = ["soup", "bread"] * 12
    model, given = tagger(y), texts()
    expected = model.predict_topk(TEXTS)[1]
    np.testing.assert_array_equal(model.predict_topk(given)[1], expected)
    np.testing.assert_array_equal(tagger(y, given).predict_topk(TEXTS)[1], expected)


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ("['rice', 'pan']", lambda y: tagger(y)),
        ("{'rice', 'pan'}", lambda y: LabelBinarizerXC(separator=",").fit(y)),
        ("[5, 6]", lambda y: OvALinearXC().fit(X, y)),
    ],
)
def test_lists_written_as_text_are_noticed(cell, read):
    with pytest.raises(ValueError, match=r"lists that were written as text, such as .*ast\.lit"):
        read([cell, "[]", "['soup']", "bread"] * 6)


def test_a_matrix_is_no_sequence_of_texts():
    says = r"X must be a sequence of texts.*Got \w+ of shape \(24, 3\)\. OvALinearXC and other"
    with pytest.raises(ValueError, match=says):
        tagger(["soup", "bread"] * 12, X)
