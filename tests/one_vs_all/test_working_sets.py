"""Working sets: the optimum of all rows, whichever rows were read."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from sklearn_xc import OvALinearXC
from sklearn_xc._parallel.progress import StopFlag
from sklearn_xc.one_vs_all.problem import sum_instances
from sklearn_xc.one_vs_all.solver import newton_cg, screening, working_sets
from sklearn_xc.one_vs_all.solver.newton_cg import STATUS_NAMES, shared_negatives_of, solve_block
from sklearn_xc.one_vs_all.solver.screening import make_screen
from sklearn_xc.one_vs_all.starts import INITIALISERS, Given

#: C=0.5 for 25 labels.
HALF = np.full(25, 0.5)


def texts(seed=0, n=300, d=80, n_labels=25, dtype=np.float64):
    """Rows like short texts: frequent and rare features, near-empty rows, equal rows."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1)
    frequency /= frequency.sum()
    X = np.zeros((n, d))
    for row in X:
        row[rng.choice(d, rng.integers(0, 6), p=frequency)] = 1.0
    X[rng.integers(0, n, n // 10)] = X[rng.integers(0, n, n // 10)]
    X *= np.log(1.0 / frequency)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    Y = np.zeros((n, n_labels), np.int8)
    for j in range(n_labels):
        Y[rng.choice(n, 1 + j % 5, replace=False), j] = 1
    Y[np.flatnonzero(~X.any(axis=1))[:1], -1] = 1  # a positive without features
    return sp.csr_array(X.astype(dtype)), sp.csr_array(Y)


@pytest.fixture
def pay(monkeypatch):
    """Have working sets pay for the smallest problems, and grow from few rows."""

    def change(**constants):
        for name, value in {"MOST_COMMON": np.inf, "FIRST_ROWS": 4, **constants}.items():
            monkeypatch.setattr(working_sets, name, value)
        monkeypatch.setattr(newton_cg, "FEWEST_ROWS", 0)

    return change


@pytest.fixture
def answers(monkeypatch):
    """Count the labels that were solved on working sets, and those that were left."""
    found = {True: 0, False: 0}
    solve = working_sets.WorkingSetSolver.solve

    def counted(self, *args):
        for batch, is_solved in solve(self, *args):
            found[is_solved] += len(batch)
            yield batch, is_solved

    monkeypatch.setattr(working_sets.WorkingSetSolver, "solve", counted)
    return found


def solve(problem, init="msi", labels=None, n_lanes=8, stop=None):
    """Return the solution with pruning, and the weights before it, dense."""
    sums = sum_instances(problem)
    initialiser = INITIALISERS[init]() if isinstance(init, str) else init
    prepared = initialiser.prepare(problem, sums)
    labels = np.arange(problem.n_labels) if labels is None else np.asarray(labels)
    given = problem, sums, initialiser, prepared, labels, n_lanes, stop
    ends = np.full((len(labels), problem.n_features + 1), np.nan, problem.dtype)
    solve_block(*given, ends=ends)
    return solve_block(*given), ends


def assert_solved(problem, solution, ends, objective_of):
    """By an objective over all rows that knows of nothing."""
    assert (solution.status == STATUS_NAMES.index("converged")).all()
    pruned = sp.csr_array(
        (solution.values, solution.indices, solution.indptr), shape=ends[:, :-1].shape
    )
    for label, w in enumerate(ends.astype(np.float64)):
        objective = objective_of(problem, label)
        norm = np.linalg.norm(objective.gradient(w))
        assert solution.objective[label] == pytest.approx(objective.value(w), rel=1e-10)
        assert solution.gradient_norm[label] == pytest.approx(norm, rel=1e-6, abs=1e-10)
        assert norm <= solution.gradient_tolerance[label] * (1 + 1e-9)
        v = np.where(np.abs(w) < problem.prune, 0.0, w)
        v[-1] = w[-1]
        np.testing.assert_array_equal(pruned[[label]].toarray()[0], v[:-1])
        removed = 1 - (v[:-1] ** 2).sum() / (w[:-1] ** 2).sum() if w[:-1].any() else 0.0
        assert solution.pruned[label] == pytest.approx(removed, abs=1e-7)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge"])
def test_certificates_are_those_of_all_rows(loss, make_problem, objective_of, pay, answers):
    pay()
    X, Y = texts()
    rng = np.random.default_rng(0)
    problem = make_problem(
        X,
        Y,
        loss=loss,
        tol=1e-4,
        prune=0.05,
        weight=0.5 + rng.random(300),
        plus=0.5 + rng.random(25),
        minus=0.5 + rng.random(25),
    )
    assert_solved(problem, *solve(problem), objective_of)
    assert answers[True] > 10  # of 50: with `ends` and without
    assert answers[False] > 0  # the label with a positive without features


def test_rows_with_little_loss_are_left_out(make_problem, objective_of, pay, answers):
    """The default's certificate bounds what they add; the gradient norm is one of that bound."""
    pay()
    problem = make_problem(*texts(2, n=600), relative_gap=1e-3, plus=HALF, minus=HALF)
    solution, ends = solve(problem)
    assert answers[True] > 10
    n_larger = 0
    for label, w in enumerate(ends.astype(np.float64)):
        objective = objective_of(problem, label)
        bound = 0.5 * solution.gradient_norm[label] ** 2
        assert solution.objective[label] == pytest.approx(objective.value(w), rel=1e-10)
        assert bound <= 1e-3 * solution.objective[label] * (1 + 1e-9)
        assert objective.value(w) - objective.minimum() <= bound + 1e-9
        norm = np.linalg.norm(objective.gradient(w))
        n_larger += abs(norm - solution.gradient_norm[label]) > 1e-6 * norm
    assert n_larger > 0


@pytest.mark.parametrize("shift", [0.0, 0.3, -5.0])
def test_given_sparse_starts(shift, make_problem, objective_of, pay, answers):
    """Near the optimum, above the kink, and far below it."""
    pay()
    problem = make_problem(*texts(1), tol=1e-8, prune=0.0)
    _, ends = solve(problem)
    ends[np.abs(ends) < 0.05] = 0.0
    ends[:, -1] += shift
    solved_before = answers[True]
    solution, _ = solve(problem, Given(sp.csr_array(ends)))
    assert answers[True] > solved_before + 10
    for label, value in enumerate(solution.objective):
        minimum = objective_of(problem, label).minimum()
        assert value == pytest.approx(minimum, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("has_sets", [True, False])
def test_lists_without_room(has_sets, make_problem, objective_of, pay, answers, monkeypatch):
    """A label with more candidates than its list holds reads all rows."""
    monkeypatch.setattr(screening, "_SHORT", 40)
    if has_sets:
        pay()
    X, Y = texts(4)
    problem = make_problem(X, Y, tol=1e-4)
    assert_solved(problem, *solve(problem), objective_of)
    assert (answers[True] > 0) == has_sets


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-4, 0.1, 1.0, 30.0]),
    n=st.integers(8, 60),
    cost=st.sampled_from([0.01, 1.0, 100.0]),
)
def test_no_row_with_a_loss_is_missed(seed, scale, n, cost, fuzzed):
    fuzzed(seed, scale, n, cost)


