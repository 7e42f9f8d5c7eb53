"""The experiment on defaults: what is measured, kept, compared and drawn."""

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp

from asv_bench.common.report import Report
from asv_bench.common.runs import RowLog
from asv_bench.common.sized_sets import CLASS_SETS, LABEL_SETS, documents_of, load_sized_set
from asv_bench.defaults import defaults, worker
from asv_bench.defaults.entries import ENTRIES, named
from asv_bench.defaults.figure import draw_front
from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

SETTINGS = ({}, {"C": 0.3}, {"C": 3.0}, {"C": 10.0})
NAMES = [named(parameters) for parameters in SETTINGS]


@pytest.fixture(autouse=True)
def _three_settings(monkeypatch):
    """Have one-vs-all measured with these, whatever is tried today."""
    monkeypatch.setitem(ENTRIES, "ova", ENTRIES["ova"]._replace(settings=SETTINGS[1:]))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder where made data stand under the name of a real set."""
    folder = tmp_path_factory.mktemp("data")
    X, Y = make_xc_classification(300, 80, 12, random_state=0, return_X_y=True)
    (folder / "bibtex").mkdir()
    for part, rows in (("train", slice(200)), ("test", slice(200, None))):
        dump_xmc_file(folder / "bibtex" / f"bibtex_{part}.txt.gz", X[rows], Y[rows])
    return folder


def task_of(name, size, parameters, entry="ova"):
    return {"set": name, "size": size, "entry": entry, "parameters": parameters}


def row_of(name, size, parameters, p1, entry="ova", seconds=1.0):
    """Return a row as ``main`` has them; P@1 of None is a fit that failed."""
    row = task_of(name, size, parameters, entry)
    row |= {"setting": named(parameters), "title": ENTRIES[entry].title}
    return row | ({"error": "no"} if p1 is None else {"P@1": p1, "train_cpu_s": seconds})


# The plan


def test_small_sizes_and_defaults_come_first():
    tasks = defaults.plan(("tate", "yso_sets"), ("all", "1/16"), ("ova", "omikuji"), False)
    of_a_set = [("ova", {}), ("omikuji", {}), *(("ova", p) for p in SETTINGS[1:])]
    small = [(name, "1/16", *one) for name in ("tate", "yso_sets") for one in of_a_set]
    small.sort(key=lambda task: task[3] != {})  # the defaults of both before other settings
    expected = small + [("tate", "all", *one) for one in of_a_set]
    found = [(t["set"], t["size"], t["entry"], t["parameters"]) for t in tasks]
    assert found == expected
    alone = defaults.plan(("tate", "yso_sets"), ("all", "1/16"), ("ova", "omikuji"), True)
    assert alone == [task for task in tasks if not task["parameters"]]


def test_processes():
    """A default has one of its own, other settings of an estimator on a set share one."""
    tasks = defaults.plan(LABEL_SETS, ("1/16", "1/4"), ("ova", "umax", "ova-cv"), False)
    groups = defaults.in_one_process(tasks)
    assert sorted(map(repr, itertools.chain(*groups))) == sorted(map(repr, tasks))
    kinds = []
    for group in groups:
        (kind,) = {(task["set"], task["size"], task["entry"]) for task in group}
        assert len(group) == 1 or all(task["parameters"] for task in group)
        kinds.append((*kind, bool(group[0]["parameters"])))
    assert len(kinds) == len(set(kinds)) == 8 * 2 * (2 + 2 + 1)
    assert [tasks.index(group[0]) for group in groups] == sorted(tasks.index(g[0]) for g in groups)


# What is kept


@pytest.fixture
def measured(monkeypatch):
    """Have `_measure` make rows up, and return what it was asked for; C = 3 fails at first."""
    calls = []

    def measure(tasks, data, cache, timeout):
        calls.append(tasks)
        is_first = len(calls) <= 2
        return [
            {"error": "KeyError: 'x'"} if is_first and task["parameters"] == {"C": 3.0}
            else {"P@1": 50.0 + task["parameters"].get("C", 1.0), "train_cpu_s": 1.0, "n_train": 9}
            for task in tasks
        ]  # fmt: skip

    monkeypatch.setattr(defaults, "_measure", measure)
    return calls


def test_a_stopped_run_goes_on(measured, tmp_path, capsys):
    path = tmp_path / "defaults.jsonl"
    other = task_of("tate", "all", {"C": 77.0}), {"P@1": 12.0}
    RowLog(path).add(*other)
    options = {"sets": ("bibtex",), "sizes": ("1/4",), "entries": ("ova",)}
    rows = defaults.main(None, **options, report=Report(out=tmp_path))
    assert [group[0]["parameters"] for group in measured] == [{}, SETTINGS[1]]
    assert [row["note"] for row in rows] == [None, None, "KeyError: 'x'", None]
    kept = path.read_text()
    assert kept.count("\n") == 1 + 4
    torn = kept + kept.splitlines()[-1][:40]
    path.write_text(torn)

    again = defaults.main(None, **options, only_report=True, report=Report(out=tmp_path))
    assert again == rows
    assert len(measured) == 2
    assert path.read_text() == torn  # another process may be writing

    again = defaults.main(None, **options, report=Report(out=tmp_path))
    assert measured[2:] == [[task_of("bibtex", "1/4", {"C": 3.0})]]
    assert [row["P@1"] for row in again] == [51.0, 50.3, 53.0, 60.0]
    assert [row["note"] for row in again] == [None] * 4
    lines = path.read_text()
    assert lines.startswith(kept)
    assert lines.count("\n") == 1 + 4 + 1
    assert RowLog(path).find(other[0]) == other[1]
    assert (tmp_path / "defaults.png").read_bytes().startswith(b"\x89PNG")
    assert "chosen by other sets" in capsys.readouterr().out


# Comparisons


def compared_by_loops(rows, documents):
    """Return the rows of ``compare`` for one-vs-all, by going through everything."""
    found = []
    by_place = {(r["set"], r["size"], r["setting"]): r.get("P@1") for r in rows}
    pairs = list(dict.fromkeys((r["set"], r["size"]) for r in rows))
    pairs = [pair for pair in pairs if all((*pair, setting) in by_place for setting in NAMES)]
    for pair in pairs:
        own = {s: by_place[*pair, s] for s in NAMES if by_place[*pair, s] is not None}
        if "default" not in own or len(own) == 1:
            continue
        smallest, chosen = np.inf, None
        for setting in NAMES:
            distances = []
            for other in pairs:
                if documents[other[0]] == documents[pair[0]]:
                    continue
                there = [by_place[*other, s] for s in NAMES if by_place[*other, s] is not None]
                score = by_place[*other, setting]
                distances.append(np.inf if score is None else max(there) - score)
            if distances and np.mean(distances) < smallest:
                smallest, chosen = np.mean(distances), setting
        best = max(own.values())
        found.append((*pair, own["default"], best, best - own["default"], chosen, own.get(chosen)))
    return found


def test_leave_one_set_out_by_loops():
    """Some fits failed, more of them by a larger seed, and some were not tried yet."""
    documents = {
        "bibtex": 0, "bibtex:first": 0, "tate": 1, "yso_finna_en": 2, "yso_sets": 2,
        "delicious:first": 3, "citeulike_t": 4,
    }  # fmt: skip
    keys = ("set", "size", "default", "best", "distance", "chosen", "of_chosen")
    chosen = set()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = [
            row_of(name, size, parameters, None if rng.random() < 0.03 * seed else rng.random())
            for name in documents for size in ("1/16", "1/4") for parameters in SETTINGS
            if rng.random() < 0.97
        ]  # fmt: skip
        found = defaults.compare(rows)
        expected = compared_by_loops(rows, documents)
        assert [tuple(row[key] for key in keys) for row in found] == expected
        assert all(row["setting"] in NAMES for row in found)
        chosen |= {row["chosen"] for row in found}
    assert chosen == {*NAMES, None}  # all cases came


@pytest.mark.parametrize("name", LABEL_SETS + CLASS_SETS)
def test_every_set_has_the_documents_of_a_set_of_labels(name):
    assert documents_of(name) in LABEL_SETS
    assert (documents_of(name) == name) == (name in LABEL_SETS)


def test_what_other_sets_choose_is_scored_where_they_have_no_say():
    """C = 3 is best on both others, by far; here it is worse than the default."""
    rows = []
    for name, scores in (
        ("tate", (50, 40, 52, 51)), ("bibtex", (60, 40, 65, 61)), ("delicious", (70, 40, 68, 73)),
    ):  # fmt: skip
        rows += [row_of(name, "all", *one) for one in zip(SETTINGS, scores, strict=True)]
    *_, found = defaults.compare(rows)
    assert (found["default"], found["setting"], found["best"]) == (70, "C=10.0", 73)
    assert (found["chosen"], found["of_chosen"], found["distance"]) == ("C=3.0", 68, 3)
    (summary,) = defaults.summarise(defaults.compare(rows), rows)
    assert (summary["pairs"], summary["near"], summary["largest"]) == (3, 0, 5)
    assert summary["share"] == 0
    assert summary["mean"] == pytest.approx((2 + 5 + 3) / 3)
    # On tate and bibtex too the others choose what is best for them together.
    assert [row["chosen"] for row in defaults.compare(rows)] == ["C=10.0", "C=10.0", "C=3.0"]
    assert summary["mean_chosen"] == pytest.approx((1 + 4 + 5) / 3)
    assert summary["cpu_s"] == 3


def test_the_default_wins_a_tie():
    rows = [row_of(name, "all", p, 50.0) for name in ("tate", "bibtex") for p in SETTINGS[::-1]]
    for row in defaults.compare(rows):
        assert row["chosen"] == row["setting"] == "default"
        assert row["distance"] == 0


def test_a_default_without_rivals_is_not_near_them():
    """With --no-grid, before the grid was tried, or where all others failed: nothing is known."""
    rows = [row_of(name, "all", {}, p1) for name, p1 in (("tate", 50.0), ("bibtex", 60.0))]
    rows += [row_of("delicious", "all", p, None if p else 70.0) for p in SETTINGS]
    rows += [row_of("bibtex", "all", p, 61.0) for p in SETTINGS[1:3]]
    assert defaults.compare(rows) == []
    assert defaults.summarise([], rows) == []
    rows.append(row_of("bibtex", "all", SETTINGS[3], None))  # it failed: tried, but no rival
    (found,) = defaults.compare(rows)
    assert (found["set"], found["distance"]) == ("bibtex", 1.0)
    assert (found["chosen"], found["of_chosen"]) == ("default", 60.0)  # all others fail somewhere
    (summary,) = defaults.summarise([found], rows)
    assert (summary["pairs"], summary["near"], summary["mean_chosen"]) == (1, 1, 1.0)


def test_a_single_set_has_no_others_that_choose():
    rows = [row_of("tate", "all", p, 50.0 + len(p)) for p in SETTINGS]
    rows += [row_of("tate", "1/4", p, 40.0) for p in SETTINGS]
    found = defaults.compare(rows)
    assert [(row["chosen"], row["of_chosen"]) for row in found] == [(None, None)] * 2
    (summary,) = defaults.summarise(found, rows)
    assert summary["largest"] == 1.0
    assert "mean" not in summary


def test_another_aim_is_no_rival():
    rows = [
        row_of("tate", "all", parameters, p1, "ova+ngame")
        for parameters, p1 in (({}, 50.0), ({"objective": "propensity"}, 60.0))
    ]
    assert defaults.compare(rows) == []


@pytest.mark.parametrize("seed", range(3))
def test_fronts_by_sorting(seed):
    """On the front is who is best among those as cheap, and cheapest among those as good."""
    rng = np.random.default_rng(seed)
    rows = [
        row_of(name, size, {}, int(rng.integers(5)), entry, int(rng.integers(5)))
        for name in ("tate", "bibtex") for size in ("1/4", "all") for entry in ENTRIES
    ]  # fmt: skip
    rows.append(row_of("tate", "all", {}, None, "ngame"))
    defaults.mark_front(rows)
    assert "front" not in rows.pop()
    for row in rows:
        group = [r for r in rows if (r["set"], r["size"]) == (row["set"], row["size"])]
        best = max(r["P@1"] for r in group if r["train_cpu_s"] <= row["train_cpu_s"])
        cheapest = min(r["train_cpu_s"] for r in group if r["P@1"] >= row["P@1"])
        is_on_it = (row["P@1"], row["train_cpu_s"]) == (best, cheapest)
        assert row["front"] == ("yes" if is_on_it else "")
    assert {row["front"] for row in rows} == {"yes", ""}


def test_the_figure_has_a_panel_for_each_set_at_its_largest_size():
    names = ["tate", "bibtex", "delicious", "citeulike_t"]
    rows = [
        row_of(name, size, {}, p1, entry, seconds) | {"n_train": n_train}
        for name in names for size, n_train in (("1/4", 25), ("all", 100))
        for entry, p1, seconds in (("ova", 60.0, 3.0), ("umax", 50.0, 2.0), ("implicit", 49.0, 4.0))
    ]  # fmt: skip
    rows.append(row_of("tate", "all", {}, None, "ngame"))
    defaults.mark_front(rows)
    panels = [panel for panel in draw_front(rows).axes if panel.get_visible()]
    assert [panel.get_title() for panel in panels] == [f"{name}, 100 rows" for name in names]
    assert [bool(panel.get_xlabel()) for panel in panels] == [False, True, True, True]
    for panel in panels:
        *points, front = panel.get_lines()
        assert [line.get_xydata().tolist() for line in points] == [[[3, 60]], [[2, 50]], [[4, 49]]]
        assert front.get_xydata().tolist() == [[2, 50], [3, 60]]


# Real fits


def expected_row(sized, parameters):
    """Return P@1 and PSP@1 in % of a fit to the labels that the training rows have."""
    seen = np.flatnonzero(sized.Y_train.sum(axis=0))
    model = OvALinearXC(n_jobs=1, **parameters).fit(sized.X_train, sized.Y_train[:, seen])
    topk = seen[model.predict_topk(sized.X_test, 5)[0]]
    counts = sp.csc_array(sized.Y_train).sum(axis=0)
    weights = propensity(counts, sized.Y_train.shape[0])
    return {
        "P@1": 100 * precision_at_k(sized.Y_test, topk, 1),
        "PSP@1": 100 * psp_at_k(sized.Y_test, topk, 1, propensities=weights),
        "n_train": sized.X_train.shape[0], "n_labels": len(seen),
    }  # fmt: skip


def test_a_default_in_a_process_of_its_own(data, tmp_path):
    (row,) = defaults.main(
        data, sets=("bibtex",), sizes=("1/16",), entries=("ova",), no_grid=True, cache=tmp_path
    )
    expected = expected_row(load_sized_set("bibtex", "1/16", data), {})
    assert expected["n_labels"] < 12
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert row["note"] is None
    assert row["front"] == "yes"
    assert row["train_cpu_s"] > 0
    assert row["predict_ms_per_row"] > 0


def test_settings_are_those_that_are_named(data, tmp_path, monkeypatch):
    tasks = []

    def run_here(task, work, environment, timeout, module):
        assert module == worker.__name__
        assert timeout == 7.0 * len(task["parameters"])
        assert environment["OMP_NUM_THREADS"] == "1"
        tasks.append(task)
        return json.loads(json.dumps(worker.run(json.loads(json.dumps(task)))))

    monkeypatch.setattr(defaults, "run_worker", run_here)
    rows = defaults.main(
        data, sets=("bibtex",), sizes=("1/16",), entries=("ova",), cache=tmp_path, timeout=7.0
    )
    assert [task["parameters"] for task in tasks] == [[{}], list(SETTINGS[1:])]
    sized = load_sized_set("bibtex", "1/16", data)
    for row, parameters in zip(rows, SETTINGS, strict=True):
        expected = expected_row(sized, parameters)
        assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert len({row["P@1"] for row in rows}) > 1


def test_a_setting_that_fails_is_a_row(data, tmp_path):
    task = {"set": "bibtex", "size": "1/4", "entry": "ova", "cache": str(tmp_path)}
    load_sized_set("bibtex", "1/4", data, cache=tmp_path)
    failed, row = worker.run(task | {"parameters": [{"C": -1.0}, {"C": 1.0}]})["rows"]
    assert failed["error"].startswith("InvalidParameterError: The 'C' parameter")
    assert row["P@1"] > 0


def test_settings_whose_process_ends_are_measured_one_by_one(data, tmp_path, monkeypatch):
    asked = []

    def run(task, work, environment, timeout, module):
        asked.append(([p["C"] for p in task["parameters"]], timeout))
        if {"C": 3.0} in task["parameters"]:
            return {"error": "ended with status -9"}
        return {"rows": [{"P@1": 10 * p["C"]} for p in task["parameters"]]}

    monkeypatch.setattr(defaults, "run_worker", run)
    tasks = [task_of("bibtex", "1/4", parameters) for parameters in SETTINGS[1:]]
    rows = defaults._measure(tasks, data, tmp_path, 5.0)
    assert rows == [{"P@1": 3.0}, {"error": "ended with status -9"}, {"P@1": 100.0}]
    assert asked == [([0.3, 3.0, 10.0], 15.0), ([0.3], 5.0), ([3.0], 5.0), ([10.0], 5.0)]


def test_sets_too_large_for_an_estimator_say_so(data, tmp_path, monkeypatch):
    monkeypatch.setitem(ENTRIES, "ova", ENTRIES["ova"]._replace(largest=49))
    monkeypatch.setattr(defaults, "run_worker", None)
    rows = defaults.main(data, sets=("bibtex",), sizes=("1/4",), entries=("ova",), cache=tmp_path)
    assert {row["note"] for row in rows} == {"not measured on more than 49 rows"}


def test_side_by_side():
    """The highest P@1 of a set, as it is written, is bold; what failed has no cell."""
    sizes = {"size": "all", "n_train": 1900, "n_labels": 7}
    rows = [
        {"set": "a", "title": "x", "P@1": 50.04, "train_cpu_s": 1234.56, **sizes},
        {"set": "a", "title": "y", "P@1": 49.96, "train_cpu_s": 0.04, **sizes},
        {"set": "a", "title": "z", "error": "no", **sizes},
        {"set": "b", "title": "y", "P@1": 7.0, "train_cpu_s": 2.0, **sizes},
        {"set": "b", "title": "x", "P@1": 9.96, "train_cpu_s": 3.0, **sizes},
    ]
    wide, columns = defaults.side_by_side(rows)
    heads = ["set", "instances", "labels", "x", "y", "z"]
    assert [column.header for column in columns] == heads
    of_all = {"n_train": 1900, "n_labels": 7}
    assert wide == [
        {"set": "a", **of_all, "x": "**50.0** / 1,234.6", "y": "**50.0** / 0.0"},
        {"set": "b", **of_all, "y": "7.0 / 2.0", "x": "**10.0** / 3.0"},
    ]


def test_growth_with_the_rows():
    """Pairs of sizes of a set, four times apart; short fits and failed ones do not count."""

    def of(name, size, seconds, n_labels, title="x"):
        row = {"set": name, "size": size, "title": title, "n_labels": n_labels}
        return row | ({"error": "no"} if seconds is None else {"train_cpu_s": seconds})

    rows = [
        of("a", "1/16", 1.0, 10), of("a", "1/4", 5.0, 20), of("a", "all", 10.0, 60),
        of("b", "1/16", 2.0, 10), of("b", "all", 99.0, 20),
        of("c", "1/4", 0.5, 10), of("c", "all", 9.0, 20),
        of("a", "1/16", 1.0, 10, "y"), of("a", "1/4", None, 20, "y"), of("a", "all", 10, 20, "y"),
        of("d", "1/4", 1.0, 10), of("d", "all", 3.0, 10),
    ]  # fmt: skip
    assert defaults.of_four_times_the_rows(rows) == [
        {"title": "x", "pairs": 3, "labels": 2.0, "least": 2.0, "median": 3.0, "most": 5.0}
    ]


def test_stacks_beside_their_members():
    """One row for each set and size with a stack; what failed or was not tried has no cell."""

    def of(entry, name, p1, **parameters):
        row = row_of(name, "1/4", parameters, p1, entry) | {"n_train": 1900}
        return row | ({} if p1 is None else {"PSP@1": p1 / 2})

    rows = [
        of("ova", "a", 50.0), of("ova", "a", 99.0, C=10.0), of("ngame", "a", 40.0),
        of("ova+ngame", "a", 52.04), of("ova+ngame", "a", 30.0, objective="propensity"),
        of("implicit", "a", None), of("ova", "b", 60.0), of("ova+implicit", "b", None),
    ]  # fmt: skip
    wide, columns = defaults.of_stacks(rows)
    assert wide == [
        {
            "set": "a", "size": "1/4", "n_train": 1900, "ova, default": "50.0 / 25.0",
            "ngame, default": "40.0 / 20.0", "ova+ngame, default": "52.0 / 26.0",
            "ova+ngame, objective='propensity'": "30.0 / 15.0",
        }
    ]  # fmt: skip
    assert [column.header for column in columns][3:6] == [
        "OvALinearXC", "NGAMEEmbeddingXC", "StackingXC (ova, ngame)",
    ]  # fmt: skip
