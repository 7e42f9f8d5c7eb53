"""Fixtures of all tests: compiled code cached by its sources, small data, slow references."""
# ruff: noqa: E402 (the environment is set before numpy and the kernels are imported)

import os

# One thread per process: the machine's cores belong to pytest-xdist. Before numpy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import _thread
import contextlib
import dataclasses
import errno
import functools
import getpass
import re
import signal
import tempfile
from pathlib import Path

import hypothesis
import numba
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from sklearn_xc._compile.jit import kernel, source_checksum

# The cache folder is keyed by the sources that are compiled, so that no test ever runs old code. It
# is shared by the workers of pytest-xdist and by the processes that tests start.
if "NUMBA_CACHE_DIR" not in os.environ:
    _folder = Path(tempfile.gettempdir(), f"sklearn_xc-numba-{getpass.getuser()}")
    os.environ["NUMBA_CACHE_DIR"] = str(_folder / source_checksum()[:16])
    numba.config.reload_config()

from sklearn_xc._input.data import CsrRows, DenseRows
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled
from sklearn_xc.one_vs_all.problem import OneVsAllProblem, sum_instances
from sklearn_xc.one_vs_all.solver.newton_cg import solve_block
from sklearn_xc.one_vs_all.starts import INITIALISERS, Initialiser

# --doctest-modules would import those of several folders as tests, under the same name.
collect_ignore_glob = ["*conftest.py"]

# The first call of a kernel compiles it, hence no deadline; the same examples on every run.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


#: Tests that compile the same kernels, by words in their names. The second family has all others.
_FAMILIES = (
    r"OvALinear|one_vs_all|^sklearn_xc/|bench_|/test_topk|ThresholdTuner|TopKCalibrator|"
    r"/(command_line|ensemble|hostile|inspection|integrations|model_selection|text)/",
    r"",
    r"[Ss]oftmax|Stacking|test_stacking",
    r"Decomp|decomp|/search/",
    r"NGAME|ngame|/embedding/",
)


def pytest_collection_modifyitems(items):
    """Put tests together that compile the same kernels: see `pytest_xdist_make_scheduler`."""

    def family(item):
        name = item.nodeid
        found = [i for i, words in enumerate(_FAMILIES) if words and re.search(words, name)]
        return found[-1] if found else 1

    items.sort(key=family)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker a stretch of the tests, so that two do not compile the same kernels."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@functools.cache
def _compiled_loss(loss, name):
    """Return a function of a loss, given by its name or itself."""
    loss = LOSSES[loss]() if isinstance(loss, str) else loss
    return kernel(getattr(compiled(loss), name))


@functools.cache
def _compiled_label_set_loss(loss):
    gradient = LABEL_SET_LOSSES[loss]().gradient

    @kernel
    def evaluate(scores, n_positive, parameters, out, work):
        return gradient(scores, n_positive, scores.shape[0], parameters, out, work)

    return evaluate


def _evaluate_label_set_loss(loss, scores, n_positive, smoothing=1.0):
    scores = np.asarray(scores, np.float64)
    out, work = np.full(len(scores), np.nan), np.full(2 * len(scores), np.nan)
    evaluate = _compiled_label_set_loss(loss)
    parameters = MaxMargin(smoothing).parameters if loss == "margin" else ()
    value, floor = evaluate(scores, n_positive, parameters, out, work)
    return value, out, floor


