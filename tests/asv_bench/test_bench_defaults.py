"""The experiment on defaults: tasks, kept rows, comparisons, fits in processes."""

import itertools

import numpy as np
import pytest

from asv_bench.__main__ import run
from asv_bench.common.runs import RowLog, in_process
from asv_bench.common.sets import CLASS_SETS, LABEL_SETS, documents_of, load
from asv_bench.defaults import defaults
from asv_bench.defaults.entries import ENTRIES, named
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

SETTINGS = ({}, {"C": 0.3}, {"C": 3.0}, {"C": 10.0})
NAMES = [named(parameters) for parameters in SETTINGS]


@pytest.fixture(autouse=True)
def _three_settings(monkeypatch):
    """Have one-vs-all measured with these settings."""
    monkeypatch.setitem(ENTRIES, "ova", ENTRIES["ova"]._replace(settings=SETTINGS[1:]))


def row_of(name, size, parameters, p1, entry="ova"):
    """Return a row as ``main`` has them; P@1 of None is a fit that failed."""
    row = {"set": name, "size": size, "entry": entry, "parameters": parameters}
    row |= {"setting": named(parameters), "title": ENTRIES[entry].title}
    return row | ({"error": "no"} if p1 is None else {"P@1": p1, "train_cpu_s": 1.0})


def test_small_sizes_and_defaults_come_first():
    tasks = defaults.plan(("tate", "yso_sets"), None, ("ova", "omikuji"), False)
    order = [(len(t["size"]) < 4, bool(t["parameters"])) for t in tasks]
    assert [t["size"] for t in tasks] == sorted((t["size"] for t in tasks), key=defaults.SIZES.get)
    assert not any(t["size"] == "all" and t["set"] == "yso_sets" for t in tasks)
    assert len(order) == 5 * (4 + 1)
    alone = defaults.plan(("tate", "yso_sets"), None, ("ova", "omikuji"), True)
    assert alone == [task for task in tasks if not task["parameters"]]


def test_a_default_has_a_process_and_other_settings_share_one():
    tasks = defaults.plan(LABEL_SETS, ("1/16", "1/4"), ("ova", "ova-cv"), False)
    groups = defaults.in_one_process(tasks)
    assert sorted(map(repr, itertools.chain(*groups))) == sorted(map(repr, tasks))
    for group in groups:
        assert len({(t["set"], t["size"], t["entry"]) for t in group}) == 1
        assert len(group) == 1 or all(task["parameters"] for task in group)
    assert len(groups) == 8 * 2 * (2 + 1)


def test_a_stopped_run_continues(monkeypatch, tmp_path, capsys):
    calls = []

    def measure(tasks, data, cache, timeout):
        calls.append([task["parameters"] for task in tasks])
        return [
            {"error": "no"}
            if len(calls) <= 2 and task["parameters"] == {"C": 3.0}
            else {"P@1": 50.0 + task["parameters"].get("C", 1.0), "PSP@1": 1.0}
            | {"train_cpu_s": 1.0, "n_train": 9, "n_labels": 3}
            for task in tasks
        ]

    monkeypatch.setattr(defaults, "_measure", measure)
    path = tmp_path / "defaults.jsonl"
    options = ["--sets", "bibtex", "--sizes", "1/4", "--entries", "ova", "--out", str(tmp_path)]
    rows = run("defaults", *options)
    assert calls == [[{}], list(SETTINGS[1:])]
    assert [row.get("error") for row in rows] == [None, None, "no", None]
    kept = path.read_text()
    torn = kept + kept.splitlines()[-1][:40]
    path.write_text(torn)

    assert run("defaults", *options, "--only-report") == rows
    assert len(calls) == 2
    assert path.read_text() == torn  # another process may be writing

    again = run("defaults", *options)
    assert calls[2:] == [[{"C": 3.0}]]
    assert [row["P@1"] for row in again] == [51.0, 50.3, 53.0, 60.0]
    assert path.read_text().startswith(kept)
    assert path.read_text().count("\n") == 4 + 1
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
    sets = ("bibtex", "bibtex:first", "tate", "yso_finna_en", "yso_sets", "citeulike_t")
    documents = {name: documents_of(name) for name in sets}
    keys = ("set", "size", "default", "best", "away", "chosen by other sets", "of it")
    chosen = set()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = [
            row_of(name, size, p, None if rng.random() < 0.03 * seed else rng.random())
            for name in sets
            for size in ("1/16", "1/4")
            for p in SETTINGS
            if rng.random() < 0.97
        ]
        found = defaults.compare(rows)
        assert [tuple(row[k] for k in keys) for row in found] == compared_by_loops(rows, documents)
        chosen |= {row["chosen by other sets"] for row in found}
    assert chosen == {*NAMES, None}  # all cases came


