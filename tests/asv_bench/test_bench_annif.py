"""The experiment with an interpreter that only pretends to have Annif."""

import sys

import pytest

from asv_bench.library import annif_backends

PRETENDER = f"""#!{sys.executable}
import json, pathlib, sys, time
command = sys.argv[3] if sys.argv[1] == "-m" else "punkt"
project = sys.argv[4] if command != "punkt" else ""
with open("calls.txt", "a") as file:
    print(*sys.argv[3:], file=file)
if project == "svc":
    print("some line")
    print("Error: as svc does")
    sys.exit(1)
if project == "tfidf" and command == "train":
    time.sleep(60)
if command == "train":
    folder = pathlib.Path("data", "projects", project)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model").write_bytes(bytes(2_000_000))
    assert pathlib.Path("train.tsv").read_text().count("\\n") == 2945
if command == "eval":
    json.dump({{"NDCG": 0.5, "NDCG@5": 0.25, "F1@5": 0.125}}, open("metrics.json", "w"))
"""


@pytest.fixture
def python(tmp_path):
    path = tmp_path / "python"
    path.write_text(PRETENDER)
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
def test_a_row_per_project_and_errors_in_their_place(python, capsys):
    rows = annif_backends.main(
        python=python, size="1/16", projects=["ova", "svc", "tfidf"], timeout=2
    )
    ova, svc, tfidf = rows
    assert (ova["set"], ova["rows"], ova["project"]) == ("tate", 2945, "ova")
    assert [ova[metric] for metric in annif_backends.METRICS] == [0.5, 0.25, 0.125]
    assert ova["model_mb"] == 2.0
    assert 0 < ova["train_cpu_s"] < 2
    assert 0 < ova["eval_wall_s"] < 2
    assert svc["error"] == "annif train: Error: as svc does"
    assert tfidf["error"] == "annif train: ended after 2 s"
    printed = capsys.readouterr().out
    assert "train CPU s" in printed
    assert "0.1250" in printed


def test_what_annif_reads(python, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    place = annif_backends.AnnifFolder(folder, python)
    place.write_documents("docs.tsv", ["two\twords ", "one"], [[3, 5], [4]])
    assert (folder / "docs.tsv").read_text().splitlines() == [
        "two words\t<http://example.org/3> <http://example.org/5>", "one\t<http://example.org/4>",
    ]  # fmt: skip
    place.write_vocabulary(["a, b", ""])
    assert (folder / "vocabulary.csv").read_text().splitlines() == [
        "uri,label_en", 'http://example.org/0,"a, b"', "http://example.org/1,label 1",
    ]  # fmt: skip
    place.write_projects({"mine": {"backend": "svc", "min_df": "1"}})
    assert "backend=svc" in (folder / "projects.cfg").read_text().splitlines()
    assert "min_df=2" not in (folder / "projects.cfg").read_text()
    place.run("list-projects", "x")
    assert (folder / "calls.txt").read_text() == "list-projects x\n"


def test_without_an_interpreter():
    with pytest.raises(FileNotFoundError, match="--python FILE must be an interpreter that has"):
        annif_backends.main(python=None)