@dataclasses.dataclass(frozen=True)
class DenseObjective:
    """Dense, slow reference objective of one label.

    `positive` is a mask over the rows of the dense `X`; `plus` and `minus` include C.
    """

    X: np.ndarray
    positive: np.ndarray
    loss: str = "squared_hinge"
    plus: float = 1.0
    minus: float = 1.0
    weight: np.ndarray | float = 1.0
    fit_intercept: bool = True

    def __post_init__(self):
        constant = np.full((len(self.X), 1), float(self.fit_intercept))
        set_ = object.__setattr__
        set_(self, "rows", np.hstack([self.X, constant]).astype(np.float64))
        set_(self, "signs", np.where(self.positive, 1.0, -1.0))
        set_(self, "factors", self.weight * np.where(self.positive, self.plus, self.minus))
        ridge = np.ones(self.rows.shape[1])
        ridge[-1] = self.fit_intercept
        set_(self, "ridge", ridge)

    def _loss(self, name, w):
        function = np.vectorize(_compiled_loss(self.loss, name), otypes=[np.float64])
        return function(self.signs * (self.rows @ w))

    def value(self, w):
        return 0.5 * (self.ridge * w * w).sum() + (self.factors * self._loss("value", w)).sum()

    def gradient(self, w):
        return self.ridge * w + self.rows.T @ (self.factors * self.signs * self._loss("slope", w))

    def hessian(self, w):
        curvatures = self.factors * self._loss("curvature", w)
        return np.diag(self.ridge) + (self.rows.T * curvatures) @ self.rows

    def minimum(self):
        """Return the smallest value that scipy finds: at or above the true minimum."""
        found = scipy.optimize.minimize(
            self.value,
            np.zeros(self.rows.shape[1]),
            jac=self.gradient,
            hess=self.hessian,
            method="trust-exact",
            options={"gtol": 1e-9, "maxiter": 500},
        )
        return found.fun


def _make_problem(
    X, Y, *, dtype=np.float64, loss="squared_hinge", tol=0.01, dense=False, **parameters
):
    X, Y = sp.csr_array(X, dtype=dtype), sp.csc_array(Y)
    X.sort_indices()
    Y.sort_indices()
    if dense:
        instances = DenseRows(X.toarray())
    else:
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        instances = CsrRows(indptr, indices, X.data, X.shape)
    n, n_labels = Y.shape
    counts = np.diff(Y.indptr)
    record = {
        "instances": instances,
        "columns": np.arange(X.shape[1], dtype=np.int32),
        "y_indptr": Y.indptr.astype(np.int64),
        "y_rows": Y.indices.astype(np.int32),
        "weight": np.ones(n),
        "plus": np.ones(n_labels),
        "minus": np.ones(n_labels),
        "relative_tolerance": tol * np.maximum(1, np.minimum(counts, n - counts)) / n,
        "relative_gap": np.inf,
        "margin_loss": LOSSES[loss](),
        "fit_intercept": True,
        "max_iter": 200,
        "prune": 0.0,
        **parameters,
    }
    record["weight"] = np.asarray(record["weight"], dtype)
    return OneVsAllProblem(**record)


def _objective_of(problem, label):
    instances = problem.instances
    if isinstance(instances, DenseRows):
        X = instances.values
    else:
        indptr, indices, data = instances.arrays
        X = sp.csr_array((data, indices, indptr), shape=instances.shape).toarray()
    positive = np.zeros(problem.n_samples, bool)
    positive[problem.positives(label)] = True
    return DenseObjective(
        X.astype(np.float64),
        positive,
        problem.margin_loss,
        problem.plus[label],
        problem.minus[label],
        problem.weight.astype(np.float64),
        problem.fit_intercept,
    )


def _solve(problem, init="msi", n_lanes=4, labels=None, observe=None):
    initialiser = init if isinstance(init, Initialiser) else INITIALISERS[init]()
    sums = sum_instances(problem)
    prepared = initialiser.prepare(problem, sums)
    labels = np.arange(problem.n_labels) if labels is None else np.asarray(labels)
    solution = solve_block(problem, sums, initialiser, prepared, labels, n_lanes, observe=observe)
    shape = (len(labels), problem.n_features)
    coef = sp.csr_array((solution.values, solution.indices, solution.indptr), shape=shape)
    return solution, np.hstack([coef.toarray(), solution.intercepts[:, None]])


def _make_xy(n=120, d=40, n_labels=15, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.15, format="csr", random_state=rng)
    X.data = rng.normal(size=X.nnz)
    topics = sp.random_array((d, n_labels), density=0.2, random_state=rng, data_sampler=rng.normal)
    scores = (X @ topics).toarray() + 0.3 * rng.normal(size=(n, n_labels))
    Y = (scores > np.quantile(scores, 0.9, axis=0)).astype(np.float64)
    X, Y = X.tolil(), sp.lil_array(Y)
    X[3] = 0  # an empty instance
    Y[:, 4] = 0  # a label without positives
    Y[:, 7] = 1  # a label on every instance
    Y[:, 9] = Y[:, [2]]  # identical labels: ties
    Y[5] = 0  # an instance without labels, except for 7
    Y[5, 7] = 1
    return X.tocsr(), Y.tocsr()


