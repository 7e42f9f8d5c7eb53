"""The experiment on defaults: tasks, kept rows, comparisons, fits in processes."""

import itertools

import numpy as np
import pytest

from asv_bench.__main__ import run
from asv_bench.common.sets import LABEL_SETS, load
from asv_bench.defaults import defaults
from asv_bench.defaults.entries import ENTRIES, named
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

SETTINGS = ({}, {"C": 0.3}, {"C": 3.0}, {"C": 10.0})


@pytest.fixture(autouse=True)
def _three_settings(monkeypatch):
    """Have one-vs-all measured with these settings."""
    monkeypatch.setitem(ENTRIES, "ova", ENTRIES["ova"]._replace(settings=SETTINGS[1:]))


def row_of(name, size, parameters, p1, entry="ova"):
    """Return a row as ``main`` has them; P@1 of None is a fit that failed."""
    row = {"set": name, "size": size, "entry": entry, "parameters": parameters}
    row |= {"setting": named(parameters), "title": ENTRIES[entry].title}
    return row | ({"error": "no"} if p1 is None else {"P@1": p1, "train_cpu_s": 1.0})


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
    rows = run("defaults", *options, "--sets", "english_wordnet", "--entries", "text", "pecos")
    assert [row["entry"] for row in rows] == ["text", "pecos"]
    assert 0 < rows[0]["P@1"] <= 100
    assert rows[0]["train_cpu_s"] > 0
    assert "PECOS_PYTHON" in rows[1]["error"]
    assert "english_wordnet" in capsys.readouterr().out


def test_every_entry_makes_an_estimator(data):
    found = load("english_wordnet", data)
    for key, entry in ENTRIES.items():
        for parameters in ({}, *entry.settings) if entry.make is not None else ():
            given = entry.make(found, parameters).get_params()
            assert {n: given[n] for n in parameters} == dict(parameters), key
