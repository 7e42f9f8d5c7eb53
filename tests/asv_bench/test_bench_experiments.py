import importlib
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from asv_bench import EXPERIMENTS
from asv_bench.__main__ import main
from asv_bench.common.data import load_set, take_labels
from asv_bench.common.report import Report
from asv_bench.one_vs_all import (
    accuracy,
    frequencies,
    inits,
    inits_positives,
    inits_tables,
    inits_trace,
    losses,
    optimum,
)
from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import dump_xmc_file, load_xmc_file, make_xc_classification
from sklearn_xc.initialisers import INITIALISERS
from sklearn_xc.metrics import precision_at_k


@pytest.fixture(scope="session")
def made_data(tmp_path_factory):
    """Return a folder with made data under the names of the real sets."""
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("bibtex", "delicious")):
        X, Y = make_xc_classification(
            n_samples=300, n_features=80, n_labels=12 + seed, nnz_per_row=10, random_state=seed
        )
        (folder / name).mkdir()
        dump_xmc_file(folder / name / f"{name}_train.txt.gz", 3 * X[:200], Y[:200])
        dump_xmc_file(folder / name / f"{name}_test.txt.gz", 3 * X[200:], Y[200:])
    return folder


def test_frequencies_share_out_all_labels(made_data, capsys):
    rows = frequencies.main(made_data, sets=("bibtex",), labels=3)
    assert [row["group"] for row in rows][::9] == ["1. tenth", "10. tenth"]
    assert rows[-1]["group"] == "last hundredth"
    counts = np.sort(load_set("bibtex", made_data).Y_train.sum(axis=0))
    counts = counts[counts > 0]
    assert (rows[0]["least"], rows[9]["most"], rows[10]["least"]) == tuple(counts[[0, -1, -1]])
    for one, next_one in itertools.pairwise(rows[:10]):
        assert one["most"] <= next_one["least"]
    assert all(row["ms_per_label"] >= 0 for row in rows)
    assert "bibtex: CPU time by frequency (200 x 80" in capsys.readouterr().out


# Data sets


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repository_sets_have_unit_rows(made_data, dtype):
    split = load_set("delicious", made_data, dtype=dtype)
    assert split.X_train.shape == (200, 80)
    assert split.X_test.shape == (100, 80)
    assert split.Y_train.shape == (200, 13)
    assert split.Y_test.shape == (100, 13)
    for X in (split.X_train, split.X_test):
        assert X.dtype == dtype
        np.testing.assert_allclose(row_norms(X), 1.0, rtol=1e-5)


@pytest.mark.slow
def test_tate_needs_no_files():
    split = load_set("tate", None)
    assert split.X_train.dtype == np.float32
    assert split.X_train.shape[0] == split.Y_train.shape[0] == 47_119
    assert split.X_test.shape == (11_682, split.X_train.shape[1])
    assert (np.bincount(split.X_train.indices, minlength=split.X_train.shape[1]) >= 2).all()


def test_unknown_set_lists_the_known_ones(made_data):
    with pytest.raises(ValueError, match="expected one of bibtex, delicious, tate"):
        load_set("eurlex", made_data)


def test_one_missing_file_is_named(made_data, tmp_path):
    (tmp_path / "bibtex").mkdir()
    train = "bibtex/bibtex_train.txt.gz"
    (tmp_path / train).write_bytes((made_data / train).read_bytes())
    with pytest.raises(FileNotFoundError, match=r"there is no .*bibtex_test\.txt\.gz\."):
        load_set("bibtex", tmp_path)


def test_labels_are_drawn_once_and_for_all(made_data):
    Y = load_set("bibtex", made_data).Y_train
    np.testing.assert_array_equal(take_labels(Y, None), np.arange(12))
    np.testing.assert_array_equal(take_labels(Y, 99), np.arange(12))
    few = take_labels(Y, 5)
    assert len(np.unique(few)) == 5
    np.testing.assert_array_equal(few, take_labels(Y, 5))


# Start vectors


def test_a_row_per_set_and_start(made_data, capsys):
    rows = inits.main(made_data, sets=("bibtex", "delicious"), repeats=2)
    assert [(row["set"], row["init"]) for row in rows] == [
        (name, init) for name in ("bibtex", "delicious") for init in inits.INITS
    ]
    for row in rows:
        base = next(r for r in rows if (r["set"], r["init"]) == (row["set"], "msi"))
        assert row["ratio"] == row["cpu_s"] / base["cpu_s"]
        assert row["n_labels"] == (12 if row["set"] == "bibtex" else 13)
        assert row["dtype"] == "float32"
        assert row["n_products"] >= row["n_iter"] > 0
        assert row["n_unsolved"] == 0
        assert row["goal"] == {"zero": 1.8 if row["set"] == "bibtex" else 1.3, "ovap": 1.1}.get(
            row["init"]
        )
        np.testing.assert_allclose(row["objective"], base["objective"], rtol=1e-3)
    assert len({row["objective"] for row in rows}) > 2  # the starts are really different
    printed = capsys.readouterr().out
    assert "ratio to msi" in printed
    assert "bibtex: start vectors (200 x 80, median of 2)" in printed


