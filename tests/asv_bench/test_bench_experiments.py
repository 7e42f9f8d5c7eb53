"""Every experiment at a small size, and the command line."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from asv_bench import EXPERIMENTS
from asv_bench.__main__ import main, run
from asv_bench.common.sets import load
from asv_bench.decomposition.theorems import loss_of
from asv_bench.embedding.batches import Embedded, Theorem
from asv_bench.one_vs_all import inits, inits_trace

ROOT = Path(__file__).resolve().parents[2]


# The command line


def test_listing_has_one_line_per_experiment(capsys):
    assert main([]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name in EXPERIMENTS:
        assert len([words for words in lines if words[:1] == [name] and len(words) > 3]) == 1


def commands_of(text):
    """Yield the commands of the experiments in a page: names and options."""
    for found in re.findall(r"`?(python\s+-m\s+asv_bench\s[^`]+?)(?:`|\n\n)", text):
        words = shlex.split(found.replace("\\\n", " "))[3:]
        if not words[0].startswith("-") and words[0] != "NAME":
            yield words


def test_commands_of_the_papers_pages_name_experiments_and_options(capsys):
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "papers").glob("*.md"))]
    commands = [(page, each) for page in pages for each in commands_of(page.read_text("utf-8"))]
    assert commands
    for page, (name, *options) in commands:
        assert name in EXPERIMENTS, f"{page.name}: {name}"
        if options and options[-1] in ("--parts", "..."):  # the head of a column of parts
            options.pop()
        with pytest.raises(SystemExit) as stop:
            main([name, *options, "--help"])
        assert stop.value.code == 0, f"{page.name}: {name} {options}"


# Start vectors


def test_a_row_per_set_and_start(data, capsys):
    rows = run("inits", "--data", str(data), "--sets", "bibtex", "delicious", "--repeats", "2")
    assert [row["init"] for row in rows] == 2 * ["msi", *(i for i in inits.STARTS if i != "msi")]
    for row in rows:
        base = next(r for r in rows if (r["set"], r["init"]) == (row["set"], "msi"))
        assert row["ratio to msi"] == row["CPU s"] / base["CPU s"]
        assert row["Hessian products"] >= row["Newton steps"] > 0
        assert row["not converged"] == 0
        np.testing.assert_allclose(row["objective sum"], base["objective sum"], rtol=0.02)
    assert len({row["objective sum"] for row in rows}) > 2  # the starts are really different


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_tables_of_the_paper(number, data, monkeypatch, capsys):
    table = inits.TABLES[number]
    few = (inits.PaperSet("bibtex", "Eurlex", n_rows=150),)
    if number == 1:
        few += (inits.PaperSet("delicious", "Slice", n_labels=5, dense=True),)
    monkeypatch.setitem(inits.TABLES, number, table._replace(sets=few))
    rows = run("inits", "--data", str(data), "--table", str(number))
    assert [row["init"] for row in rows] == len(few) * list(table.starts)
    assert ("msi -3" in table.starts) == (number == 2)
    assert all(row["rows"] in (150, 200) and 0 < row["P@5"] <= 100 for row in rows)
    printed = capsys.readouterr().out
    for a, b in table.ratios:
        assert f"{a} / {b}" in printed
        assert {a, b} <= set(table.starts)


def test_trace_follows_every_start(data, tmp_path):
    options = ["--data", str(data), "--sets", "delicious", "--trace", "--out", str(tmp_path)]
    rows = run("inits", *options)
    for start in inits_trace.STARTS:
        own = [row for row in rows if row["init"] == start]
        assert [row["step"] for row in own] == list(range(len(own)))
        assert own[1]["objective"] < own[0]["objective"]
        assert all(0 < row["multiplier"] <= 1 for row in own[1:])
        assert own[0]["labels"] == 13
    shares = {row["init"]: row["active share"] for row in rows if row["step"] == 0}
    assert shares["zero"] == shares["bias -0.9"] == 1
    assert shares["bias -2"] < 0.3  # the positives
    assert next(row for row in rows if row["init"] == "zero")["objective"] == 200
    assert (tmp_path / "inits_trace_delicious.png").read_bytes().startswith(b"\x89PNG")


# Loss decomposition


def test_the_loss_in_numpy_is_that_of_the_package(label_set_loss):
    rng = np.random.default_rng(0)
    for mu in 50 * [0.1, 1.0, 5.0]:
        z = rng.normal(size=rng.integers(2, 30)) * rng.choice([0.1, 1, 5])
        loss, out, _ = label_set_loss("margin", z, 1, mu)
        found, slope = loss_of(z, mu)
        assert found == pytest.approx(loss, abs=1e-9)
        np.testing.assert_allclose(slope, out, atol=1e-9)


def test_theorems_and_errors(capsys):
    options = ["--levels", "2", "--per-class", "2", "--instances", "4"]
    rows = run("loss_decomposition", *options, "--parts", "theorems", "error")
    theorem_1 = [row["value"] for row in rows if "value" in row]
    assert theorem_1[0] < 1e-9 < theorem_1[1] + 2e-9
    for row in (row for row in rows if "rounds" in row):
        assert row["mean gap"] <= row["mean bound"]
        if row["tau_2"] == 0:
            assert row["|M* - M| / |M*|"] == pytest.approx(row["2 / ((t + 1) (t + 2))"])
    errors = [row for row in rows if row.get("search") == "exact: blocks, scored"]
    assert errors[-1]["error"] < errors[0]["error"]


# NGAME


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parts_of_ngame(data, tmp_path, capsys):
    options = ["--data", str(data), "--epochs", "2", "--steps", "3", "--sizes", "8", "--ova"]
    rows = run("ngame", *options, "--samplers", "in_batch", "ngame", "--out", str(tmp_path))
    by_part = {part: [r for r in rows if r["part"] == part] for part in {r["part"] for r in rows}}
    assert [r["epochs"] for r in by_part["samplers"]] == [1, 2, 1, 2]
    scores = {row["scores"]: row for row in by_part["components"]}
    assert set(scores) == {"embedding", "classifiers", "sum of both", "fused", "OvALinearXC"}
    for name, row in scores.items():
        parts = sum(tenth[name] for tenth in by_part["deciles"])
        assert 100 * parts == pytest.approx(row["P@5"], abs=1e-6)
    assert sum(tenth["labels"] for tenth in by_part["deciles"]) == 7
    assert by_part["tail"][-1]["scores"] == "tf-idf cosine"
    for row in by_part["equal_degrees"]:
        if "bound" in row:  # Corollary 2
            assert row["missed, of all pairs"] <= row["bound"]
    norms = [r["smallest norm"] for r in by_part["convergence"] if r["clusters of"] == "240"]
    assert norms == sorted(norms, reverse=True)


def test_the_bound_by_a_loop():
    """eps1 and eps2 of Theorem 1, by going through all pairs."""
    rng = np.random.default_rng(0)
    V, W = rng.normal(size=(30, 3)), rng.normal(size=(6, 3))
    V, W = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (V, W))
    Y = np.eye(6)[np.arange(30) % 6]
    Y[::4, 0] = 1
    cluster = np.arange(30) // 10
    import scipy.sparse as sp

    known = Embedded("made", V, W, sp.csr_array(Y.astype(np.float32)))
    found = Theorem(known, (0.7,), 0)(0.7, cluster)
    far = [np.linalg.norm(V[i] - W[k]) >= 0.7 for i, k in zip(*Y.nonzero(), strict=True)]
    near = [
        cluster[i] != cluster[j] and np.linalg.norm(V[i] - V[j]) <= 1.4
        for i in range(30)
        for j in range(30)
    ]
    assert found["eps1"] == pytest.approx(np.mean(far))
    assert found["eps2"] == pytest.approx(np.mean(near))


# Word vectors


def test_the_objective_falls_and_exact_is_lowest(tmp_path):
    options = ["--corpora", "made", "--words", "300", "--iterations", "3", "--dim", "8"]
    rows = run("skip_gram_objective", *options, "--out", str(tmp_path))
    for gradient in ("exact", "sampled", "decomp_mips", "mips"):
        curve = [row["objective"] for row in rows if row["gradient"] == gradient]
        assert len(curve) == 3
        assert curve[-1] < curve[0]


# Around classifiers


def test_decisions(data):
    options = ["--data", str(data), "--sets", "bibtex", "--size", "all"]
    rows = run("decisions", *options)
    assert {row["part"] for row in rows} == {"f1", "ece", "logistic", "macro"}
    plain, tuned, *_ = (row for row in rows if row["part"] == "f1")
    assert (plain["thresholds"], tuned["thresholds"]) == ("0", "default")
    assert all(0 <= row["top1"] <= 1 for row in rows if "top1" in row)


def test_hierarchy(data):
    from asv_bench.library.hierarchy import compare
    from sklearn_xc import LabelHierarchy

    found = load("bibtex", data)
    hierarchy = LabelHierarchy.from_edges([(i, i % 3) for i in range(3, 12)], labels=range(12))
    rows = compare(found.X_train, found.Y_train, found.X_test, found.Y_test, hierarchy)
    closed = [row for row in rows if row["answers"].endswith("closed")]
    assert len(rows) == 4
    assert all(row["inconsistent %"] == 0 for row in closed)