@pytest.fixture(scope="module")
def fuzzed(make_problem, objective_of):
    def check(seed, scale, n, cost):
        X, Y = texts(seed, n=n, d=12, n_labels=4)
        problem = make_problem(
            X * scale, Y, plus=np.full(4, cost), minus=np.full(4, cost), tol=1e-5, prune=0.02
        )
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"MOST_COMMON": np.inf, "FIRST_ROWS": 1}.items():
                patch.setattr(working_sets, name, value)
            patch.setattr(newton_cg, "FEWEST_ROWS", 0)
            solution, ends = solve(problem)
        for label, w in enumerate(ends):
            value = objective_of(problem, label).value(w)
            assert solution.objective[label] == pytest.approx(value, rel=1e-9, abs=1e-300)

    return check


@pytest.mark.parametrize(
    "constants",
    [{"LABELS_PER_LANE": 1}, {"LABELS_PER_LANE": 3}, {"ENTRIES_PER_LANE": 150}],
    ids=str,
)
def test_a_label_does_not_depend_on_those_beside_it(constants, make_problem, pay):
    pay()
    problem = make_problem(*texts(3), prune=0.01)
    together, ends = solve(problem)
    pay(**constants)
    again, ends_again = solve(problem)
    np.testing.assert_array_equal(ends, ends_again)
    for name in ("indptr", "indices", "values", "intercepts", "objective", "n_iter"):
        np.testing.assert_array_equal(getattr(together, name), getattr(again, name))
    for labels in ([3], [11, 3], [24, 3, 7]):
        _, some = solve(problem, labels=labels)
        np.testing.assert_array_equal(some, ends[labels])


