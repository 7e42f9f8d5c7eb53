import gzip
import lzma
import re

import numpy as np
import pytest
from scipy.sparse import csr_array

from sklearn_xc.datasets import load_text_dataset
from sklearn_xc.exceptions import DataFormatError

TSV = (
    "book_id\ttitle\tauthor\tall_labels\tlabels\n"
    "1\tMoby Dick\tMelville\t0 1 2\t2 0\n"
    '2\tThe "Whale\t\t1\t\n'
    "3\t\tNemo\u2028\x85Ω\t2\t1\n"
)
NUMBERED = "text\tlabels\nfirst text\t2 0\n\t1\nthird\t\n"
FASTTEXT = (
    "__label__sauce __label__food-safety How much starch?\n"
    "no label here\n"
    "__label__Sauce in __label__between text\n"
    "\n"
)


def write(path, text, compress=lambda data: data):
    path.write_bytes(compress(text if isinstance(text, bytes) else text.encode()))
    return path


def assert_target(data, rows, n_labels):
    target = data.target
    assert isinstance(target, csr_array)
    assert target.dtype == np.int8
    assert target.indices.dtype == target.indptr.dtype == np.int32
    assert target.has_canonical_format
    target.check_format(full_check=True)
    assert target.shape == (len(rows), n_labels)
    assert len(data.data) == len(rows)
    assert [target[[i]].indices.tolist() for i in range(len(rows))] == rows
    assert (target.data == 1).all()


@pytest.mark.parametrize(
    ("compress", "format", "windows"),
    [(bytes, "auto", False), (gzip.compress, "tsv", True), (lzma.compress, "auto", True)],
)
def test_tsv(tmp_path, compress, format, windows):
    text = TSV.replace("\n", "\r\n") if windows else TSV
    data = load_text_dataset(write(tmp_path / "any", text, compress), format=format)
    assert data.data == ["Moby Dick Melville", 'The "Whale', "Nemo\u2028\x85Ω"]
    assert data.text_columns == ["title", "author"]
    assert data.format == "tsv"
    assert data.label_names is None
    assert_target(data, [[0, 2], [], [1]], 3)


def test_tsv_columns(tmp_path):
    path = write(tmp_path / "a.tsv", TSV)
    data = load_text_dataset(path, text_columns=["author", "title"])
    assert data.data == ["Melville Moby Dick", 'The "Whale', "Nemo\u2028\x85Ω"]
    data = load_text_dataset(path, text_columns="title", label_column="all_labels")
    assert data.data == ["Moby Dick", 'The "Whale', ""]
    assert_target(data, [[0, 1, 2], [1], [2]], 3)


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        (["text", "labels"], ["text"]),
        (["id", "text", "labels", "ID", "doc-id", "Row_Id"], ["text"]),
        (["labels", "all_labels", "liquid", "paid", "idea"], ["liquid", "paid", "idea"]),
    ],
)
def test_which_columns_are_text(tmp_path, columns, taken):
    row = ["0" if "labels" in column else "word" for column in columns]
    path = write(tmp_path / "a.tsv", "\t".join(columns) + "\n" + "\t".join(row) + "\n")
    data = load_text_dataset(path)
    assert data.text_columns == taken
    assert data.data == [" ".join(["word"] * len(taken))]


@pytest.mark.parametrize("format", ["auto", "fasttext"])
def test_fasttext(tmp_path, format):
    data = load_text_dataset(write(tmp_path / "a.txt", FASTTEXT), format=format)
    assert data.data == ["How much starch?", "no label here", "in text", ""]
    assert data.format == "fasttext"
    assert data.label_names == ["Sauce", "between", "food-safety", "sauce"]
    assert_target(data, [[2, 3], [], [0, 1], []], 4)


def test_fasttext_labels_are_whole_words(tmp_path):
    text = "__label__a\t__label__b x__label__c  __label__d,e y \n"
    data = load_text_dataset(write(tmp_path / "a.txt", text))
    assert data.data == ["x__label__c  y"]
    assert data.label_names == ["a", "b", "d,e"]


def test_shared_columns(tmp_path):
    numbered = write(tmp_path / "numbered.txt", NUMBERED)
    assert_target(load_text_dataset(numbered, n_labels=5), [[0, 2], [1], []], 5)
    data = load_text_dataset(numbered, label_names=iter(["x", "y", "z", "t"]))
    assert data.label_names == ["x", "y", "z", "t"]
    assert_target(data, [[0, 2], [1], []], 4)
    names = ["sauce", "unseen", "Sauce", "between", "food-safety"]
    fasttext = write(tmp_path / "fasttext.txt", FASTTEXT)
    data = load_text_dataset(fasttext, label_names=names)
    assert data.label_names == names
    assert_target(data, [[0, 4], [], [2, 3], []], 5)
    with pytest.raises(DataFormatError, match=r"line 3: 'between': expected one of the given"):
        load_text_dataset(fasttext, label_names=["sauce", "Sauce", "food-safety"])


