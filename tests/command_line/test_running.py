"""Every end has its exit code and one sentence, and no half-written file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc
from sklearn_xc.command_line import main
from sklearn_xc.command_line import tag as tag_module


def test_as_a_program():
    env = {**os.environ, "PYTHONPATH": str(Path(sklearn_xc.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "sklearn_xc", "--help"], env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "to load it runs no code" in done.stdout
    assert "fit" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required: COMMAND"),
        (["train"], "invalid choice: 'train'"),
        (["fit", "t.csv"], "required: --text, --labels, --out"),
        (["tag", "m", "t", "-k", "0"], "expected a whole number of at least 1. Got '0'"),
        (["tag", "m", "t", "--encoding", "utf-9"], "there is no encoding 'utf-9'"),
        (["tag", "m", "t", "--encoding", "rot13"], "there is no encoding 'rot13'"),
        (["tag", "m", "t", "--delimiter", "||"], "expected one character"),
        (["fit", "t", "--holdout", "2"], "expected a share between 0 and 1, such as 0.1. Got '2'"),
    ],
)
def test_usage(refused, arguments, says):
    assert says in refused(*arguments)


def test_version(run):
    assert run("--version") == (0, f"sklearn_xc {sklearn_xc.__version__}\n", "")


def test_no_such_table(refused, model):
    error = refused("tag", model, "missing.csv")
    assert error == "sklearn-xc tag: missing.csv: there is no such file.\n"
    assert "there is no folder 'missing'" in refused("tag", model, "missing/t.csv")


def _raise(error):
    def raising(*_):
        raise error

    return raising


def test_an_interruption(run, model, others, tmp_path, monkeypatch):
    monkeypatch.setattr(tag_module, "_tags_of", _raise(KeyboardInterrupt))
    code, _, err = run("tag", model, others, "--out", tmp_path / "o.csv")
    assert code == 130
    assert err == f"sklearn-xc tag: interrupted; {tmp_path / 'o.csv'} was not written.\n"
    assert list(tmp_path.iterdir()) == []
    assert run("tag", model, others)[0::2] == (130, "sklearn-xc tag: interrupted.\n")


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ValueError("C must be positive. Got -1."), 2, "tag: C must be positive. Got -1.\n"),
        (MemoryError("Lower k."), 2, "the memory does not suffice. Lower k.\n"),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "x.csv: not allowed to read"),
        (OSError(28, "No space left on device"), 2, "o.csv: the disk is full.\n"),
        (OSError(5, "Input/output error"), 2, "the output: Input/output error.\n"),
        (ZeroDivisionError("oh"), 1, "unexpected ZeroDivisionError: oh. This is a defect"),
    ],
)
def test_errors(run, model, others, tmp_path, monkeypatch, error, code, says):
    monkeypatch.setattr(tag_module, "_tags_of", _raise(error))
    arguments = ["tag", model, others, "--out", tmp_path / "o.csv"]
    found = run(*arguments)
    assert found[0] == code
    assert says in found[2]
    assert "Traceback" not in found[2]
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" in run(*arguments, "--traceback")[2]


def test_a_reader_that_goes_away(model, others, monkeypatch):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["tag", model, others, "--quiet"]) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk(refused, model, others):
    error = refused("tag", model, others, "--out", "/dev/full")
    assert error == "sklearn-xc tag: /dev/full: the disk is full.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_behind_standard_output(model, others, monkeypatch, capsys):
    with open("/dev/full", "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["tag", model, others]) == 2
    assert capsys.readouterr().err == "sklearn-xc tag: the output: the disk is full.\n"
