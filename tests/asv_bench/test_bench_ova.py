import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from asv_bench import peers
from asv_bench.common import runs
from asv_bench.common.data import SplitSet, load_set
from asv_bench.common.measure import fit_quietly
from asv_bench.common.report import Report
from asv_bench.one_vs_all import systems as ova
from asv_bench.one_vs_all import systems_figure as ova_figure
from asv_bench.peers import (
    SYSTEMS,
    liblinear,
    meter,
    napkinxc,
    omikuji,
    ours,
    pecos,
    sparse_dot_topn,
    why_not,
    worker,
)
from asv_bench.peers.compile import compile_seconds
from asv_bench.peers.meter import Usage
from asv_bench.peers.outcome import Outcome, pad, rank
from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification
from sklearn_xc.metrics import precision_at_k

#: Stands in for libpecos: ranks labels by the mean of their training rows.
FAKE_PECOS = {
    "pecos/__init__.py": "",
    "pecos/xmc/__init__.py": """
class LabelEmbeddingFactory:
    @staticmethod
    def create(Y, X, method, threads):
        assert method == "pifa" and threads == 2
        return (Y.T @ X).tocsr()

class Indexer:
    @staticmethod
    def gen(features, threads):
        return features
""",
    "pecos/xmc/xlinear/__init__.py": "",
    "pecos/xmc/xlinear/model.py": """
import scipy.sparse as sp
from pathlib import Path

class XLinearModel:
    def __init__(self, W):
        self.W = W

    @classmethod
    def train(cls, X, Y, C, threshold, threads):
        assert X.dtype == Y.dtype == "float32" and Y.format == "csc" and threshold == 0.1
        return cls(C)

    def save(self, folder):
        Path(folder).mkdir()
        sp.save_npz(Path(folder, "W.npz"), self.W)

    @classmethod
    def load(cls, folder, is_predict_only):
        return cls(sp.load_npz(Path(folder, "W.npz")))

    def predict(self, X, beam_size, only_topk, threads):
        assert (beam_size, only_topk, threads) == (10, 5, 1)
        return X @ self.W.T
""",
}


@pytest.fixture(scope="module")
def split():
    """Return a small set; label 3 has no positive, and the first training row no feature."""
    X, Y = make_xc_classification(
        n_samples=400, n_features=60, n_labels=9, nnz_per_row=12, labels_per_row=1.5,
        random_state=0, return_X_y=True,
    )  # fmt: skip
    X, Y = X.astype(np.float32).tolil(), Y.tolil()
    Y[:300, 3] = 0
    X[0] = 0
    X, Y = X.tocsr(), Y.tocsr().astype(np.int8)
    X.eliminate_zeros()
    Y.eliminate_zeros()
    return SplitSet("made", X[:300], Y[:300], X[300:], Y[300:])


@pytest.fixture
def task(tmp_path):
    return {"n_jobs": 1, "weights": str(tmp_path / "weights.npz"), "n_labels": 100}


def precision(split, outcome):
    return precision_at_k(split.Y_test, outcome.topk, 1)


def check_trained(split, outcome):
    assert outcome.topk.shape == (100, 5)
    assert outcome.topk.dtype == np.int64
    assert outcome.topk.max() < 9
    assert outcome.usage.cpu_s > 0
    assert outcome.predict_ms_per_row > 0
    assert outcome.model_bytes > 0
    frequent = np.argsort(-split.Y_train.sum(axis=0))[:5]
    baseline = precision_at_k(split.Y_test, np.tile(frequent, (100, 1)), 1)
    assert precision(split, outcome) > baseline + 0.05


# Systems


def test_ours_has_the_ridge_of_the_others(split, task):
    outcome = ours.run(split, task)
    check_trained(split, outcome)
    model = fit_quietly(OvALinearXC(C=1.0), split.X_train, split.Y_train)
    np.testing.assert_array_equal(outcome.topk, model.predict_topk(split.X_test, 5)[0])
    assert outcome.n_unsolved == 0
    assert outcome.figures["warm_up_s"] > 0
    assert (outcome.model_in, outcome.n_threads) == ("memory", 1)
    logistic = ours.run(split, {**task, "loss": "logistic", "weights": "nowhere/weights.npz"})
    assert (logistic.topk != outcome.topk).any()


