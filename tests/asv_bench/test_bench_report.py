from asv_bench.common.environment import environment_lines
from asv_bench.common.report import Column, Report, format_table

COLUMNS = [Column("set", "set"), Column("cpu_s", "CPU s", ".2f"), Column("n", "labels", ",")]
ROWS = [{"set": "tate", "cpu_s": 12.3456, "n": 16455}, {"set": "bibtex", "cpu_s": None}]


def test_plain_table_is_aligned():
    assert format_table(ROWS, COLUMNS).splitlines() == [
        "set     CPU s  labels",
        "------  -----  ------",
        "tate    12.35  16,455",
        "bibtex",
    ]


def test_markdown_table_is_aligned():
    assert format_table(ROWS, COLUMNS, markdown=True).splitlines() == [
        "| set    | CPU s | labels |",
        "| ------ | ----: | -----: |",
        "| tate   | 12.35 | 16,455 |",
        "| bibtex |       |        |",
    ]


def test_table_without_rows_keeps_its_header():
    assert format_table([], COLUMNS).splitlines()[0].split() == ["set", "CPU", "s", "labels"]


def test_environment_names_what_numbers_depend_on():
    text = "\n".join(environment_lines())
    for word in ("sklearn_xc", "Python", "numpy", "scipy", "numba", "cores", "BLAS threads", "UTC"):
        assert word in text


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    report = Report("quiet")
    report.table("Times", ROWS, COLUMNS)
    assert report.figure(None, "none") is None
    report.save()
    assert "Times" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