def test_first_sets(make_problem, monkeypatch):
    """By the features whose weights raise the squares of scores most for each non-zero read."""
    rng = np.random.default_rng(0)
    problem = make_problem(*texts(6), weight=0.5 + rng.random(300))
    solver = working_sets.WorkingSetSolver(
        problem, make_screen(problem, 8), 1.0, None, None, None, 8, None
    )
    given = {}

    def listed(by_feature, lists, points, *others):
        given.update(lists=lists, points=points)
        return list_similar_rows(by_feature, lists, points, *others)

    list_similar_rows = working_sets.list_similar_rows
    monkeypatch.setattr(working_sets, "list_similar_rows", listed)
    monkeypatch.setattr(working_sets, "FIRST_POSTINGS", 0.1)
    sums, labels = sum_instances(problem), np.array([3, 24, 7, 11])
    init = INITIALISERS["msi"]()
    prepared = init.prepare(problem, sums)
    batch, _ = solver._begin(100, labels, init, prepared, sums, 0.0)
    X = sp.csr_array(problem.instances.arrays[::-1], shape=problem.instances.shape).toarray()
    frequency = np.count_nonzero(X, axis=0)
    indptr, features, values = given["points"]
    n_left_out = 0
    for c, (place, label) in enumerate(zip(batch.place, batch.label, strict=True)):
        assert label == labels[place - 100]
        own = problem.positives(label)
        total = problem.weight[own] @ X[own]
        start = init.start(prepared, problem, label, np.append(total, problem.weight[own].sum()))
        weights = np.where(total > 0, np.maximum(start[:-1], 0), 0)
        order = np.argsort(-(weights**2) / np.maximum(frequency, 1))
        read = np.cumsum(frequency[order]) <= 0.1 * frequency.sum()
        chosen = order[read & (weights[order] > 0)]
        found = slice(indptr[c], indptr[c + 1])
        n_left_out += np.count_nonzero(weights) - len(chosen)
        assert set(features[found]) == set(chosen)
        np.testing.assert_allclose(values[found], weights[features[found]], rtol=1e-5)
    assert n_left_out > 0


class TestSharedNegatives:
    @pytest.mark.parametrize("above", [1.0, 0.01])
    def test_it_is_the_optimum_for_any_pull(self, above, make_problem, objective_of):
        problem = make_problem(*texts(7), plus=np.full(25, 3.0), minus=np.full(25, 3.0))
        negatives = shared_negatives_of(problem, sum_instances(problem))
        nothing = dataclasses.replace(
            problem,
            y_indptr=np.zeros(2, np.int64),
            y_rows=np.zeros(0, np.int32),
            plus=np.ones(1),
            minus=np.array([3.0]),
        )
        w = np.append(above * negatives.weights, above - 1.0)
        gradient = objective_of(nothing, 0).gradient(w)
        assert np.linalg.norm(gradient[:-1]) < 0.02 * above * np.linalg.norm(negatives.weights)
        force = gradient[-1] - w[-1]
        curvature = float(problem.loss.curvature(0.0))
        assert force == pytest.approx(above * curvature * 3.0 * negatives.weight, rel=1e-9)


def test_ctrl_c_is_heard(make_problem, pay, monkeypatch):
    pay()
    problem, stop = make_problem(*texts()), StopFlag()
    improve = working_sets.WorkingSetSolver._improve

    def improve_and_stop(self, *args):
        stop.set()
        return improve(self, *args)

    monkeypatch.setattr(working_sets.WorkingSetSolver, "_improve", improve_and_stop)
    with pytest.raises(KeyboardInterrupt):
        solve(problem, stop=stop)


def test_weights_of_pairs(pay, answers):
    """Of labels that are solved on working sets, and of those at the kink."""
    pay()
    X, Y = texts()
    of_pair = Y.astype(float)
    of_pair.data[:] = np.random.default_rng(0).choice([0.2, 1.0, 4.0], of_pair.nnz)
    model = OvALinearXC(1.0, tol=1e-6, prune=0).fit(X, Y, pair_weight=of_pair)
    assert answers[True] > 5
    assert answers[False] > 0
    for j in range(25):
        y, weight = Y[:, [j]].toarray()[:, 0], of_pair[:, [j]].toarray()[:, 0]
        weight = np.where(y > 0, weight, 1.0)
        theirs = LinearSVC(dual=False, tol=1e-10, max_iter=10_000).fit(X, y, weight)
        np.testing.assert_allclose(model.coef_[[j]].toarray(), theirs.coef_, atol=1e-4)
        loss = np.maximum(1.0 - (2.0 * y - 1.0) * theirs.decision_function(X), 0.0) ** 2
        squares = (theirs.coef_**2).sum() + theirs.intercept_[0] ** 2
        least = 0.5 * squares + weight @ loss
        assert model.fit_report_["objective"][j] == pytest.approx(least, rel=1e-6)
