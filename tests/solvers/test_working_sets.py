"""Working sets: the optimum of all rows, whichever rows were looked at."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import INITIALISERS, Given, MeanSeparating
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.solvers import newton_cg, working_sets
from sklearn_xc.solvers.crowd import crowd_of
from sklearn_xc.solvers.newton_cg import STATUS_NAMES, solve_block
from sklearn_xc.solvers.problem import PositiveSums, sum_instances, sum_rows
from sklearn_xc.solvers.screening import make_screen
from sklearn_xc.solvers.working_sets import has_rows_enough, labels_that_pay

#: Everything by posting lists, by screens, or as it comes.
ROUTES = {"posting lists": 1.0, "screens": 0.0, "both": 0.05}


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
        small = {
            "FEWEST_ROWS": 1e-9,
            "FIRST_ROWS": (4, 4),
            "LARGEST_SET": 1.0,
            "LARGEST_NEIGHBOURHOOD": 1.0,
        }
        for name, value in {**small, **constants}.items():
            monkeypatch.setattr(working_sets, name, value)

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
        value = objective.value(v)
        assert solution.pruned_objective[label] == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("regularize", [True, False])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge"])
def test_certificates_are_those_of_all_rows(
    loss, regularize, route, make_problem, objective_of, pay, answers
):
    pay(LOOK_POSTINGS=ROUTES[route])
    X, Y = texts()
    rng = np.random.default_rng(0)
    problem = make_problem(
        X, Y, loss=loss, tol=1e-4, regularize_intercept=regularize, prune=0.05,
        weight=0.5 + rng.random(300), plus=0.5 + rng.random(25), minus=0.5 + rng.random(25),
    )  # fmt: skip
    assert_solved(problem, *solve(problem), objective_of)
    assert answers[True] > 10  # of 50: with `ends` and without
    assert answers[False] > 0  # the label with a positive without features


@pytest.mark.parametrize("init", ["msi", "zero", "bias", "ovap"])
def test_the_minimum_is_that_of_all_rows(init, make_problem, objective_of, pay, answers):
    pay()
    problem = make_problem(*texts(1), tol=1e-8, prune=0.0)
    solution, _ = solve(problem, init)
    for label, value in enumerate(solution.objective):
        minimum = objective_of(problem, label).minimum()
        assert value == pytest.approx(minimum, rel=1e-9, abs=1e-12)
    assert answers[True] > 10


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("shift", [0.0, 0.3, -5.0])
def test_given_sparse_starts(shift, route, make_problem, objective_of, pay, answers):
    """Near the optimum, above the kink, and far below it."""
    pay(LOOK_POSTINGS=ROUTES[route])
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


def test_sparse_starts_without_intercepts(make_problem, objective_of, pay, answers):
    pay()
    problem = make_problem(*texts(1), tol=1e-8, prune=0.0)
    starts = sp.random_array((25, 80), density=0.1, rng=0, format="csr")
    solution, _ = solve(problem, Given(starts))
    assert answers[True] > 10
    for label, value in enumerate(solution.objective):
        minimum = objective_of(problem, label).minimum()
        assert value == pytest.approx(minimum, rel=1e-9, abs=1e-12)


def test_float32(make_problem, objective_of, pay, answers):
    pay()
    problem = make_problem(*texts(2, dtype=np.float32), tol=1e-2, prune=0.01)
    assert_solved(problem, *solve(problem), objective_of)
    assert answers[True] > 10


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([1e-4, 0.1, 1.0, 30.0]),
       n=st.integers(8, 60), cost=st.sampled_from([0.01, 1.0, 100.0]),
       route=st.sampled_from(list(ROUTES.values())))  # fmt: skip
def test_no_row_with_a_loss_is_missed(seed, scale, n, cost, route, fuzzed):
    fuzzed(seed, scale, n, cost, route)


@pytest.mark.slow
@settings(max_examples=20_000)
@given(seed=st.integers(0, 2**32), scale=st.floats(1e-6, 1e6), n=st.integers(8, 60),
       cost=st.floats(1e-3, 1e3), route=st.floats(0, 1))  # fmt: skip
def test_no_row_with_a_loss_is_missed_in_many_problems(seed, scale, n, cost, route, fuzzed):
    fuzzed(seed, scale, n, cost, route)


@pytest.fixture(scope="module")
def fuzzed(make_problem, objective_of):
    def check(seed, scale, n, cost, route):
        X, Y = texts(seed, n=n, d=12, n_labels=4)
        problem = make_problem(
            X * scale, Y, plus=np.full(4, cost), minus=np.full(4, cost), tol=1e-5, prune=0.02
        )
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "FEWEST_ROWS": 1e-9, "FIRST_ROWS": (1, 1), "LARGEST_SET": 1.0,
                "LOOK_POSTINGS": route, "LARGEST_NEIGHBOURHOOD": 1.0,
            }.items():  # fmt: skip
                patch.setattr(working_sets, name, value)
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


def test_no_bit_depends_on_n_jobs(pay, answers):
    pay()
    X, Y = texts(4, n_labels=60)
    one, two = (OvALinearXC(n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    assert answers[True] > 20
    np.testing.assert_array_equal(one.coef_.toarray(), two.coef_.toarray())
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    assert one.coef_.has_canonical_format


def test_what_pruning_costs_is_what_it_costs_without_working_sets(make_problem, pay, answers):
    problem = make_problem(*texts(5), tol=1e-9, prune=0.3)
    expected, _ = solve(problem)
    assert answers[True] == 0
    pay()
    found, _ = solve(problem)
    assert answers[True] > 10
    best, order = np.sort(found.sample.best), np.argsort(found.sample.place, kind="stable")
    np.testing.assert_allclose(best, np.sort(expected.sample.best), atol=1e-5)
    np.testing.assert_array_equal(found.sample.n_above, expected.sample.n_above)
    order_of_expected = np.lexsort((expected.sample.of_positives[0], expected.sample.place))
    order = np.lexsort((found.sample.of_positives[0], found.sample.place))
    np.testing.assert_array_equal(
        found.sample.place[order], expected.sample.place[order_of_expected]
    )
    np.testing.assert_allclose(
        found.sample.of_positives[:, order],
        expected.sample.of_positives[:, order_of_expected], atol=1e-5,
    )  # fmt: skip


class TestWhereTheyPay:
    def pays(self, problem):
        labels = np.arange(problem.n_labels)
        return labels_that_pay(problem, make_screen(problem, 4), labels)

    def test_with_many_rows(self, make_problem, monkeypatch):
        problem = make_problem(*texts())
        assert not self.pays(problem).any()
        monkeypatch.setattr(working_sets, "FEWEST_ROWS", 120)
        counts = np.diff(problem.y_indptr)
        rare = 120 * (1 + np.log2(counts)) <= 300
        np.testing.assert_array_equal(self.pays(problem), rare)
        assert 0 < rare.sum() < len(rare)

    def test_there_must_be_more_rows_where_they_are_long(self):
        """As many times more as they have times ten non-zeros."""
        counts = np.array([1, 2, 4])
        rows = working_sets.FEWEST_ROWS * (1 + np.log2(counts))
        for n in rows.astype(int):
            enough = has_rows_enough(n, 10 * n, counts)
            np.testing.assert_array_equal(enough, rows <= n)
            assert has_rows_enough(5 * n, 50 * 5 * n, counts).tolist() == enough.tolist()
            assert not has_rows_enough(5 * n - 5, 50 * (5 * n - 5), counts)[enough][-1]

    def test_not_for_labels_on_no_row_or_on_most(self, make_problem, pay):
        pay()
        X, Y = texts()
        Y = Y.toarray()
        Y[:, 0], Y[:150, 1], Y[:, 2] = 0, 1, 1
        pays = self.pays(make_problem(X, sp.csr_array(Y)))
        assert not pays[:3].any()
        assert pays[3:].all()

    @pytest.mark.parametrize(
        "given", [{"loss": "logistic"}, {"fit_intercept": False}, {"dense": True}], ids=str
    )
    def test_not_where_rows_are_never_without_a_loss(self, given, make_problem, pay):
        pay()
        assert not self.pays(make_problem(*texts(), **given)).any()

    def test_not_with_negative_entries(self, make_problem, objective_of, pay, answers):
        pay()
        X, Y = texts(6)
        X.data[::7] *= -1
        problem = make_problem(X, Y, tol=1e-4, prune=0.05)
        assert not self.pays(problem).any()
        assert_solved(problem, *solve(problem), objective_of)
        assert answers == {True: 0, False: 0}

    def test_not_where_somebody_watches(self, make_problem, pay, answers):
        pay()
        problem = make_problem(*texts())
        sums, steps = sum_instances(problem), []
        prepared = MeanSeparating().prepare(problem, sums)
        labels = np.arange(problem.n_labels)
        solve_block(problem, sums, MeanSeparating(), prepared, labels, 4, observe=steps.append)
        assert steps
        assert answers == {True: 0, False: 0}


class TestCrowd:
    @pytest.mark.parametrize("above", [1.0, 0.01])
    def test_it_is_the_optimum_for_any_pull(self, above, make_problem, objective_of):
        problem = make_problem(*texts(7), plus=np.full(25, 3.0), minus=np.full(25, 3.0))
        crowd = crowd_of(problem, sum_instances(problem))
        nothing = dataclasses.replace(
            problem, y_indptr=np.zeros(2, np.int64), y_rows=np.zeros(0, np.int32),
            plus=np.ones(1), minus=np.array([3.0]),
        )  # fmt: skip
        w = np.append(above * crowd.weights, above - 1.0)
        gradient = objective_of(nothing, 0).gradient(w)
        assert np.linalg.norm(gradient[:-1]) < 0.02 * above * np.linalg.norm(crowd.weights)
        force = gradient[-1] - w[-1]
        curvature = float(problem.loss.curvature(0.0))
        assert force == pytest.approx(above * curvature * 3.0 * crowd.weight, rel=1e-9)

    def test_it_is_found_once(self, make_problem, monkeypatch):
        problem = make_problem(*texts(7))
        sums = sum_instances(problem)
        first = crowd_of(problem, sums)
        monkeypatch.setattr(newton_cg, "solve_block", None)
        assert crowd_of(problem, sums) is first

    def test_labels_held_at_the_kink_start_where_it_holds_them(self, make_problem, pay, answers):
        """The steps that such a label takes; from the start for the others there are more."""
        X, Y = texts(8, n=600)
        empty = np.flatnonzero(np.diff(X.indptr) == 0)
        Y = np.zeros((600, 2), np.int8)
        Y[empty[:2], [0, 1]] = 1
        problem = make_problem(X, sp.csr_array(Y), tol=1e-3, prune=0.01)
        without, _ = solve(problem)
        pay()
        found, _ = solve(problem)
        assert answers == {True: 0, False: 4}
        assert (found.n_iter < without.n_iter).all()
        np.testing.assert_allclose(found.objective, without.objective, rtol=1e-5)


@pytest.mark.parametrize(("share", "rows"), [(1e-6, 5), (0.1, None), (9.0, 40)])
def test_the_more_a_look_costs_the_larger_first_sets_are(
    make_problem, pay, monkeypatch, share, rows
):
    pay(FIRST_SHARE=share, FIRST_ROWS=(5, 40))
    problem = make_problem(*texts())
    if rows is None:
        rows = np.sqrt(share * len(problem.instances.arrays[-1]))
        assert 5 < rows < 40
    wanted, find = [], working_sets.list_similar_rows

    def noted_find(*args):
        labels, n_wanted = args[6], args[12]
        counts = np.diff(problem.y_indptr)[labels]
        wanted.append((n_wanted, (rows * (1 + np.log2(counts))).astype(int)))
        return find(*args)

    monkeypatch.setattr(working_sets, "list_similar_rows", noted_find)
    solve(problem)
    assert wanted
    for found, expected in wanted:
        np.testing.assert_array_equal(found, expected)


def test_a_look_that_left_out_rows_is_never_the_last(make_problem, pay, monkeypatch):
    """However little a label has moved since: what was left out may have a loss."""
    pay(FIRST_ROWS=(20, 20), FIRST_SLACK=9.0, FIRST_TIMES=0.05, SAMPLE_MORE=3000, LEAST_SLACK=1e-6)
    problem, n_cut = make_problem(*texts(3, n=3000, d=400)), 0
    keep, look = working_sets.keep_highest, working_sets.WorkingSetSolver._look
    cuts = []

    def noted_keep(*args):
        cuts.append(keep(*args))
        return cuts[-1]

    def noted_look(self, batch):
        nonlocal n_cut
        places = batch.place
        found = look(self, batch)
        goes_on = dataclasses.replace(
            found[0], is_tight=np.ones(len(found[0]), bool), rise=np.zeros(len(found[0]))
        )
        is_cut = np.isin(goes_on.place, places[cuts[-1]])
        n_cut += (is_cut & (goes_on.intercept < self.kink)).sum()
        assert not (is_cut & self._hardly_moved(goes_on)).any()
        return found

    monkeypatch.setattr(working_sets, "keep_highest", noted_keep)
    monkeypatch.setattr(working_sets.WorkingSetSolver, "_look", noted_look)
    solve(problem)
    assert n_cut > 0


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


def test_few_steps_are_told(make_problem, pay):
    pay()
    problem = make_problem(*texts(9), max_iter=1, tol=1e-6)
    solution, ends = solve(problem)
    assert (solution.status == STATUS_NAMES.index("max_iter")).any()
    assert np.isfinite(ends).all()
    assert (solution.n_iter <= 1).all()


def test_batches_take_and_join(pay, make_problem):
    """`take` and `_joined` are each other's inverse, whatever the lengths of the lists."""
    rng = np.random.default_rng(0)
    m = 9

    def lists(shift, dtype):
        lengths = rng.integers(0, 4, m)
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        return indptr, rng.integers(0, 99, indptr[-1] + shift * m).astype(dtype)

    row_indptr, rows = lists(0, np.int32)
    indptr, stand = lists(1, np.float32)
    features = rng.integers(0, 99, indptr[-1]).astype(np.int32)
    seen_indptr, seen = lists(1, np.float32)
    seen_features = rng.integers(0, 99, seen_indptr[-1]).astype(np.int32)
    pools = {
        "row_indptr": row_indptr, "rows": rows, "indptr": indptr, "features": features,
        "stand": stand, "seen_indptr": seen_indptr, "seen_features": seen_features, "seen": seen,
    }  # fmt: skip
    others = {
        field.name: rng.random(m)
        for field in dataclasses.fields(working_sets.Batch)
        if field.name not in pools
    }
    batch = working_sets.Batch(**pools, **others)
    which = rng.random(m) < 0.5
    parts = batch.take(which), batch.take(~which)
    joined = working_sets._joined(list(parts))
    order = np.argsort(np.concatenate([np.flatnonzero(which), np.flatnonzero(~which)]))
    for c in range(m):
        one, other = batch.take(np.arange(m) == c), joined.take(np.arange(m) == order[c])
        for field in dataclasses.fields(working_sets.Batch):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
    assert math.isclose(batch.take(which).intercept.sum() + batch.take(~which).intercept.sum(),
                        batch.intercept.sum())  # fmt: skip


@pytest.mark.parametrize("init", ["msi", "zero", "bias", "ovap"])
def test_mixtures_are_the_starts(init, make_problem):
    problem = make_problem(*texts(10), weight=np.linspace(0.5, 2, 300))
    sums, initialiser = sum_instances(problem), INITIALISERS[init]()
    prepared = initialiser.prepare(problem, sums)
    labels = [3, 8, 24]
    p = np.array([sum_rows(problem, problem.positives(label)) for label in labels])
    squares = np.einsum("ij,ij->i", p[:, :-1], p[:, :-1])
    of_all = PositiveSums(p[:, -1], squares, p[:, :-1] @ sums.total[:-1] / sums.weight)
    of_positives, of_shared, shared = initialiser.mixtures(prepared, problem, of_all)
    for c, label in enumerate(labels):
        start = initialiser.start(prepared, problem, label, p[c])
        mixed = of_positives[c] * p[c] + of_shared[c] * shared
        np.testing.assert_allclose(mixed, start, rtol=1e-9, atol=1e-12)
