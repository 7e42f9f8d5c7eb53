"""Lines that tell how far a training is."""

import numpy as np

from sklearn_xc.parallel import progress
from sklearn_xc.parallel.progress import Progress


def test_at_most_one_line_a_second_and_always_the_last(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 10.0, 0.3))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    shown = Progress("SomeClassifier", "epoch", 12)
    for n_done in range(1, 13):
        shown.show(n_done, "log-loss 0.25")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == ["1", "5", "9", "12"]
    assert lines[0] == "[SomeClassifier] epoch 1 of 12: log-loss 0.25, 0.3 s"
