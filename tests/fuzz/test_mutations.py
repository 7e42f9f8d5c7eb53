"""Model folders with anything changed, and checksums made anew: refused, or harmless."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="pipes in place of files")
@pytest.mark.parametrize(
    ("n", "seed"), [(100, 0), *(pytest.param(500, i, marks=pytest.mark.slow) for i in range(1, 5))]
)
def test_a_model_with_anything_changed(n, seed):
    script = Path(__file__).with_name("mutate_models.py")
    command = [sys.executable, script, f"{n}", f"{seed}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]  # a crash, or an input without end
    found = json.loads(done.stdout.splitlines()[-1])
    print(found["ended"])
    assert found["failed"] == [], found["failed"][0][1]
    assert found["ran"] == []
    assert sum(found["ended"].values()) == n
    assert min(found["ended"]["refused"], found["ended"]["answered"]) > n / 20