def test_product_with_our_weights_ranks_as_we_do(split, task):
    pytest.importorskip("sparse_dot_topn")
    expected = ours.run(split, task).topk
    outcome = sparse_dot_topn.run(split, task)
    assert np.mean(outcome.topk == expected) > 0.99  # sums in another order part near ties
    assert outcome.usage is None


def test_weights_are_asked_for(split, task):
    pytest.importorskip("sparse_dot_topn")
    with pytest.raises(FileNotFoundError, match="no weights of OvALinearXC for made: run it too"):
        sparse_dot_topn.run(split, task)


@pytest.mark.parametrize("name", ["liblinear-primal", "liblinear-dual"])
def test_liblinear_over_all_labels_predicts(name, split, task):
    pytest.importorskip("liblinear")
    outcome = liblinear.run(split, {**task, **SYSTEMS[name].options})
    check_trained(split, outcome)
    assert 3 not in outcome.topk  # the label without positives
    assert outcome.remarks == []
    used = [label for label in range(9) if label != 3]
    scores = []
    for label in used:
        model = LinearSVC(dual=False, tol=1e-6)
        model.fit(split.X_train, split.Y_train[:, [label]].toarray().ravel())
        scores.append(model.decision_function(split.X_test))
    best = np.array(used)[np.argmax(scores, axis=0)]
    assert np.mean(outcome.topk[:, 0] == best) > 0.9


def test_liblinear_on_a_sample_is_extrapolated(split, task, monkeypatch):
    pytest.importorskip("liblinear")
    monkeypatch.setattr(liblinear, "watch", lambda call: (call(), Usage(3.0, 5.0, 10, 20)))
    options = SYSTEMS["liblinear-primal"].options
    outcome = liblinear.run(split, {**task, **options, "n_labels": 2})
    assert outcome.usage == Usage(12.0, 20.0, 10, 20)
    assert outcome.topk is None
    assert outcome.remarks == ["extrapolated from 2 of 8 labels"]


def test_omikuji_leaves_out_rows_without_features(split, task):
    pytest.importorskip("omikuji")
    outcome = omikuji.run(split, task)
    check_trained(split, outcome)
    assert "1 rows without features left out" in outcome.remarks
    assert outcome.model_in == "files"


@pytest.mark.parametrize("name", ["napkinxc", "napkinxc-br"])
def test_napkinxc(name, split, task):
    pytest.importorskip("napkinxc")
    check_trained(split, napkinxc.run(split, {**task, **SYSTEMS[name].options}))


def test_pecos_runs_in_its_own_interpreter(split, tmp_path, monkeypatch):
    for name, text in FAKE_PECOS.items():
        (tmp_path / "fake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fake" / name).write_text(text)
    for part in ("X_train", "Y_train", "X_test"):
        sp.save_npz(tmp_path / f"{part}.npz", getattr(split, part))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
    task = {"n_jobs": 2, "pecos_python": sys.executable, "matrices": str(tmp_path)}
    outcome = pecos.run(split, task)
    scores = (split.X_test @ (split.Y_train.T @ split.X_train).T).toarray()
    assert np.mean(outcome.topk[:, 0] == scores.argmax(axis=1)) > 0.98
    assert outcome.usage.cpu_s > 0
    assert outcome.model_bytes > 0
    assert outcome.n_threads == 2


@pytest.mark.parametrize(
    ("python", "reason"),
    [("nowhere/python", "--pecos-python cannot be started"), (sys.executable, "No module named")],
)
def test_wrong_interpreter_for_pecos_is_named(python, reason, split, tmp_path):
    with pytest.raises(RuntimeError, match=reason):
        pecos.run(split, {"n_jobs": 1, "pecos_python": python, "matrices": str(tmp_path)})


def test_every_system_has_a_module_and_a_title_of_its_own():
    assert len({system.title for system in SYSTEMS.values()}) == len(SYSTEMS)
    assert len({system.label for system in SYSTEMS.values()}) == len(SYSTEMS)
    folder = Path(peers.__file__).parent
    assert all((folder / f"{system.module}.py").is_file() for system in SYSTEMS.values())
    assert set(peers.DEFAULT_SYSTEMS) <= set(SYSTEMS)


