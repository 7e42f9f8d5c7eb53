"""Every fit goes on from what its checkpoints keep, and ends in the same bytes."""

import multiprocessing
import os
import shutil
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from fitted import assert_same_answers, assert_same_model
from registry import ENTRIES, VARIANTS, having, of_variant
from small_data import awkward

from sklearn_xc._state import checkpoints
from sklearn_xc._state.checkpoints import Checkpoints
from sklearn_xc.datasets import make_xc_classification

X, Y = awkward()
#: What is told apart by when it was, and by where checkpoints are.
BUT = ("fit_report_",)
#: Estimators, and variants whose parts, or their order, are others.
OTHERS = ("", "huber_hinge, ovap", "in_batch, features", "ance", "tas", "frozen")
KEPT = [pair for pair in VARIANTS if pair[0] in having("checkpoint_dir") and pair[1] in OTHERS]

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]


class Stopped(BaseException):
    """Ends a fit anywhere."""


@pytest.fixture
def puts(monkeypatch):
    """Counts parts that were kept; a fit ends after `puts.last` of them."""

    class Puts:
        n, last = 0, None

    def counted(store, name, arrays, plain=Checkpoints.put):
        plain(store, name, arrays)
        Puts.n += 1
        if Puts.n == Puts.last:
            raise Stopped

    monkeypatch.setattr(Checkpoints, "put", counted)
    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)  # each epoch is kept
    return Puts


def reports(model):
    """Return what the epochs, folds or members came to, without their times."""
    found = {}
    for name in BUT:
        report = getattr(model, name, {})
        found |= {key: values.tobytes() for key, values in report.items() if key != "seconds"}
    return found


def assert_same_fit(a, b):
    """Compare all that a fit leaves, to the bit, but its times."""
    assert_same_model(a, b, BUT)
    assert reports(a) == reports(b)
    assert_same_answers(a, b, X)


@pytest.mark.parametrize("pair", KEPT, ids=lambda pair: ", ".join(filter(None, pair)))
def test_it_goes_on_wherever_it_was(pair, puts, tmp_path):
    expected = of_variant(*pair).fit(X, Y)
    whole = of_variant(*pair, checkpoint_dir=tmp_path / "whole").fit(X, Y)
    assert_same_fit(whole, expected)
    n, puts.n = puts.n, 0
    assert_same_fit(of_variant(*pair, checkpoint_dir=tmp_path / "whole").fit(X, Y), expected)
    assert puts.n == 0 < n  # nothing was trained again
    for last in np.unique([1, n // 3, n // 2, n - 1]):
        if not 0 < last < n:
            continue
        puts.n, puts.last = 0, last
        with pytest.raises(Stopped):
            of_variant(*pair, checkpoint_dir=tmp_path / f"{last}").fit(X, Y)
        puts.last = None
        others = {"n_jobs": 2, "max_memory": "1GB"}
        again = of_variant(*pair, checkpoint_dir=tmp_path / f"{last}", **others).fit(X, Y)
        again.set_params(n_jobs=None, max_memory=None)
        assert_same_fit(again, expected)


def test_without_a_seed_it_has_that_of_the_first_call(tmp_path):
    unseeded = {"random_state": None, "checkpoint_dir": tmp_path / "fit"}
    first, again = (ENTRIES["NGAMEEmbeddingXC"].make(**unseeded).fit(X, Y) for _ in range(2))
    assert_same_fit(again, first)


@pytest.mark.parametrize("name", having("checkpoint_dir"))
def test_damaged_parts_are_made_again(name, puts, tmp_path):
    rng, entry = np.random.default_rng(0), ENTRIES[name]
    expected = entry.make().fit(X, Y)
    entry.make(checkpoint_dir=tmp_path / "fit").fit(X, Y)
    for turn in range(4):
        folder = tmp_path / f"{turn}"
        shutil.copytree(tmp_path / "fit", folder)
        for path in folder.rglob("*.safetensors"):
            content = bytearray(path.read_bytes())
            match rng.integers(4):
                case 0:
                    path.unlink()
                case 1:
                    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
                    path.write_bytes(content)
                case 2:
                    path.write_bytes(content[: rng.integers(len(content))])
        assert_same_fit(entry.make(checkpoint_dir=folder).fit(X, Y), expected)


@pytest.mark.parametrize("name", having("checkpoint_dir"))
def test_another_fit_is_refused_by_name(name, tmp_path):
    def fit(x=X, y=Y, **parameters):
        return ENTRIES[name].make(checkpoint_dir=tmp_path / "fit", **parameters).fit(x, y)

    fit()
    with pytest.raises(ValueError, match=r"another fit: X is not the same\. Give each fit"):
        fit(x=X * 2)
    with pytest.raises(ValueError, match=r"another fit: y is not the same"):
        fit(y=Y[::-1])


@pytest.mark.parametrize("name", having("checkpoint_dir"))
def test_a_full_disk_is_told_and_what_is_finished_stays(name, puts, full_disk, tmp_path):
    entry, folder = ENTRIES[name], tmp_path / "fit"
    with full_disk(after=1), pytest.raises(OSError, match=r"No space left on device: '.*fit"):
        entry.make(checkpoint_dir=folder).fit(X, Y)
    assert_same_fit(entry.make(checkpoint_dir=folder).fit(X, Y), entry.make().fit(X, Y))


# SIGKILL

#: Large enough that a fit takes half a second and more.
LARGE = make_xc_classification(n_samples=600, n_features=300, n_labels=200, random_state=0)
LONGER = {
    "OvALinearXC": {"tol": 1e-4},
    "NGAMEEmbeddingXC": {"max_iter": 6, "classifier_max_iter": 6, "embedding_dim": 16},
    "NGAMEEmbeddingXC transformer": {"max_iter": 2, "classifier_max_iter": 6},
}


def _longer(name, **parameters):
    return ENTRIES[name].make(**LONGER.get(name, {}), **parameters)


def _fit(name, place):
    warnings.simplefilter("ignore")
    (place / "started").touch()
    _longer(name, checkpoint_dir=place / "fit").fit(*LARGE)
    (place / "done").touch()


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
@pytest.mark.parametrize(
    ("name", "n_fits"),
    [("OvALinearXCCV", 1), ("NGAMEEmbeddingXC", 1)]
    + [pytest.param(name, 100, marks=pytest.mark.slow) for name in having("checkpoint_dir")],
)
def test_killed_at_any_moment(name, n_fits, tmp_path):
    """Each fit is killed at some moments until it ends."""
    rng, context = np.random.default_rng(0), multiprocessing.get_context("fork")
    _longer(name).fit(*LARGE)  # compiles
    began = time.perf_counter()
    expected = _longer(name).fit(*LARGE)
    seconds = time.perf_counter() - began
    n_kills = 0
    for i in range(n_fits):
        place: Path = tmp_path / str(i)
        place.mkdir()
        while not (place / "done").exists():
            (place / "started").unlink(missing_ok=True)
            process = context.Process(target=_fit, args=(name, place))
            process.start()
            while not (place / "started").exists():
                time.sleep(0.001)
            may_end = n_kills >= 3 * (i + 1)
            process.join(None if may_end else float(rng.uniform(0, seconds)))
            if process.exitcode is None:
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                n_kills += 1
            process.join()
            assert process.exitcode in (0, -signal.SIGKILL)
        again = _longer(name, checkpoint_dir=place / "fit").fit(*LARGE)
        assert_same_model(again, expected, BUT)
        assert reports(again) == reports(expected)
        shutil.rmtree(place)
