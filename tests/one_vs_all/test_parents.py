"""Labels that start at the weights of others: the same model for any threads, memory and cut."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC
from sklearn_xc.one_vs_all import blocks, training
from sklearn_xc.one_vs_all.starts import Initialiser, OneVsAllPrimalPlusPlus


@pytest.fixture(scope="module")
def nested():
    """Return X and Y with a tree that is as deep as it has labels, and one of broad subtrees."""
    rng = np.random.default_rng(0)
    X = sp.random_array((150, 60), density=0.2, format="csr", random_state=rng)
    scores = X @ rng.normal(size=(60, 4))
    place = np.argsort(np.argsort(-scores, axis=0), axis=0)
    chain = np.hstack([place[:, :1] < 3 + 4 * np.arange(25), place[:, 1:2] < 5 + 4 * np.arange(9)])
    alone = place[:, 2:] < 6
    part = np.hstack([chain[:, [j]] & (rng.random((150, 3)) < 0.8) for j in (5, 15, 30)])
    return X, sp.csr_array(np.hstack([chain, alone, part]).astype(np.int8))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_LANES", 2)
    monkeypatch.setattr(blocks, "MAX_BLOCK_LABELS", 4)


def fit(X, Y, **parameters):
    return OvALinearXC(**{"prune": 0.005, "init": "ovap++", **parameters}).fit(X, Y)


def assert_same_bytes(a, b):
    assert a.coef_.data.tobytes() == b.coef_.data.tobytes()
    np.testing.assert_array_equal(a.coef_.indices, b.coef_.indices)
    np.testing.assert_array_equal(a.coef_.indptr, b.coef_.indptr)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    for name in set(a.fit_report_) - {"seconds"}:
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name], name)


@pytest.fixture
def plans(monkeypatch):
    """Return the plans that are made from here on."""
    found, plan_blocks = [], training.plan_blocks

    def recording_plan_blocks(*args, **options):
        found.append(plan_blocks(*args, **options))
        return found[-1]

    monkeypatch.setattr(training, "plan_blocks", recording_plan_blocks)
    return found


@pytest.mark.parametrize("convert", [sp.csr_array, lambda X: X.toarray()], ids=["csr", "dense"])
def test_threads_memory_and_cut_change_no_bit(convert, nested, plans, monkeypatch):
    X, Y = convert(nested[0]), nested[1]
    expected = fit(X, Y)
    assert len(plans[0].blocks) == 1  # a whole tree within a block
    assert_same_bytes(fit(X, Y, max_memory="160KB"), expected)
    assert plans[1].n_lanes < plans[0].n_lanes
    for lanes, most in ((2, 4), (1, 1), (3, 12)):
        monkeypatch.setattr(blocks, "MAX_LANES", lanes)
        monkeypatch.setattr(blocks, "MAX_BLOCK_LABELS", most)
        for n_jobs in (1, 2):
            assert_same_bytes(fit(X, Y, n_jobs=n_jobs), expected)
        assert len(plans[-1].waves) > 2
        assert max(map(len, plans[-1].blocks)) <= most
    assert len({len(plan.blocks) for plan in plans}) >= 5


@pytest.mark.parametrize("prune", [0.0, 0.05])
def test_a_label_starts_at_its_parent_after_pruning(prune, nested, small_blocks, monkeypatch):
    """Also across blocks: its first objective is that of the parent's weights in the model."""
    X, Y = nested
    starts, asked, solve_block = {}, [], training.solve_block

    def observed_solve_block(*args):
        def observe(step):
            if step.n_iter == 0:
                starts[step.label] = step.objective

        asked.append(args[4].tolist())
        return solve_block(*args, observe=observe)

    monkeypatch.setattr(training, "solve_block", observed_solve_block)
    given = []

    class Recording(OneVsAllPrimalPlusPlus):
        def parents(self, problem, labels):
            given.append((problem, labels, super().parents(problem, labels)))
            return given[-1][2]

    model = fit(X, Y, init=Recording(), prune=prune, n_jobs=1)
    ((problem, labels, parents),) = given
    block_of = {label: b for b, block in enumerate(asked) for label in block}
    crossing = 0
    weights = np.column_stack([model.coef_.toarray(), model.intercept_])
    rows = np.column_stack([X.toarray(), np.ones(X.shape[0])])
    for label, place in zip(labels, parents, strict=True):
        if place < 0:
            continue
        parent = labels[place]
        crossing += block_of[parent] < block_of[label]
        w = weights[parent]
        sign = 2.0 * Y[:, [label]].toarray()[:, 0] - 1.0
        loss = np.maximum(0.0, 1.0 - sign * (rows @ w)) ** 2
        assert starts[label] == pytest.approx(0.5 * w @ w + problem.plus[0] * loss.sum(), rel=1e-9)
    assert crossing > 5
    assert (model.coef_.nnz < model.coef_.shape[0] * 60) == (prune > 0)


class Circular(Initialiser):
    def __init__(self, kind="cycle"):
        self.kind = kind

    def parents(self, problem, labels):
        m = len(labels)
        return {
            "cycle": np.roll(np.arange(m), 1),
            "short": np.full(m - 1, -1),
            "far": np.full(m, m),
            "float": np.full(m, -1.0),
        }[self.kind]

    def check(self):
        pass

    def start(self, prepared, problem, label, positive_sum):
        return np.zeros(problem.n_features + 1)


@pytest.mark.parametrize("kind", ["cycle", "short", "far", "float"])
def test_parents_that_are_no_tree(kind, nested):
    with pytest.raises(
        ValueError, match=r"OvALinearXC: init: the parents that Circular.*Got array"
    ):
        fit(*nested, init=Circular(kind))