def test_why_a_system_cannot_run(monkeypatch):
    assert why_not("ova") is None
    assert why_not("pecos") == "not run: --pecos-python not given"
    assert why_not("pecos", "python") is None
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert why_not("liblinear-dual") == "not installed: pip install liblinear-official"
    assert why_not("ova") is None
    monkeypatch.setattr(peers.sklearn_xc, "__all__", ["OvALinearXC"])
    assert why_not("ova-cv") == "this version has no OvALinearXCCV"


# What comes back


def test_lists_are_padded():
    np.testing.assert_array_equal(
        pad([[4, 2], [], range(9)]), [[4, 2, -1, -1, -1], [-1] * 5, [0, 1, 2, 3, 4]]
    )


def test_sparse_and_dense_scores_rank_alike():
    scores = np.random.default_rng(0).normal(size=(20, 8))
    expected = np.argsort(-scores, axis=1)[:, :5]
    np.testing.assert_array_equal(rank(scores), expected)
    np.testing.assert_array_equal(rank(sp.csr_array(scores)), expected)


def test_row_of_an_outcome(split):
    counts = split.Y_train.sum(axis=0)
    true = [sorted(row.indices, key=lambda label: counts[label]) for row in split.Y_test]
    perfect = worker.to_row(split, Outcome(some_usage(), pad(true), model_bytes=2_500_000))
    has_label = np.mean(np.diff(split.Y_test.indptr) > 0)
    assert perfect["P@1"] == pytest.approx(100 * has_label)
    assert perfect["PSP@1"] == pytest.approx(100)
    assert perfect["model_mb"] == 2.5
    assert (perfect["before_mb"], perfect["peak_mb"]) == (1.0, 3.0)
    wrong = [np.setdiff1d(np.arange(9), labels) for labels in true]
    missed = worker.to_row(split, Outcome(topk=pad(wrong)))
    assert missed["P@5"] == missed["PSP@5"] == 0
    assert "train_cpu_s" not in missed
    assert "P@1" not in worker.to_row(split, Outcome(some_usage()))
    json.dumps([perfect, missed])


def some_usage():
    return Usage(1.0, 2.0, 1_000_000, 3_000_000)


def test_psp_takes_propensities_of_the_training_labels(split):
    metrics = pytest.importorskip("napkinxc.metrics")
    topk = np.tile([0, 1, 2, 4, 5], (100, 1))
    row = worker.to_row(split, Outcome(topk=topk))
    inverse = metrics.Jain_et_al_inverse_propensity(
        sp.csr_matrix(split.Y_train, dtype=np.float32), A=0.55, B=1.5
    )
    expected = metrics.psprecision_at_k(
        [list(each.indices) for each in split.Y_test], topk.tolist(), inverse, k=5
    )
    found = [row["PSP@1"], row["PSP@3"], row["PSP@5"]]
    np.testing.assert_allclose(found, 100 * expected[[0, 2, 4]], rtol=1e-6)


def test_peak_is_that_of_the_call():
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("this system does not set the peak back")

    def take(n_bytes):
        block = bytearray(n_bytes)
        block[:: 2**12] = b"1" * len(range(0, n_bytes, 2**12))  # touched

    _, large = meter.watch(take, 2**28)
    _, small = meter.watch(take, 2**12)
    assert large.peak_bytes - large.before_bytes > 0.9 * 2**28
    assert small.peak_bytes - small.before_bytes < 2**26
    assert small.peak_bytes < large.peak_bytes


# The run


@pytest.fixture
def data(split, tmp_path):
    """Return a folder where the set stands under the name of a real one."""
    (tmp_path / "data" / "bibtex").mkdir(parents=True)
    for part in ("train", "test"):
        path = tmp_path / "data" / "bibtex" / f"bibtex_{part}.txt.gz"
        dump_xmc_file(path, getattr(split, f"X_{part}"), getattr(split, f"Y_{part}"))
    return tmp_path / "data"


@pytest.fixture
def measured(monkeypatch):
    """Have tasks run in this process, and return the list of them."""
    tasks = []

    def run_here(task, work, environment, timeout):
        tasks.append((task, environment))
        if task["system"] == worker.COMPILE:
            return {"compile_s": 12.3}
        (work / "task.json").write_text(json.dumps(task))
        runs.answer_task(worker.run, work / "task.json", work / "result.json")
        return json.loads((work / "result.json").read_text())

    monkeypatch.setattr(ova, "run_worker", run_here)
    return tasks


