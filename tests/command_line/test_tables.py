"""Tables of every format hold the same rows; errors name the file and what to do."""

import argparse
import gzip
import io
import lzma
import sys

import pandas as pd
import pytest

from sklearn_xc.command_line.tables import CommandError, names_of, read_chunks, texts_of

ROWS = [
    {"id": "1", "text": "grüne Suppe, heiß", "tags": "a;b"},
    {"id": "2", "text": 'two\nlines and a "quote"', "tags": ""},
    {"id": "3", "text": "5 'o clock", "tags": "NA"},
]


def read(path, needed=(), **options):
    options = {"format": None, "delimiter": None, "encoding": "utf-8-sig"} | options
    columns = {"--text": list(needed)}
    return pd.concat(read_chunks(str(path), columns, argparse.Namespace(**options)))


@pytest.mark.parametrize(
    ("name", "form", "options"),
    [
        ("t.csv", {"sep": ","}, {}),
        ("t.txt", {"sep": ";"}, {"delimiter": ";"}),
        ("t.tsv", {"sep": "\t", "encoding": "utf-8-sig"}, {}),
        ("t", {"sep": "\t", "encoding": "cp1252"}, {"format": "tsv", "encoding": "cp1252"}),
    ],
)
def test_delimited(tmp_path, name, form, options):
    pd.DataFrame(ROWS).to_csv(tmp_path / name, index=False, **form)
    assert read(tmp_path / name, **options).to_dict("records") == ROWS


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip), (".xz", lzma)])
def test_compressed(tmp_path, end, pack):
    path = tmp_path / f"t.csv{end}"
    whole = pack.compress(b"text,tags\n" + 2000 * b"a soup,x\n")
    path.write_bytes(whole)
    assert len(read(path)) == 2000
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CommandError, match=rf"t\.csv\{end}: "):
        read(path)


def test_json_lines_and_parquet_hold_lists_and_numbers(tmp_path):
    frame = pd.DataFrame(
        {"text": ["007", "é"], "n": [1, 2], "day": ["2020-01-01", "x"], "tags": [["a", "b"], []]}
    )
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.parquet"):
        found = read(tmp_path / name)
        assert texts_of(found, ["text", "n", "day"]) == ["007 1 2020-01-01", "é 2 x"]
        assert [names_of(cell, None) for cell in found["tags"]] == [["a", "b"], []]


def test_standard_input(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"text\tn\na b\t1\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read("-", format="tsv").to_dict("records") == [{"text": "a b", "n": "1"}]


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("text,n\nx,1\ny,1,2\n", {}, "Expected 2 fields in line 3, saw 3"),
        ('text,n\nx,"1\n', {}, "EOF inside string"),
        ("Text;n\nx;1\n", {}, r"no column 'text' \(--text\). The table has: Text;n.*--delimiter"),
        ("Text,n\nx,1\n", {}, r"The table has: Text, n. Did you mean 'Text'\?"),
        ('{"text": "x"}\n{"text"\n', {"format": "jsonl"}, r"t: No .* at position"),
        ("no parquet", {"format": "parquet"}, "Parquet"),
    ],
)
def test_what_is_no_table(tmp_path, content, options, says):
    (tmp_path / "t").write_text(content)
    with pytest.raises(CommandError, match=says):
        read(tmp_path / "t", ["text"], **options)


def test_a_missing_library(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("text\nx\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(CommandError, match=r"needs pandas.*pip install 'sklearn-xc\[cli\]'"):
        next(read_chunks(str(tmp_path / "t.csv"), {}, argparse.Namespace(format=None)))


@pytest.mark.parametrize(
    ("cell", "separator", "names"),
    [
        ("a; b ;;a", ";", ["a", "b"]),
        ("a; b", None, ["a; b"]),
        (["a ", "b", None, 3], ";", ["a", "b", "3"]),
        (float("nan"), ";", []),
        (3.0, None, ["3"]),
    ],
)
def test_names_in_a_cell(cell, separator, names):
    assert names_of(cell, separator) == names


@pytest.mark.parametrize("cell", [{"a": 1}, ["a", ["b"]]])
def test_cells_without_names(cell):
    with pytest.raises(CommandError, match=r"must be names, or a list of names\. Got"):
        names_of(cell, None)
