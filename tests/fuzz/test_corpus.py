"""What fuzzing has found worth keeping is tried in every run, without atheris."""

import subprocess
import sys

import fuzzing
import pytest


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_the_corpus(target):
    inputs = fuzzing.inputs_of(target)
    assert len(inputs) > 50
    assert sum(map(len, inputs.values())) < 200_000
    command = [sys.executable, fuzzing.__file__, target, "--corpus"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{len(inputs)} inputs" in done.stdout