def test_a_row_per_system_with_its_reason(data, measured, tmp_path, monkeypatch, capsys):
    def fail(split, task):
        raise MemoryError("no room " + "x" * 80)

    monkeypatch.setattr(omikuji, "run", fail)
    monkeypatch.setattr(peers, "find_spec", lambda name: {"omikuji": 1}.get(name))
    systems = ("ova", "omikuji", "napkinxc", "pecos")
    report = Report("ova", out=tmp_path / "out")
    rows = ova.main(data, sets=("bibtex",), systems=systems, report=report)
    assert [(row["set"], row["system"]) for row in rows] == [("bibtex", name) for name in systems]
    assert 10 < rows[0]["P@1"] <= 100
    assert rows[1]["error"] == "MemoryError: no room " + "x" * 80
    assert rows[2]["note"] == "not installed: pip install napkinxc"
    assert rows[3]["note"] == "not run: --pecos-python not given"
    printed = capsys.readouterr().out
    assert "not converged" in printed
    assert f"Measured from {min(row['measured_at'] for row in rows)} to " in printed
    assert "12.3 CPU s" in printed
    assert f"bibtex, omikuji, 3 trees: {rows[1]['error']}" in printed
    assert (tmp_path / "out" / "ova.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_command_goes_on_where_it_was_stopped(data, measured, tmp_path, monkeypatch):
    options = {"sets": ("bibtex",), "systems": ("ova",), "losses": ("logistic",)}
    real = ours.run

    def stop(split, task):
        if task.get("loss"):
            raise KeyboardInterrupt
        return real(split, task)

    monkeypatch.setattr(ours, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        ova.main(data, report=Report("ova", out=tmp_path / "out"), **options)
    assert [task["system"] for task, _ in measured] == ["compile", "ova", "ova-logistic"]
    monkeypatch.setattr(ours, "run", real)
    measured.clear()
    rows = ova.main(data, report=Report("ova", out=tmp_path / "out"), **options)
    assert [task["system"] for task, _ in measured] == ["ova-logistic"]
    measured.clear()
    for path in (data / "bibtex").iterdir():
        path.unlink()  # nothing is left to measure, so that nothing is loaded
    assert ova.main(data, report=Report("ova", out=tmp_path / "out"), **options) == rows
    assert measured == []
    with pytest.raises(FileNotFoundError, match="bibtex_train"):
        ova.main(data, report=Report("ova", out=tmp_path / "out"), n_jobs=2, **options)


def test_missing_set_stops_before_anything_is_measured(data, measured):
    with pytest.raises(FileNotFoundError, match=r"synthetic/gen\.py"):
        ova.main(data, sets=("bibtex", "syn4k"), systems=("ova",))
    assert measured == []


def test_tasks_hold_what_a_row_depends_on(data, measured):
    ova.main(data, sets=("bibtex",), systems=("ova",), n_jobs=2)
    (compilation, first), (task, environment) = measured
    assert compilation["system"] == worker.COMPILE
    assert not Path(first["NUMBA_CACHE_DIR"]).exists()  # a folder of its own, gone with it
    assert environment["OMP_NUM_THREADS"] == "2"
    assert task["n_jobs"] == 2
    planned = ova.plan_tasks(("a", "b", "a"), ("sparse_dot_topn", "liblinear-dual", "ova"), 4, 7)
    assert [(each["set"], each["system"]) for each in planned] == [
        (name, system)
        for name in ("a", "b")
        for system in ("liblinear-dual", "ova", "sparse_dot_topn")
    ]
    assert planned[0] == {"set": "a", "system": "liblinear-dual", "n_jobs": 1, "n_labels": 7}


def test_rows_are_kept_and_failed_ones_tried_again(tmp_path):
    path = tmp_path / "ova.jsonl"
    log = runs.RowLog(path)
    log.add({"set": "a"}, {"P@1": 1.0})
    log.add({"set": "b"}, {"error": "timed out"})
    with path.open("a") as file:
        file.write('{"task": {"set": "c"}, "ro')  # stopped while writing
    again = runs.RowLog(path)
    assert again.find({"set": "a"}) == {"P@1": 1.0}
    assert again.find({"set": "b"}) is None
    assert again.find({"set": "c"}) is None
    again.add({"set": "d"}, {"P@1": 2.0})
    assert runs.RowLog(path).find({"set": "d"}) == {"P@1": 2.0}


def test_foreign_line_is_named(tmp_path):
    path = tmp_path / "ova.jsonl"
    path.write_text('[1, 2]\n{"task": {}, "row": {}}\n')
    with pytest.raises(
        ValueError, match=r"ova\.jsonl, line 1: expected an object .* Got '\[1, 2\]'"
    ):
        runs.RowLog(path)


# Processes


def test_a_system_runs_in_a_fresh_process(data, tmp_path):
    pytest.importorskip("omikuji")
    load_set("bibtex", data, cache=tmp_path)
    task = {"set": "bibtex", "system": "omikuji", "n_jobs": 1, "cache": str(tmp_path)}
    row = runs.run_worker(task, tmp_path, dict(os.environ), 300.0)
    assert "error" not in row
    assert row["P@1"] > 10
    assert 20 < row["before_mb"] <= row["peak_mb"]


def test_compilation_is_measured():
    assert compile_seconds() > 0


def test_a_process_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    row = runs.run_worker({"system": worker.COMPILE}, tmp_path, dict(os.environ), 0.0)
    assert row == {"error": "timed out after 0 s"}
    assert started[0].poll() is not None


def test_a_process_that_dies_says_why(tmp_path):
    row = runs.run_worker({}, tmp_path, {**os.environ, "PYTHONHOME": str(tmp_path)}, 60.0)
    assert row["error"].startswith("ended with status 1: ")
    assert len(row["error"]) > len("ended with status 1: ")


def test_what_fails_in_the_worker_is_its_result(tmp_path):
    (tmp_path / "task.json").write_text(json.dumps({"system": "no such"}))
    runs.answer_task(worker.run, tmp_path / "task.json", tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == {"error": "KeyError: 'no such'"}


# The figure


def a_row(name, system, seconds, p1=None):
    row = {"set": name, "system": system, "train_cpu_s": seconds}
    return row if p1 is None else row | {"P@1": p1, "PSP@1": p1 - 10}


def test_figure_has_a_column_per_set_and_names_every_system():
    rows = [
        a_row("one", "ova", 10.0, 60.0),
        a_row("one", "omikuji", 12.0, 59.5),
        a_row("one", "liblinear-primal", 900.0),
        a_row("one", "sparse_dot_topn", None, 60.0),
        a_row("two", "ova", 300.0, 36.0),
    ]
    panels = [ax for ax in ova_figure.draw_systems(rows).axes if ax.get_visible()]
    assert len(panels) == 4
    assert {ax.get_ylabel() for ax in panels} == {"P@1 (%)", "PSP@1 (%)"}
    assert all(ax.get_xscale() == "log" for ax in panels)
    (first, *_) = panels
    assert first.get_title() == "one"
    texts = {text.get_text() for text in first.texts}
    assert texts == {"OvALinearXC", "omikuji", "LIBLINEAR primal, extrapolated"}
    points = {(line.get_xdata()[0], line.get_ydata()[0]) for line in first.lines}
    assert {(10.0, 60.0), (12.0, 59.5)} <= points


@pytest.mark.parametrize("seed", range(5))
def test_names_do_not_cover_each_other(seed):
    rng = np.random.default_rng(seed)
    points = list(ova_figure._PANEL * rng.uniform(0.1, 0.9, (7, 2)))
    if seed == 0:
        points = [points[0]] * 7
    names = ["OvALinearXC", "LIBLINEAR primal", "LIBLINEAR dual", "PECOS", "omikuji", "nx", "CV"]
    wall = np.array([140.0, 0.0, 150.0, 120.0])
    boxes = ova_figure.place_labels(points, names, [wall])
    for i, box in enumerate(boxes):
        assert (box[:2] >= 0).all()
        assert (box[2:] <= ova_figure._PANEL).all()
        assert box[2] - box[0] == pytest.approx(len(names[i]) * ova_figure._LETTER[0])
        assert all(ova_figure._overlap(box, other) < 1e-6 for other in [*boxes[:i], wall])


def test_every_system_has_a_look_of_its_own():
    trained = [
        name
        for name, system in SYSTEMS.items()
        if name != "sparse_dot_topn" and "loss" not in system.options  # other losses share one
    ]
    assert len({ova_figure._look({"system": name}) for name in trained}) == len(trained)