def test_fewer_labels_and_wider_floats(made_data):
    rows = inits.main(made_data, sets=("bibtex",), repeats=1, labels=5, dtype="float64")
    assert {row["n_labels"] for row in rows} == {5}
    assert {row["dtype"] for row in rows} == {"float64"}


def test_sweep_tries_every_stop(made_data, capsys):
    rows = inits.main(made_data, sets=("bibtex",), repeats=1, sweep_ovap=True)
    assert [row["init"] for row in rows[1:]] == [f"ovap {stop:g}" for stop in inits.OVAP_STOPS]
    assert rows[0]["init"] == "msi"
    assert len({row["n_iter"] for row in rows[1:]}) > 1
    assert "ovap 1e-05" in capsys.readouterr().out


def test_sweep_tries_both_scores(made_data, capsys):
    rows = inits.main(made_data, sets=("bibtex",), repeats=1, labels=6, sweep_msi=True)
    assert [row["init"] for row in rows] == ["msi", *(f"{s:g}, {t:g}" for s, t in inits.MSI_SCORES)]
    assert len({row["objective"] for row in rows}) > 2
    assert (1, -2) not in inits.MSI_SCORES
    assert "mean scores of positives and negatives" in capsys.readouterr().out


def test_labels_by_positives(made_data, tmp_path, capsys):
    """All of few labels; "zero" begins at C times the number of instances."""
    rows = inits.main(
        made_data, sets=("bibtex",), labels=5, by_positives=True, report=Report(out=tmp_path)
    )
    counts = np.bincount(load_set("bibtex", made_data).Y_train.indices, minlength=12)
    groups = list(dict.fromkeys(row["group"] for row in rows))
    assert "100 to 299" in groups or "30 to 99" in groups
    for group, start in itertools.product(groups, inits_positives.STARTS):
        (row,) = (r for r in rows if (r["group"], r["init"]) == (group, start))
        assert 0 < row["n_labels"] <= 5
        assert counts.min() <= row["positives"] <= counts.max()
        assert row["most_iter"] >= row["n_iter"] > 0
        assert row["ms"] > 0
        assert row["first"] > 1
        if start == "zero":
            assert row["distance"] == pytest.approx(1.0)
    printed = capsys.readouterr().out
    for _, title, _, _ in inits_positives.MEASURES:
        assert f"bibtex (200 x 80): {title}" in printed
    picture = tmp_path / "inits_by_positives_bibtex.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    axes = inits_positives.draw_by_positives(rows, "bibtex").axes
    assert [len(ax.get_lines()) for ax in axes] == 4 * [len(inits_positives.STARTS)]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_tables_of_the_paper(number, made_data, monkeypatch, capsys):
    """Each on the table's own settings, and with its ratios."""
    table = inits_tables.TABLES[number]
    few = (inits_tables.PaperSet("bibtex", "Eurlex", n_rows=150),)
    if number == 1:
        few += (inits_tables.PaperSet("delicious", "Slice", n_labels=5, dense=True),)
    monkeypatch.setitem(inits_tables.TABLES, number, table._replace(sets=few))
    rows = inits.main(made_data, table=number)
    assert [(row["set"], row["init"]) for row in rows] == [
        (one.name, start) for one in few for start in table.starts
    ]
    assert ("msi -3" in table.starts) == (number == 2)
    assert [row["stands_for"] for row in rows[:: len(table.starts)]] == [
        one.stands_for for one in few
    ]
    printed = capsys.readouterr().out
    for title in ("CPU s", "Newton steps", "products with the Hessian"):
        lines = printed.split(f"{title}\n")[-1].split("\n\n")[0].splitlines()
        header = next(line for line in lines if line.startswith("set "))
        for a, b in table.ratios:
            assert f"{a} / {b}" in header
    assert "precision on the test rows in %" in printed
    for row in rows:
        assert 0 < row["P@5"] <= 100
        assert f"{row['P@1']:.2f}" in printed
    steps = {row["init"]: row["n_iter"] for row in rows[: len(table.starts)]}
    a, b = table.ratios[0]
    assert f"{steps[a] / steps[b]:.2f}" in printed
    assert f"Table {number}: {table.title} (float32, one thread, median of 1)" in printed
    assert all(text in printed for text in table.paper)
    assert "The paper's sets are not at hand: Eurlex" in printed
    assert ("delicious, dense" in printed) == (number == 1)
    if number == 2:  # another loss
        hinge = inits.main(made_data, table=3, sets=["bibtex"])
        assert rows[0]["objective"] != hinge[0]["objective"]


