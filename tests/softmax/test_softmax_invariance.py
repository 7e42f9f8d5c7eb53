"""The u of the pairs, and many classes and rows, whatever the order of rows and n_jobs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)

STEPS = {
    "umax": (SoftmaxUMax, {"n_negatives": 3}),
    "umax, ridge": (SoftmaxUMax, {"n_negatives": 1, "alpha": 0.3, "average": True}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 1}),
    "implicit, ridge": (ImplicitSoftmaxSGD, {"n_negatives": 3, "alpha": 0.3, "decay": "1/t"}),
    "umax, hard": (SoftmaxUMax, {"n_negatives": 1, "n_hard_negatives": 2, "alpha": 0.1}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_negatives": 2, "n_hard_negatives": 3}),
    "batches": (ImplicitSoftmaxSGD, {"n_negatives": 2, "batch_size": 4, "alpha": 0.1}),
    "early stopping": (
        ImplicitSoftmaxSGD, {"early_stopping": True, "n_iter_no_change": 2, "average": True}
    ),
}  # fmt: skip
PROMISED = ("coef_", "intercept_", "u_", "loss_curve_", "log_loss_")
# Early stopping warns where the last of a few epochs is the best.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")


def fit(step, X, y, sample_weight=None, **parameters):
    estimator, own = STEPS[step]
    parameters = {"learning_rate": 1.0, "max_iter": 4, "random_state": 0, **own, **parameters}
    return estimator(**parameters).fit(X, y, sample_weight)


def assert_same_bytes(a, b, names=(*PROMISED, "learning_rate_", "n_iter_", "classes_")):
    for name in names:
        p, q = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        assert p.dtype == q.dtype
        assert p.shape == q.shape
        assert p.tobytes() == q.tobytes(), name


@pytest.fixture(params=STEPS)
def step(request):
    return request.param


class TestThreads:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize(
        ("batch_size", "n_negatives"), [(32, 40), (7, 33), (500, 64), (32, 1000)]
    )
    def test_mini_batches(self, batch_size, n_negatives, dtype, make_xy):
        """Blocks of classes that are full and not, and a batch of everything."""
        X, Y = make_xy(n=150, n_labels=70)
        X = X.astype(dtype)
        own = {"batch_size": batch_size, "n_negatives": n_negatives, "alpha": 0.1, "max_iter": 2}
        alone = fit("batches", X, Y, n_jobs=1, **own)
        alone_again = fit("batches", X, Y, n_jobs=1, **own).partial_fit(X, Y)
        for n_jobs in (2, 3, 4, 8):
            together = fit("batches", X, Y, n_jobs=n_jobs, **own)
            assert_same_bytes(together, alone)
            together.partial_fit(X, Y)
            assert_same_bytes(together, alone_again, ("coef_", "intercept_", "u_", "loss_curve_"))

    def test_more_rows_than_one_task_scores(self, make_xy):
        """Evaluation and prediction are cut at 512 rows."""
        X, Y = make_xy(n=1300)
        alone, two = (fit("implicit", X, Y, n_jobs=n_jobs, max_iter=2) for n_jobs in (1, 2))
        assert_same_bytes(alone, two)
        warm = [
            m.set_params(warm_start=True, early_stopping=True, validation_fraction=0.6).fit(X, Y)
            for m in (alone, two)
        ]
        assert_same_bytes(*warm)
        for method in ("predict_log_proba", "decision_function", "predict"):
            a, b = (getattr(m, method)(X) for m in warm)
            assert a.data.tobytes() == b.data.tobytes()
            assert a.indices.tobytes() == b.indices.tobytes()
        # A row's answer does not depend on the rows beside it.
        few = alone.predict_log_proba(X[600:603])
        assert few.data.tobytes() == alone.predict_log_proba(X)[600:603].data.tobytes()


class TestRows:
    def test_the_order_of_the_rows(self, step, xy):
        X, Y = xy
        weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], 120)
        order = np.random.default_rng(0).permutation(120)
        for rate in ("auto", 1.0):
            a = fit(step, X, Y, weight, learning_rate=rate)
            b = fit(step, X[order], Y[order], weight[order], learning_rate=rate)
            assert_same_bytes(
                a, b, ("coef_", "intercept_", "loss_curve_", "log_loss_", "learning_rate_")
            )
        u = {(i, k): value for (i, k), value in zip(a.u_index_.tolist(), a.u_, strict=True)}
        again = {(order[i], k): v for (i, k), v in zip(b.u_index_.tolist(), b.u_, strict=True)}
        assert u == again

    def test_weights_that_are_all_equal_scale_the_ridge(self, xy):
        a = fit("implicit, ridge", *xy, np.full(120, 4.0), alpha=4.0)
        b = fit("implicit, ridge", *xy, alpha=1.0)
        assert_same_bytes(a, b, ("coef_", "intercept_", "u_", "loss_curve_", "log_loss_"))

    def test_equal_rows_share_their_u(self, xy):
        X, Y = xy
        model = fit("implicit", sp.vstack([X, X]).tocsr(), sp.vstack([Y, Y]).tocsr())
        np.testing.assert_array_equal(model.u_[: Y.nnz], model.u_[Y.nnz :])
        assert_same_bytes(
            model, fit("implicit", X, Y), ("coef_", "intercept_", "loss_curve_", "log_loss_")
        )


SMALL = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(
    seed=SMALL,
    n=st.integers(4, 60),
    n_classes=st.integers(2, 6),
    step=st.sampled_from(list(STEPS)),
    kind=st.sampled_from(["classes", "dense", "sparse"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    options=st.sampled_from(
        [{}, {"sampling": "uniform"}, {"init": "zero"}, {"multilabel": "first"}, {"average": True}]
    ),
)
def test_any_order_of_weighted_rows(seed, n, n_classes, step, kind, dtype, options):
    """Many rows are equal, their weights are no round numbers, and zeros of both signs are stored.

    The sum of three such weights depends on their order.
    """
    rng = np.random.default_rng(seed)
    dense = rng.choice([0.0, -0.0, 1.0, -1.0, 0.3], (n, 2)).astype(dtype)
    X = sp.csr_array((dense.ravel(), np.tile([0, 1], n), np.arange(0, 2 * n + 1, 2)), (n, 2))
    assert X.nnz == dense.size
    Y = rng.random((n, n_classes)) < 0.4
    Y[:2, :2] = np.eye(2)
    y = {"classes": Y.argmax(axis=1), "dense": Y, "sparse": sp.csr_array(Y)}[kind]
    weight = rng.uniform(0.1, 3.0, n) * rng.choice([0.0, 1.0, 1.0, 1.0, 1e3], n)
    weight[:2] = 0.7
    if step == "early stopping" and len(np.unique(dense[weight > 0], axis=0)) < 3:
        step = "implicit"  # nothing can be held out
    expected = fit(step, X, y, weight, max_iter=2, **options)
    labels = sp.csr_array(expected.predict(X)) if kind != "classes" else expected.predict(X)
    scores = expected.predict_topk(X, n_classes)[1]
    for _ in range(3):
        order = rng.permutation(n)
        model = fit(step, X[order], y[order], weight[order], max_iter=2, **options)
        assert_same_bytes(model, expected, ("coef_", "intercept_", "loss_curve_", "log_loss_"))
        assert model._labelled.tobytes() == expected._labelled.tobytes()
        u = {(i, k): value for (i, k), value in zip(model.u_index_.tolist(), model.u_, strict=True)}
        back = np.argsort(order)
        for (i, k), value in zip(expected.u_index_.tolist(), expected.u_, strict=True):
            assert u[back[i], k] == value
        again = sp.csr_array(model.predict(X)) if kind != "classes" else model.predict(X)
        assert not (again != labels).sum()
        np.testing.assert_array_equal(model.predict_topk(X, n_classes)[1], scores)
