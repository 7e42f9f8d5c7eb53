"""A fit that was killed goes on from its finished blocks, and ends in the same bytes."""

from pathlib import Path

import numpy as np
import pytest

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.one_vs_all import training, warm_start
from sklearn_xc.one_vs_all.losses import SquaredHinge

X, Y = make_xc_classification(n_samples=300, n_features=200, n_labels=600, random_state=0)


def fitted(folder=None, X=X, **parameters):
    return OvALinearXC(**{"tol": 1e-2, "checkpoint_dir": folder, **parameters}).fit(X, Y)


def all_bytes(model):
    """All that a fit leaves but for its times."""
    coef, report = model.coef_, model.fit_report_
    arrays = [coef.data, coef.indices, coef.indptr, model.intercept_]
    arrays += [values for name, values in sorted(report.items()) if name != "seconds"]
    return [array.tobytes() for array in arrays]


@pytest.fixture(scope="module")
def expected():
    return all_bytes(fitted())


@pytest.fixture
def solved(monkeypatch):
    """The blocks that are solved, by their labels."""
    found, plain = [], training.solve_block
    monkeypatch.setattr(
        training, "solve_block", lambda *a: found.append(a[4].tolist()) or plain(*a)
    )
    return found


def parts(folder):
    return sorted(path for path in Path(folder).iterdir() if path.name.startswith("block-"))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_second_call_solves_nothing(n_jobs, expected, solved, tmp_path):
    assert all_bytes(fitted(tmp_path)) == expected
    assert len(solved) == len(parts(tmp_path)) > 3
    n_solved = len(solved)
    assert all_bytes(fitted(tmp_path, n_jobs=n_jobs)) == expected
    assert len(solved) == n_solved


@pytest.mark.parametrize(("init", "seed"), [("msi", 0), ("ovap++", 1)])
def test_what_is_missing_or_damaged_is_solved_again(init, seed, solved, tmp_path):
    rng, plain = np.random.default_rng(seed), all_bytes(fitted(init=init))
    fitted(tmp_path, init=init)
    harmed = 0
    for path in parts(tmp_path):
        match rng.integers(4):
            case 0:
                path.unlink()
            case 1:
                data = bytearray(path.read_bytes())
                data[rng.integers(len(data))] ^= 1 << rng.integers(8)
                path.write_bytes(bytes(data))
            case 2:
                path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])
            case 3:
                continue
        harmed += 1
    solved.clear()
    assert all_bytes(fitted(tmp_path, init=init)) == plain
    assert len(solved) == harmed


def test_under_a_limit_on_memory_other_blocks_are_solved_again(expected, solved, tmp_path):
    fitted(tmp_path)
    n_blocks = len(solved)
    assert all_bytes(fitted(tmp_path, max_memory="400kB")) == expected
    assert len(solved) - n_blocks == len(parts(tmp_path)) > n_blocks


def test_a_full_disk_is_told_and_what_is_finished_stays(expected, full_disk, tmp_path):
    says = r"No space left on device: '.*block-000003"
    with full_disk(after=4), pytest.raises(OSError, match=says):
        fitted(tmp_path)
    assert len(parts(tmp_path)) == 3
    assert all_bytes(fitted(tmp_path)) == expected


class TestOfCrossValidation:
    """Folds that are scored are not fitted again, and a path goes on from its blocks."""

    def fitted(self, folder=None, **parameters):
        asked = {"Cs": 6, "cv": 3, "tol": 1e-2, "checkpoint_dir": folder, **parameters}
        return OvALinearXCCV(**asked).fit(X[:, :60], Y[:, :300])

    def all_bytes(self, model):
        return all_bytes(model), model.scores_.tobytes(), model.C_

    @pytest.mark.parametrize(("share", "then_jobs"), [(0, None), (0.4, 2), (0.99, None)])
    def test_it_goes_on_wherever_it_was(self, share, then_jobs, monkeypatch, tmp_path):
        plain, n_calls, stop = warm_start.solve_block, 0, 10**9

        def failing(*args, **kwargs):
            nonlocal n_calls
            n_calls += 1
            if n_calls > stop:
                raise KeyboardInterrupt
            return plain(*args, **kwargs)

        for module in (warm_start, training):
            monkeypatch.setattr(module, "solve_block", failing)
        expected = self.all_bytes(self.fitted())
        assert n_calls > 10
        n_calls, stop = 0, int(share * n_calls)
        with pytest.raises(KeyboardInterrupt):
            self.fitted(tmp_path)
        stop = 10**9
        assert self.all_bytes(self.fitted(tmp_path, n_jobs=then_jobs)) == expected
        n_calls = 0
        assert self.all_bytes(self.fitted(tmp_path)) == expected
        assert n_calls == 0

    def test_other_folds_are_refused_by_name(self, tmp_path):
        self.fitted(tmp_path)
        with pytest.raises(ValueError, match="another fit: folds is not the same"):
            self.fitted(tmp_path, random_state=1)


class TestAnotherFit:
    def test_other_parameters_are_refused_by_name(self, tmp_path):
        fitted(tmp_path)
        with pytest.raises(ValueError, match=r"another fit: C was None, is 2\.0\. Give each"):
            fitted(tmp_path, C=2.0)
        with pytest.raises(ValueError, match="loss is not the same"):
            fitted(tmp_path, loss=SquaredHinge())

    def test_what_changes_no_byte_may_be_other(self, expected, tmp_path):
        fitted(tmp_path)
        names = [f"n{i}" for i in range(600)]
        again = fitted(tmp_path, n_jobs=2, verbose=0, top_k=3, label_names=names)
        assert all_bytes(again) == expected
        assert again.classes_.tolist() == names

    def test_other_data_are_refused_by_name(self, tmp_path):
        fitted(tmp_path)
        with pytest.raises(ValueError, match="another fit: X is not the same"):
            fitted(tmp_path, X=X * 2)
        with pytest.raises(ValueError, match=r"another fit: y is not the same"):
            OvALinearXC(tol=1e-2, checkpoint_dir=tmp_path).fit(X, Y[::-1])
        with pytest.raises(ValueError, match=r"another fit: sample_weight is not the same"):
            OvALinearXC(tol=1e-2, checkpoint_dir=tmp_path).fit(X, Y, np.full(300, 2.0))
        with pytest.raises(ValueError, match=r"another fit: pair_weight is not the same"):
            OvALinearXC(tol=1e-2, checkpoint_dir=tmp_path).fit(X, Y, pair_weight=2.0 * Y)
