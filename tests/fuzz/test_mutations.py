"""Model folders with anything changed, and checksums made anew: refused, or harmless."""

import json
import subprocess
import sys

import fuzzing
import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="pipes in place of files")
@pytest.mark.parametrize(
    ("n", "seeds", "kinds"),
    [(50, [0], "golden"), pytest.param(500, range(1, 5), "further", marks=pytest.mark.slow)],
)
def test_a_model_with_anything_changed(n, seeds, kinds):
    ended = {}
    for seed in seeds:
        command = [sys.executable, fuzzing.__file__, "--mutations", f"{n}", f"{seed}", kinds]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-3000:]  # a crash, or an input without end
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["failed"] == [], found["failed"][0]
        assert found["ran"] == []
        for what, number in found["ended"].items():
            ended[what] = ended.get(what, 0) + number
    print(ended)
    assert sum(ended.values()) == n * len(seeds)
    assert min(ended["refused"], ended["answered"]) > n * len(seeds) / 10
