"""Tables of every kind are the same rows, and what is wrong with one is told with its line."""

import argparse
import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc.command_line import parquet
from sklearn_xc.command_line.cells import names_of
from sklearn_xc.command_line.errors import CommandError
from sklearn_xc.command_line.tables import in_chunks, open_table
from sklearn_xc.command_line.tagged_tables import DelimitedWriter

ROWS = [
    {"id": "1", "text": "grüne Suppe, heiß", "tags": "a;b"},
    {"id": "2", "text": 'two\nlines and a "quote"', "tags": ""},
    {"id": "3", "text": "5 'o clock", "tags": "c"},
]


def read(path, **options):
    options = {"format": None, "delimiter": None, "encoding": None, "quotes": True} | options
    with open_table(str(path), argparse.Namespace(**options)) as table:
        return table.columns, list(table.rows)


def error_of(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CommandError) as caught:
        read(path, **options)
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "TABLE")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-marked"])
@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.csv", ";"), ("t.tsv", "\t")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_of_text(tmp_path, as_csv, encoding, name, delimiter, end):
    path = as_csv(
        tmp_path / name, ROWS, encoding=encoding.removesuffix("-le-marked"), delimiter=delimiter,
        lineterminator=end,
    )  # fmt: skip
    assert read(path) == (["id", "text", "tags"], ROWS)


@pytest.mark.parametrize(("end", "pack"), [("gz", gzip), ("xz", lzma), ("bz2", bz2)])
def test_a_compressed_table(tmp_path, as_csv, end, pack):
    plain = as_csv(tmp_path / "t.csv", ROWS)
    packed = tmp_path / f"t.csv.{end}"
    packed.write_bytes(pack.compress(Path(plain).read_bytes()))
    assert read(packed) == read(plain)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(CommandError, match="compressed data are damaged or cut off"):
        read(packed)


def test_an_encoding_that_is_asked_for(tmp_path, as_csv):
    for written, asked in [("utf-8-sig", "utf8"), ("utf-16-le", "utf-16-le"), ("cp1252",) * 2]:
        path = as_csv(tmp_path / "t.csv", ROWS, encoding=written)
        assert read(path, encoding=asked) == (["id", "text", "tags"], ROWS)


def test_bytes_of_another_encoding(tmp_path, as_csv):
    path = as_csv(tmp_path / "t.csv", ROWS, encoding="cp1252")
    error = error_of(tmp_path / "t.csv", Path(path).read_bytes())
    assert "TABLE, line 2: byte 6 of the line (0xfc) is no UTF-8." in error
    assert "--encoding cp1252" in error


def test_json_lines(tmp_path, as_jsonl):
    rows = [{"text": "a", "tags": ["x", "y"]}, {"text": "b", "more": {"n": 1}}]
    path = tmp_path / "t.jsonl"
    as_jsonl(path, rows)
    path.write_text(path.read_text().replace("\n", "\n\n"))
    assert read(path) == (["text", "tags", "more"], rows)


def test_parquet(tmp_path):
    rows = [{"text": "a", "tags": ["x", "y"], "n": 1}, {"text": None, "tags": [], "n": 2}]
    path = tmp_path / "t.parquet"
    pl.DataFrame(rows).write_parquet(path)
    assert read(path) == (["text", "tags", "n"], rows)
    path.write_bytes(b"PAR1 and then nothing of use")
    with pytest.raises(CommandError, match="this Parquet file cannot be read"):
        read(path)
    assert "--format parquet" in error_of(tmp_path / "t", b"PAR1....")