def test_a_table_on_other_sets_and_fewer_labels(made_data):
    rows = inits.main(made_data, table=3, sets=("delicious",), labels=4, repeats=2)
    assert {(row["set"], row["n_labels"]) for row in rows} == {("delicious", 4)}
    by_start = {row["init"]: row for row in rows}
    assert by_start["ovap++"]["n_iter"] != by_start["zero"]["n_iter"]
    assert rows[0]["stands_for"] == "Delicious-200k"
    np.testing.assert_allclose([row["objective"] for row in rows], rows[0]["objective"], rtol=0.02)


def test_the_tables_name_sets_that_there_are():
    assert sorted(inits_tables.TABLES) == [1, 2, 3]
    for table in inits_tables.TABLES.values():
        for one in table.sets:
            assert one.name in inits.SETS
            assert one.stands_for in inits_tables.NOT_AT_HAND or one.dense
        assert {start for ratio in table.ratios for start in ratio} <= set(table.starts)


# Losses


def test_a_row_per_set_and_loss(made_data, capsys):
    rows = losses.main(made_data, sets=("bibtex",), repeats=1, labels=10, losses=("logistic",))
    assert [row["loss"] for row in rows] == ["squared_hinge", "logistic"]
    assert [row["goal"] for row in rows] == [None, 3.0]
    for row in rows:
        assert row["ratio"] == row["cpu_s"] / rows[0]["cpu_s"]
        assert row["ms_per_label"] == pytest.approx(100 * row["cpu_s"])
        assert row["n_products"] >= row["n_iter"] > 0
        assert row["bound"] <= 1e-3
        assert row["n_unsolved"] == 0
        assert 0 < row["P@1"] <= 100
    assert "bibtex: losses (200 x 80, median of 1)" in capsys.readouterr().out


@pytest.fixture
def traced(made_data, tmp_path, capsys):
    return inits.main(made_data, sets=("delicious",), trace=True, report=Report(out=tmp_path))


def test_trace_follows_every_start(traced):
    assert list(dict.fromkeys(row["init"] for row in traced)) == list(inits_trace.STARTS)
    for start in inits_trace.STARTS:
        rows = [row for row in traced if row["init"] == start]
        assert [row["n_iter"] for row in rows] == list(range(len(rows)))
        assert rows[0]["multiplier"] is None
        assert all(0 < row["multiplier"] <= 1 for row in rows[1:])
        assert all(0 <= row["active_share"] <= 1 for row in rows)
        assert all(row["ms"] > 0 for row in rows)
        assert rows[1]["objective"] < rows[0]["objective"]
        running = [row["n_labels"] for row in rows]
        assert running == sorted(running, reverse=True)
        assert running[0] == 13
    start_of = {row["init"]: row["active_share"] for row in traced if row["n_iter"] == 0}
    assert start_of["zero"] == start_of["bias -0.9"] == 1
    assert next(row for row in traced if row["init"] == "zero")["objective"] == 200
    assert start_of["bias -2"] < 0.3  # the positives


def test_trace_figure_and_tables(traced, tmp_path, capsys):
    picture = tmp_path / "inits_trace_delicious.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    axes = inits_trace.draw_trace(traced, "delicious").axes
    assert len(axes) == 4
    for ax in axes:
        assert len(ax.get_lines()) == len(inits_trace.STARTS)
        assert ax.get_xlabel()
        assert ax.get_ylabel()
    printed = capsys.readouterr().out
    assert "mean multiplier of the line search" in printed
    assert "mean share of instances scored above -1" in printed
    assert "mean objective after Newton step" in printed
    assert "CPU ms of Newton step" in printed
    assert "ratio to msi" in printed


# LIBLINEAR's optimum


def test_optimum_stands_beside_the_reference(made_data, capsys):
    rows = optimum.main(made_data, sets=("bibtex",), labels=6)
    assert [row["init"] for row in rows] == list(INITIALISERS)
    for row in rows:
        assert row["n_labels"] == 6
        assert abs(row["median_gap"]) <= abs(row["max_gap"]) <= optimum.MAX_GAP
        assert row["points"] <= 1.0  # one of a hundred rows
        assert row["points"] == max(abs(row[f"P@{k}"] - row[f"LIBLINEAR P@{k}"]) for k in (1, 3, 5))
        assert row["P@1"] > 10
        assert row["n_unsolved"] == row["reference_n_unsolved"] == 0
    printed = capsys.readouterr().out
    assert "max gap" in printed
    assert "no comparison of speed" in printed


