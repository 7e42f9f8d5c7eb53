"""Processes of PyTorch's launcher train one model together, as one process would."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch.distributed
from ranks_program import CASES, TEXTS, train
from tiny import HIDDEN

from sklearn_xc.encoders.transformer import passes
from sklearn_xc.parallel.ranks import ALONE, Ranks, ranks

N_RANKS = 2


@pytest.fixture(scope="module")
def together(folders, tmp_path_factory):
    """Return what each process has found."""
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch cannot connect processes")
    at, here = tmp_path_factory.mktemp("ranks"), Path(__file__).parent
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", str(N_RANKS), str(here / "ranks_program.py"), folders["bert"],
        folders["distilbert"], str(at),
    ]  # fmt: skip
    root = str(here.parent.parent)
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join([str(here), root, os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [pickle.loads((at / f"{rank}.pickle").read_bytes()) for rank in range(N_RANKS)]


@pytest.fixture(scope="module")
def alone(folders):
    """Return what a single process finds."""
    before = passes._TOKENS
    yield {name: train(folders["bert"], *case) for name, case in CASES.items()}
    passes._TOKENS = before


@pytest.mark.parametrize("name", CASES)
def test_they_learn_what_one_process_does(together, alone, name):
    """Also where there are more processes than chunks, and what is left out is the same."""
    expected = alone[name]
    assert np.abs(np.diff(expected["seen"], axis=0)).max() > 0.1
    for found in together:
        for what in ("losses", "seen", "V"):
            np.testing.assert_allclose(found[name][what], expected[what], atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_all_end_with_the_same_bytes(together, name):
    one, *others = (found[name] for found in together)
    for other in others:
        for what in ("losses", "seen", "V"):
            assert other[what].tobytes() == one[what].tobytes()
        assert other["stored"] == one["stored"]


def test_what_they_stored_learns_on_in_one_process(together, alone):
    found, expected = (
        pickle.loads(one["what is left out"]["stored"]) for one in (together[0], alone)
    )
    assert found.network_.n_steps == expected.network_.n_steps == 4
    for encoder in (found, expected):
        rng = np.random.default_rng(0)
        passed = encoder.forward(TEXTS, rng)
        encoder.learn(passed, rng.normal(size=passed.V.shape), 0.003)
    np.testing.assert_allclose(found.encode(TEXTS), expected.encode(TEXTS), atol=1e-5)


def test_all_refuse_what_is_not_the_same(together):
    """Texts, a dimension, a seed, a model; else those that agree would wait for the other."""
    for found in together:
        assert found["backend"] == "gloo"
        assert found["agreed"] == "it was not refused"
        for message in found["refused"]:
            assert message == (
                "TransformerEncoder: all processes of a launcher must fit the same model to the "
                "same data, with the same int as random_state. Process 1 was given others than "
                "process 0."
            )


def test_one_process_needs_nothing():
    assert ranks() is ALONE
    assert (ALONE.rank, ALONE.size) == (0, 1)
    tensor = torch.ones(3)
    ALONE.sum(tensor)
    assert tensor.tolist() == [1, 1, 1]
    assert ALONE.from_first("a") == "a"
    assert ALONE.from_all("a") == ["a"]


@pytest.mark.parametrize("n", [0, 1, 4, 11])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_each_part_is_one_processes(n, size):
    shares = [Ranks(rank, size).share(n) for rank in range(size)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_process_by_itself_is_no_training_together(start, monkeypatch):
    """A launcher of one process, and variables of some other program."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert ranks() is ALONE
    monkeypatch.delenv("RANK")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert ranks() is ALONE
    assert start().encode(TEXTS).shape == (len(TEXTS), HIDDEN)