def test_parquet_without_a_package_that_reads_it(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(parquet.importlib, "import_module", missing)
    error = error_of(tmp_path / "t.parquet", b"PAR1")
    assert "TABLE: a further package must be installed to read Parquet: pip install" in error


@pytest.mark.parametrize(("content", "kind"), [("text,n\na,1\n", "csv"), ('{"text": "a"}\n', "j")])
def test_standard_input_and_names_that_tell_nothing(tmp_path, monkeypatch, content, kind):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    first = read("-")
    assert first[1][0]["text"] == "a"
    (tmp_path / "t").write_text(content)
    assert read(tmp_path / "t") == first


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "TABLE: the table is empty."),
        ("\n\n", "TABLE: the table is empty."),
        ("a,b,a\n1,2,3\n", "'a' more than once"),
        ("a,b\n1,2\n\n1,2,3\n", "TABLE, line 4: 3 cells between ',', but the first line names 2"),
        ('a,b\n1,"2\n3,4\n5,6\n', "TABLE, line 2: a double quote is opened in this row and never"),
        (
            'a,b\n1,2\n"3" x,4\n',
            "TABLE, line 3: a double quote of this row is never closed",
        ),
        ('a,b\n1,"x\ny",3\n', "TABLE, line 2: 3 cells"),
        ("a,b\r1,2\r", "the lines end in a way that only old programs write"),
        ("PK\x03\x04...", "an Excel workbook"),
    ],
    ids=["empty", "blank", "twice", "long", "open", "after", "two lines", "old ends", "zip"],
)
def test_what_is_wrong_with_a_table_of_text(tmp_path, content, says):
    assert says in error_of(tmp_path / "t.csv", content)


def test_quotes_that_are_ordinary_characters(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('a\tb\n"1\t2" x\n')
    assert read(path, quotes=False)[1] == [{"a": '"1', "b": '2" x'}]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "TABLE: the table is empty."),
        ('{"a": 1}\n{"a": 2\n', "TABLE, line 2: no JSON at character"),
        ('{"a": 1}\n\n["a"]\n', "TABLE, line 3: each line must be an object of its own"),
        ("[" * 10**6, "TABLE, line 1: the JSON is nested too deeply."),
        (b'{"a": "\xff"}', "TABLE, line 1: byte 8 of the line (0xff) is no UTF-8."),
    ],
    ids=["empty", "broken", "list", "deep", "bytes"],
)
def test_what_is_wrong_with_json_lines(tmp_path, content, says):
    assert says in error_of(tmp_path / "t.jsonl", content)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1))
def test_any_text_survives_csv(tmp_path_factory, as_csv, texts):
    rows = [{"n": str(n), "text": text} for n, text in enumerate(texts)]
    path = as_csv(tmp_path_factory.mktemp("any") / "t.csv", rows)
    assert read(path) == (["n", "text"], rows)
    copy = Path(path).with_name("copy.csv")
    with open(copy, "wb") as stream:
        writer = DelimitedWriter(stream, ["n", "text"], ("labels", "scores"), ";", ",")
        writer.write(rows, [[("a", 0.25), ("b", 1e-9)]] * len(rows))
    tags = {"labels": "a;b", "scores": "0.25;1e-09"}
    assert read(copy) == (["n", "text", *tags], [row | tags for row in rows])


def test_labels_that_spreadsheets_would_run_survive_csv(tmp_path):
    """No name begins as a formula, however the table is split; read again, they are the same."""
    names = ["=cmd|' /C calc'!A0", "'=1+1", "@SUM(A1)", "-1+cmd|x", "-ism", "@angular/core", "'s"]
    with open(tmp_path / "t.csv", "wb") as stream:
        writer = DelimitedWriter(stream, ["n"], ("labels", "scores"), ";", ",")
        writer.write([{"n": "1"}], [[(name, 1.0) for name in names]])
    cell = read(tmp_path / "t.csv")[1][0]["labels"]
    assert [part[0] for part in cell.split(";")] == ["'", "'", "'", "'", "-", "@", "'"]
    assert names_of(cell, ";") == names


@pytest.mark.parametrize("by", [{"n_rows": 7}, {"n_characters": 30}])
def test_chunks_are_all_rows_in_order(tmp_path, as_csv, made, by):
    rows = made(40)
    options = argparse.Namespace(format=None, delimiter=None, encoding=None, quotes=True)
    with open_table(as_csv(tmp_path / "t.csv", rows), options) as table:
        chunks = list(in_chunks(table, ["id", "text"], **by))
    assert [text for _, texts in chunks for text in texts] == [
        f"{row['id']} {row['text']}" for row in rows
    ]
    assert all(len(some) == len(texts) <= 7 for some, texts in chunks)
