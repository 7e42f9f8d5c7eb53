"""Every end of a command has its exit code and one sentence, and leaves no half-written file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc
from sklearn_xc.command_line import main, tag


def test_as_a_program():
    env = {**os.environ, "PYTHONPATH": str(Path(sklearn_xc.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "sklearn_xc", "--version"], env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"sklearn_xc {sklearn_xc.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required: COMMAND"),
        (["fit", "t.csv"], "required: --text, --labels, --out"),
        (["tag", "m", "t", "-k", "0"], "expected a whole number of at least 1. Got '0'"),
        (["tag", "m", "t", "--delimiter", ""], "expected a text such as"),
    ],
)
def test_usage(refused, arguments, says):
    assert says in refused(*arguments)


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "tag: interrupted.\n"),
        (MemoryError("Lower k."), 2, "out of memory. Lower k.\n"),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "x.csv: Permission denied.\n"),
    ],
)
def test_errors(run, model, others, tmp_path, monkeypatch, error, code, says):
    def fail(*_):
        raise error

    monkeypatch.setattr(tag, "_tags_of", fail)
    found = run("tag", model, others, "--out", tmp_path / "o.csv")
    assert found[0] == code
    assert says in found[2]
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away(model, others, monkeypatch):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["tag", model, others, "--quiet"]) == 141