def test_nothing_but_a_header(tmp_path):
    data = load_text_dataset(write(tmp_path / "a.tsv", "text\tlabels\n"))
    assert data.data == []
    assert_target(data, [], 0)
    data = load_text_dataset(write(tmp_path / "a.txt", ""), format="fasttext")
    assert data.data == []
    assert_target(data, [], 0)


BAD = [
    ("", {}, ", line 0: '': cannot infer the layout"),
    ("a\tb\tc\n", {}, ", line 1: 'a\\tb\\tc': cannot infer the layout from the first line"),
    (TSV, {"format": "tsv", "label_column": "x"}, "expected a column 'x', there are only ['book"),
    (TSV, {"text_columns": ["name"]}, "expected a column 'name', there are only"),
    ("id\tlabels\n", {}, "expected a column of text besides the labels"),
    ("a\ta\tlabels\n", {}, "expected column names that differ"),
    (TSV + "4\ttitle\t1\n", {}, ", line 5: '4\\ttitle\\t1': expected 5 fields with TABs between"),
    (NUMBERED + "x\t1 a 2\n", {}, ", line 5: 'a': expected space-separated label numbers"),
    (NUMBERED + "x\t1 -2\n", {}, ", line 5: '-2': expected space-separated label numbers"),
    (NUMBERED + "x\t\u0661\n", {}, ", line 5: '\u0661': expected space-separated label numbers"),
    (NUMBERED + "x\t3 1 3\n", {}, ", line 5: '3': this label is twice in the row"),
    (NUMBERED + "x\t0 05\n", {"n_labels": 5}, ", line 5: '05': expected a label below 5"),
    (NUMBERED, {"label_names": ["a"]}, ", line 2: '2': expected a label below 1, the number"),
    (FASTTEXT + "__label__a __label__a b", {}, ", line 5: 'a': this label is twice"),
    (FASTTEXT + "__label__ text", {}, ", line 5: '__label__': expected a name behind it"),
    (
        NUMBERED.encode() + b"caf\xe9 au lait\t1\n",
        {},
        ", line 5: 'caf\\xe9 au lait\\t': expected UTF",
    ),
]


@pytest.mark.parametrize(("text", "arguments", "message"), BAD)
def test_errors_say_where_and_what(tmp_path, text, arguments, message):
    path = write(tmp_path / "data.txt", text)
    with pytest.raises(DataFormatError, match=re.escape(message)) as caught:
        load_text_dataset(path, **arguments)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (TSV, {"format": "csv"}, "format must be one of"),
        (TSV, {"n_labels": 2.5}, r"integer from 0 to 2147483647. Got 2.5"),
        (TSV, {"text_columns": ["text", 3]}, "text_columns must be a sequence of str. Got"),
        (TSV, {"label_names": "abc"}, "label_names must be a sequence of str. Got 'abc'"),
        (TSV, {"label_names": ["a", "b", "a"]}, "holds a name twice"),
        (TSV, {"label_names": ["a", "b"], "n_labels": 3}, "n_labels=3 does not fit the 2"),
        (FASTTEXT, {"text_columns": "text"}, "has neither columns nor label numbers"),
        (FASTTEXT, {"n_labels": 9}, "pass label_names instead of n_labels"),
    ],
)
def test_wrong_arguments(tmp_path, text, arguments, message):
    path = write(tmp_path / "data.txt", text)
    with pytest.raises(ValueError, match=message) as caught:
        load_text_dataset(path, **arguments)
    assert not isinstance(caught.value, DataFormatError)


def test_fuzz(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data.txt"
    alphabet = list(b"0123 \t\n\r-a_\x00\xff\xc3\xa9")
    accepted = 0
    for i in range(600):
        text = bytearray([TSV, NUMBERED, FASTTEXT][i % 3].encode())
        for _ in range(rng.integers(1, 4)):
            start = int(rng.integers(0, len(text) + 1))
            stop = start + int(rng.integers(0, 4))
            text[start:stop] = bytes(rng.choice(alphabet, rng.integers(0, 3)).tolist())
        write(path, bytes(text))
        try:
            data = load_text_dataset(path)
        except DataFormatError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
        else:
            accepted += 1
            n_lines = text.count(b"\n") + (not text.endswith(b"\n")) - (data.format == "tsv")
            assert len(data.data) == data.target.shape[0] == n_lines
            data.target.check_format(full_check=True)
    assert 0.05 < accepted / 600 < 0.95
