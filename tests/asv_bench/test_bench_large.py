import joblib
import numpy as np
import pytest

from asv_bench.library import large


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return small data, and what the calls keep."""
    folder = tmp_path_factory.mktemp("large")
    assert large.make_data(folder, 120, 300) == {}
    return large.Made(folder)


def test_the_data_have_every_label(made):
    assert made.X.shape == (120, 5000)
    assert made.Y.shape == (120, 300)
    assert np.asarray(made.Y.sum(axis=0)).min() >= 1
    assert (made.Y.data == 1).all()
    assert made.texts[0].split() == [f"w{j}" for j in made.X[[0]].indices]
    assert made.names[3] == [f"label {j:06d}" for j in made.Y[[3]].indices]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_call_does_what_it_is_called_after(made):
    """All in one process, in their order."""
    for call in large.CALLS:
        answer = large.measure_call(made.folder, call)
        assert set(answer) == {"before_mib", "peak_mib", "wall_s"}, call
    assert joblib.load(made.folder / "best.joblib").shape == (120, 5)
    assert (made.folder / "tagged.tsv").read_text().count("\n") == 121


@pytest.mark.slow
def test_a_row_for_each_call_and_what_it_needs(capsys):
    rows = large.main(labels=50, rows=40, calls=["OvALinearXC.predict_topk"])
    assert [row["call"] for row in rows] == ["OvALinearXC.fit", "OvALinearXC.predict_topk"]
    assert [row["error"] for row in rows] == ["", ""]
    assert all(row["peak_mib"] > 50 for row in rows)
    printed = capsys.readouterr().out
    assert "40 rows, 50 labels (goal: peaks below 2,048 MiB)" in printed
    assert "Above it: none. Failed: none." in printed


def test_failures_are_told(monkeypatch, capsys):
    def refuse(*_):
        raise ValueError("no.")

    monkeypatch.setitem(large.CALLS, "RareLabelSplit", refuse)
    monkeypatch.setattr(large, "KEEPERS", ())
    monkeypatch.setattr(
        large, "in_fresh_process", lambda run, *given: large.row_or_error(run, *given)
    )
    rows = large.main(labels=50, rows=40, calls=["RareLabelSplit"])
    assert rows == [{"call": "RareLabelSplit", "error": "ValueError: no."}]
    assert "Failed: RareLabelSplit." in capsys.readouterr().out
