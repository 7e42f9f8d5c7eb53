"""The two loops that most of a fit is spent in, on the made X of 10,000 rows and 500,653 non-zeros.

A screen of 1.3 ms for 64 lanes is 2.6 ns per non-zero, and 0.04 ns per non-zero and lane. The
Hessian products are of a label with 300 active rows, from the matrix itself and from the compact
copy.
"""

import numba
import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.kernels.compiling.jit import FASTMATH
from sklearn_xc.kernels.one_vs_all.newton_direction import direction_functions
from sklearn_xc.kernels.one_vs_all.screen import round_points, screen_kernel
from sklearn_xc.kernels.rows import csr_rows
from sklearn_xc.solvers.problem import rounded

from ._common import N_FEATURES, N_SAMPLES, made_data

N_ACTIVE, N_PRODUCTS = 300, 100

# Not the package's `kernel`, whose cache on disk would not notice an edit of this file.
jit = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")
add_loss_product = direction_functions(csr_rows).add_loss_product
row_dot_double, compact = csr_rows.row_dot_double, jit(csr_rows.compact)


@jit
def score_rows(X, points, out):
    """One lane at a time, in float64: what the screen does without, and its exact answer."""
    for k in range(points.shape[0]):
        for i in range(out.shape[0]):
            out[i, k] = row_dot_double(X, np.uint32(i), points[k]) + points[k, -1]


@jit
def multiply_by_hessian(X, rows, curvatures, vector, out, n_products):
    """As conjugate gradients do."""
    for _ in range(n_products):
        add_loss_product(X, rows, curvatures, 1.0, vector, out)


def csr_arrays(X, dtype):
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(dtype)


class Screen:
    """Trial points as those of a fit: one row in a hundred is above the kink."""

    params = ([16, 32, 64], ["float32", "float64"])
    param_names = ("n_lanes", "dtype")
    rounds, warmup_time = 1, 0.2

    def setup_cache(self):
        X, _ = made_data()
        self.setup(X, 16, "float64")
        self.time_screen(X, 16, "float64")
        self.time_one_lane_at_a_time(X, 16, "float64")
        for k in range(16):
            listed = self.rows[k, : self.counts[k]]
            assert np.isin(np.flatnonzero(self.scores[:, k] > -1), listed).all()
        return X

    def setup(self, X, n_lanes, dtype):
        self.csr = csr_arrays(X, dtype)
        rng = np.random.default_rng(0)
        self.points = 0.3 * rng.standard_normal((n_lanes, N_FEATURES + 1)).astype(dtype)
        self.points[:, -1] = -1.7
        self.offsets = np.arange(n_lanes) * (N_FEATURES + 1)
        self.norm2 = (self.points[:, :-1].astype(np.float64) ** 2).sum(axis=1)
        self.block = np.empty((N_FEATURES, n_lanes), np.int16)
        self.to_pass = np.empty(n_lanes)
        self.rounded = rounded(CsrRows(*self.csr, X.shape))
        self.rows = np.empty((n_lanes, N_SAMPLES), np.int32)
        self.scores = np.empty((N_SAMPLES, n_lanes))
        self.time_round_points(X, n_lanes, dtype)
        self.time_screen(X, n_lanes, dtype)
        self.time_one_lane_at_a_time(X, n_lanes, dtype)

    def time_round_points(self, X, n_lanes, dtype):
        round_points(
            self.points.reshape(-1), self.offsets, self.norm2, -1.0, self.block, self.to_pass
        )

    def time_screen(self, X, n_lanes, dtype):
        self.counts = np.zeros(n_lanes, np.int64)
        screen_kernel(n_lanes)(
            self.rounded, self.block, self.to_pass, 0, N_SAMPLES, self.rows, self.counts
        )

    def time_one_lane_at_a_time(self, X, n_lanes, dtype):
        score_rows(self.csr, self.points, self.scores)

    def track_listed_per_row_above_the_kink(self, X, n_lanes, dtype):
        """1 is a screen that lists no row in vain."""
        return self.counts.sum() / (self.scores > -1).sum()


class HessianProduct:
    """100 products with the Hessian of a label."""

    params = (["matrix", "copy"], ["float32", "float64"])
    param_names = ("rows", "dtype")
    rounds, warmup_time = 1, 0.2

    def setup_cache(self):
        return made_data()[0]

    def setup(self, X, where, dtype):
        rng = np.random.default_rng(0)
        self.csr = csr_arrays(X, dtype)
        self.rows = np.sort(rng.choice(N_SAMPLES, N_ACTIVE, replace=False)).astype(np.int32)
        n_local = N_FEATURES
        if where == "copy":
            position = np.full(N_FEATURES, -1, np.int32)
            touched = np.empty(N_FEATURES + 1, np.int32)
            room = csr_rows.make_copy(N_ACTIVE, X[self.rows].nnz, np.dtype(dtype))
            n_local = compact(self.csr, self.rows, position, touched, room)
            self.csr, self.rows = room, np.arange(N_ACTIVE, dtype=np.int32)
        self.curvatures = rng.random(N_ACTIVE)
        self.vector = rng.standard_normal(n_local + 2).astype(dtype)
        self.out = np.empty_like(self.vector)
        self.time_products(X, where, dtype)

    def time_products(self, X, where, dtype):
        multiply_by_hessian(self.csr, self.rows, self.curvatures, self.vector, self.out, N_PRODUCTS)
