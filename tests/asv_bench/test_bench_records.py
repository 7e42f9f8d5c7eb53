import json
import shutil

import numpy as np
import pytest

from asv_bench import records
from asv_bench.common.report import Report, format_table

ROWS = [
    {"set": "bibtex", "P@1": np.float64(63.8171), "kept": 0.914, "CPU s": 0.434, "_hidden": 99},
    {"set": "delicious", "P@1": np.float32(67.13), "kept": float("nan"), "CPU s": None},
]
PAGE = """
Made up.

<!-- record: accuracy; not 12 -->
| set of 77 | P@1 | in the paper | CPU s | kept |
|---|--:|--:|--:|--:|
| bibtex, 159 | **63.8** | 64.1 | .43 | 91.4% |
| delicious | 67 of 12 | | 4,600 | 63.82 / 64.0 |

<!-- record: accuracy -->

With `C=1` it is 63.8, 0.2 more than
before: [61](page.md#5).

No record: 5.
"""


@pytest.fixture
def kept(tmp_path):
    """Return a folder with a record."""
    report = Report("accuracy", record=tmp_path / "kept" / "accuracy.json")
    report.table("Test split of 4,880 rows", ROWS)
    report.line("Means of 3.")
    report.save()
    return tmp_path / "kept"


def write_page(folder, text=PAGE):
    (folder / "page.md").write_text(text, encoding="utf-8")
    return folder / "page.md"


# The record


def test_record_has_what_was_measured_and_on_what(kept):
    record = json.loads((kept / "accuracy.json").read_text())
    assert record["command"] == "python -m asv_bench accuracy"
    assert record["finished"] is True
    assert record["environment"]["cores"] >= 1
    assert record["environment"]["versions"]["numpy"] == np.__version__
    assert record["wall_s"] >= 0
    assert record["cpu_s"] >= 0
    assert record["peak_mib"] > 10
    (table,) = record["tables"]
    assert list(table["columns"]) == ["set", "P@1", "kept", "CPU s"]
    assert table["rows"] == [
        {"set": "bibtex", "P@1": 63.8171, "kept": 0.914, "CPU s": 0.434},
        {"set": "delicious", "P@1": 67.13, "kept": None, "CPU s": None},
    ]
    assert record["notes"] == ["Means of 3."]


def test_tables():
    plain = format_table(ROWS)
    assert plain.splitlines()[2] == "bibtex     63.82  0.9140  0.4340"
    assert format_table(ROWS, markdown=True).splitlines()[3] == "| delicious | 67.13 |  |  |"
    numbers = [{"n": n} for n in (1234567, 12345.6, 0.00012, -3.5, True, float("inf"))]
    cells = format_table(numbers).splitlines()[2:]
    assert cells == ["1,234,567", "12,346", "1.20e-04", "-3.500", "True"]


# Pages against records


def test_blocks_leave_out_labels_code_and_published_columns():
    table, paragraph = records.blocks_of(PAGE)
    assert table.records == paragraph.records == ["accuracy"]
    assert [number for _, number in table.numbers] == [
        "63.8",
        ".43",
        "91.4",
        "67",
        "4,600",
        "63.82",
        "64.0",
    ]
    assert [number for _, number in paragraph.numbers] == ["63.8", "0.2"]
    assert {line for line, _ in paragraph.numbers} == {
        PAGE.split("\n").index("before: [61](page.md#5).")
    }


def test_numbers_that_no_record_has_are_named_with_their_lines(kept):
    found = records.stale(write_page(kept), kept)
    assert [line.split(" is not in")[0] for line in found] == [
        "page.md:8: 4,600",
        "page.md:8: 64.0",
        "page.md:12: 0.2",
    ]
    assert "nearest 63.8171" in found[1]


@pytest.mark.parametrize(
    ("number", "value", "expected"),
    [
        ("12.3", 12.3499, True),
        ("12.3", 12.351, False),
        ("12.30", 12.31, False),
        (".5", 0.4501, True),
        ("-2", -2.4, True),
        ("29,000", 29_499, True),
        ("29,000", 29_501, False),
        ("29,010", 29_499, False),
        ("100", 104, False),
        ("2e-5", 2.4e-5, True),
        ("2e-5", 2.6e-5, False),
        ("91.4", 0.914, True),
        ("91.4", 9.14, False),
        ("\N{MINUS SIGN}0.2", -0.21, True),
    ],
)
def test_rounding(number, value, expected):
    assert records.is_among(number, [1e9, value]) is expected


# Records against records


def test_changes_beyond_noise_are_named(kept, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "KEPT", kept)
    new = tmp_path / "new"
    shutil.copytree(kept, new)
    assert records.main(["--changed", str(new)]) == 0
    record = json.loads((new / "accuracy.json").read_text())
    first = record["tables"][0]["rows"][0]
    first |= {"P@1": 63.9, "CPU s": 0.5}
    (new / "accuracy.json").write_text(json.dumps(record))
    (new / "another.json").write_text(json.dumps(record))
    capsys.readouterr()
    assert records.main(["--changed", str(new)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "accuracy.json: Test split of 4,880 rows, bibtex, P@1: was 63.8171, is 63.9",
        "another.json: no such record is kept",
        "2 records; 2 to renew.",
    ]
    assert records.main(["--changed", str(new), "--within", "0.1"]) == 1
    assert "CPU s: was 0.434, is 0.5" in capsys.readouterr().out


# The documentation


def test_numbers_of_the_documentation_are_those_of_the_records():
    assert len(records.documents()) > 9
    assert [line for page in records.documents() for line in records.stale(page)] == []


def test_kept_records_are_finished_and_of_no_machine():
    faults = []
    for path in records.KEPT.glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        command = record["command"].replace("1/16", "").replace("1/4", "")
        is_of_any = command.startswith("python -m asv_bench ") and "/" not in command
        faults += [] if record["finished"] and is_of_any else [path.name]
    assert faults == []


def test_numbers_by_row_are_of_one_row_of_a_record(kept):
    """63.8 and 67 are both there, and so each is found; but not in one row."""
    table = "| | P@1 | CPU s | of the other |\n|---|--:|--:|--:|\n"
    table += "| bibtex | 63.8 | .43 | |\n| both | 63.8 | .43 | 67 |\n"
    text = f"<!-- record: accuracy; by row -->\n{table}"
    found = records.stale(write_page(kept, text), kept)
    assert found == ["page.md:5: no row of accuracy has all its numbers; the nearest has not 67"]
    assert not records.stale(write_page(kept, text.replace("; by row", "")), kept)
    left_out = text.replace("by row", "by row; not 67")
    assert not records.stale(write_page(kept, left_out), kept)