def test_half_of_the_labels_are_the_most_frequent():
    counts = np.array([0, 5, 9, 1, 7, 2, 0, 3])
    Y = sp.csr_array(np.arange(9)[:, None] < counts)
    few = optimum.choose_labels(Y, 5)
    np.testing.assert_array_equal(few[:3], [2, 4, 1])
    assert len(np.unique(few)) == 5
    assert (counts[few] > 0).all()
    np.testing.assert_array_equal(few, optimum.choose_labels(Y, 5))
    assert set(optimum.choose_labels(Y, 50)) == {1, 2, 3, 4, 5, 7}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objectives_equal_a_loop(dtype):
    rng = np.random.default_rng(0)
    X = sp.random_array((7, 4), density=0.6, random_state=rng, format="csr")
    Y = sp.csr_array(rng.random((7, 2)) < 0.4)
    W, b = rng.normal(size=(2, 4)).astype(dtype), rng.normal(size=2).astype(dtype)
    for label, value in enumerate(optimum.objectives(X, Y, W, b)):
        expected = (sum(float(w) ** 2 for w in W[label]) + float(b[label]) ** 2) / 2
        for i in range(7):
            sign = 1 if Y[i, label] else -1
            score = sum(X[i, j] * float(W[label, j]) for j in range(4)) + float(b[label])
            expected += optimum.C * max(0.0, 1 - sign * score) ** 2
        assert value == pytest.approx(expected, rel=1e-12)


# Accuracy


def test_accuracy_stands_beside_the_reference(made_data, capsys):
    rows = accuracy.main(made_data)
    assert [(row["set"], row["system"]) for row in rows] == [
        (name, system) for name in ("bibtex", "delicious") for system in ("OvALinearXC", "DiSMEC++")
    ]
    for ours, theirs in zip(rows[::2], rows[1::2], strict=True):
        assert [theirs[f"P@{k}"] for k in (1, 3, 5)] == list(accuracy.REFERENCES[ours["set"]])
        assert ours["points"] == max(abs(ours[f"P@{k}"] - theirs[f"P@{k}"]) for k in (1, 3, 5))
        assert ours["nDCG@1"] == pytest.approx(ours["P@1"])
        assert 0 < ours["PSP@5"] <= 100
        assert ours["train_cpu_s"] > 0
        assert 0 < ours["nnz_share"] <= 1
    printed = capsys.readouterr().out
    assert "PSP@5" in printed
    assert "64.06" in printed


def test_precision_is_that_of_the_estimator(made_data):
    row, _ = accuracy.main(made_data, sets=("bibtex",), dtype="float32")
    folder = made_data / "bibtex"
    (X, Y), (X_test, Y_test) = (
        load_xmc_file(folder / f"bibtex_{part}.txt.gz") for part in ("train", "test")
    )
    model = OvALinearXC(C=1.0).fit(normalize(X), Y)
    ranked = model.predict_topk(normalize(X_test), 5)
    np.testing.assert_allclose(
        [row["P@1"], row["P@3"], row["P@5"]],
        100 * precision_at_k(Y_test, ranked, (1, 3, 5)),
    )


# The command line


def test_listing_has_one_line_per_experiment(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, summary in EXPERIMENTS.items():
        assert len([line for line in lines if line.split()[:1] == [name]]) == 1
        assert any(line.endswith(summary) for line in lines)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_help_and_a_main(name, capsys):
    assert callable(importlib.import_module(f"asv_bench.{EXPERIMENTS[name][0]}").main)
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert "--data DIR" in capsys.readouterr().out


def test_unknown_name_lists_the_known_ones(capsys):
    assert main(["init"]) == 2
    error = capsys.readouterr().err
    assert "No experiment is called 'init'" in error
    assert all(name in error for name in EXPERIMENTS)


@pytest.mark.parametrize("arguments", [[], ["--data", "nowhere"]])
def test_missing_data_names_the_files(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["accuracy", *arguments])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "bibtex/bibtex_train.txt.gz and bibtex/bibtex_test.txt.gz" in error
    assert "--data" in error


@pytest.mark.parametrize(("option", "ending"), [([], "txt"), (["--markdown"], "md")])
def test_report_is_kept(option, ending, made_data, tmp_path, capsys):
    out = tmp_path / "reports" / "today"
    options = ["--data", str(made_data), "--out", str(out), "--sets", "bibtex"]
    assert main(["accuracy", *options, *option]) == 0
    kept = (out / f"accuracy.{ending}").read_text()
    assert kept == capsys.readouterr().out
    assert all(word in kept for word in ("scikit-learn", "UTC", "DiSMEC++"))
    assert ("| bibtex |" in kept) == bool(option)