def _blank_counts(X, Y):
    """Return the expected count of each label if no instance had features."""
    X, Y = sp.csr_array(X), sp.csr_array(Y).toarray()
    blank, n = X.count_nonzero(axis=1) == 0, len(Y)
    added = 20 + 0.02 * n
    mean = (Y[blank].sum(axis=0) + added * Y.mean(axis=0)) / (blank.sum() + added)
    return n * mean


@pytest.fixture(scope="session")
def blank_counts():
    """Return a function of X and Y: expected label counts of instances without features."""
    return _blank_counts


@pytest.fixture
def interrupt_main():
    """Return a function that interrupts the main thread like Ctrl-C.

    In background processes (`pytest &`, nohup, some CI runners) SIGINT is ignored at first.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield _thread.interrupt_main
    signal.signal(signal.SIGINT, before)


def _changed(name, at, value, kind="csr"):
    """Return a function of a sparse matrix that puts a number into one of its index arrays."""

    def change(M):
        M = M.asformat(kind)
        arrays = {"row": 0, "col": 1}
        array = M.coords[arrays[name]] if name in arrays else getattr(M, name)
        array[at] = value(M)
        return M

    return change


def _csr_of_too_few_entries(M):
    M.indices = M.indices[:-1]
    return M


def _lil_of_another_column(M):
    M = M.tolil()
    M.rows[0], M.data[0] = [M.shape[1]], [1]
    return M


_MALFORMED = {
    "column": _changed("indices", -1, lambda M: M.shape[1]),
    "negative column": _changed("indices", 0, lambda M: -1),
    "falling pointers": _changed("indptr", 1, lambda M: M.nnz + 5),
    "too few entries": _csr_of_too_few_entries,
    "row of csc": _changed("indices", -1, lambda M: M.shape[0], "csc"),
    "column of coo": _changed("col", -1, lambda M: M.shape[1], "coo"),
    "column of lil": _lil_of_another_column,
}


@pytest.fixture(params=_MALFORMED)
def malformed(request):
    """Return a function of a sparse matrix: a copy in some format with wrong index arrays."""
    return lambda M: _MALFORMED[request.param](sp.csr_array(M, copy=True))


@pytest.fixture
def xy():
    """Return X (120, 40) and Y (120, 15), sparse, with empty, full and equal rows and columns."""
    return _make_xy()


@pytest.fixture(scope="session")
def make_xy():
    """Return a function that makes such data in other sizes."""
    return _make_xy


@pytest.fixture(scope="session")
def compiled_loss():
    """Return a function that compiles one function of a loss, both given by name.

    Uncompiled, the losses compute in float32: that is what np.float32(1) + 0.5 gives in Python.
    """
    return _compiled_loss


@pytest.fixture(scope="session")
def dense_objective():
    """Return the class of the dense reference objective."""
    return DenseObjective


@pytest.fixture(scope="session")
def make_problem():
    """Return a function that writes a solver's frozen problem from X and Y."""
    return _make_problem


@pytest.fixture(scope="session")
def objective_of():
    """Return a function that gives the dense objective of a label of a problem."""
    return _objective_of


@pytest.fixture(scope="session")
def solve():
    """Return a function that solves a problem: BlockSolution, and dense weights (m, d + 1)."""
    return _solve


@pytest.fixture(scope="session")
def label_set_loss():
    """Return a function of a loss by name, scores, the number of positives and the smoothing.

    It returns the loss, its gradient, and the floor below which negatives do not matter.
    """
    return _evaluate_label_set_loss


@pytest.fixture
def full_disk():
    """Return a context in which the disk is full after some files; it yields the list of tries."""

    @contextlib.contextmanager
    def context(after):
        plain, tried = os.fsync, []

        def sync(number):
            tried.append(number)
            if len(tried) > after:
                raise OSError(errno.ENOSPC, "No space left on device")
            plain(number)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", sync)
            yield tried

    return context