def test_what_other_sets_choose_is_scored_where_they_do_not_count():
    """C = 3 is best on both others, by far; here it is worse than the default."""
    rows = []
    for name, scores in (
        ("tate", (50, 40, 52, 51)),
        ("bibtex", (60, 40, 65, 61)),
        ("delicious", (70, 40, 68, 73)),
    ):
        rows += [row_of(name, "all", *one) for one in zip(SETTINGS, scores, strict=True)]
    *_, found = defaults.compare(rows)
    assert (found["default"], found["of"], found["best"]) == (70, "C=10.0", 73)
    assert (found["chosen by other sets"], found["of it"], found["away"]) == ("C=3.0", 68, 3)
    (summary,) = defaults.summarise(defaults.compare(rows))
    assert (summary["pairs"], summary["within 1.0"], summary["farthest"]) == (3, 0, 5)
    assert summary["mean"] == pytest.approx((2 + 5 + 3) / 3)
    assert summary["mean, chosen by others"] == pytest.approx((1 + 4 + 5) / 3)


def test_another_objective_is_no_rival():
    rows = [row_of("tate", "all", p, 50.0, "ova+ngame") for p in ({}, {"objective": "propensity"})]
    assert defaults.compare(rows) == []


def test_growth_is_by_pairs_of_sizes():
    rows = []
    for size, seconds, n_labels in (("1/16", 2.0, 10), ("1/4", 10.0, 30), ("all", 60.0, 30)):
        row = row_of("tate", size, {}, 50.0) | {"train_cpu_s": seconds, "n_labels": n_labels}
        rows.append(row)
    (found,) = defaults.of_four_times_the_rows(rows)
    assert (found["pairs"], found["least"], found["most"]) == (2, 5.0, 6.0)
    assert found["times the labels"] == 2.0


# Fits


def test_rows_are_those_of_the_estimator(data, tmp_path):
    found = load("bibtex", data, "1/4")
    row = defaults.measure_entry(found, "ova", {"C": 3.0})
    seen = np.flatnonzero(np.bincount(found.Y_train.indices, minlength=12))
    model = OvALinearXC(C=3.0).fit(found.X_train, found.Y_train[:, seen])
    topk = seen[model.predict_topk(found.X_test, 5)[0]]
    counts = np.bincount(found.Y_train.indices, minlength=12)
    known = propensity(counts, found.X_train.shape[0])
    expected = [
        precision_at_k(found.Y_test, topk, k=5),
        psp_at_k(found.Y_test, topk, k=1, propensities=known),
    ]
    np.testing.assert_allclose([row["P@5"], row["PSP@1"]], 100 * np.array(expected))


def test_a_process_measures_and_fails_by_itself(data, tmp_path, capsys):
    options = ["--data", str(data), "--sizes", "1/4", "--no-grid", "--cache", str(tmp_path)]
    options += ["--entries", "ova", "text", "pecos"]
    rows = run("defaults", *options, "--sets", "english_wordnet")
    assert [row["entry"] for row in rows] == ["ova", "text", "pecos"]
    assert all(0 < row["P@1"] <= 100 and row["train_cpu_s"] > 0 for row in rows[:2])
    assert "PECOS_PYTHON" in rows[2]["error"]
    assert "english_wordnet" in capsys.readouterr().out


def test_a_process_that_ends_or_takes_too_long():
    assert "No module" in in_process("nowhere:run", {})["error"]
    assert in_process("os:_exit", 3)["error"].startswith("exit status 3")
    assert in_process("time:sleep", 30, timeout=1)["error"].startswith("timed out after 1 s")


@pytest.mark.parametrize("key", [key for key in ENTRIES if ENTRIES[key].make is not None])
def test_every_entry_makes_an_estimator(key, data):
    entry = ENTRIES[key]
    found = load("english_wordnet", data)
    for parameters in ({}, *entry.settings):
        model = entry.make(found, parameters)
        assert {n: model.get_params()[n] for n in parameters} == dict(parameters)


def test_log_finds_the_last_row(tmp_path):
    log = RowLog(tmp_path / "rows.jsonl")
    for row in ({"P@1": 1.0}, {"error": "x"}):
        log.add({"set": "tate"}, row)
    again = RowLog(tmp_path / "rows.jsonl")
    assert again.find({"set": "tate"}) == {"P@1": 1.0}
    assert again.find({"set": "tate"}, with_errors=True) == {"error": "x"}
    assert again.find({"set": "bibtex"}) is None


def test_class_sets_are_of_classes(data):
    assert all(load(name, data).one_class for name in CLASS_SETS if name.startswith(("bib", "yso")))
