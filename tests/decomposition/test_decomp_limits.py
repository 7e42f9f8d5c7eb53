"""Where training ends: parameters, weights of instances, divergence, overflow."""

import numpy as np
import pytest

from sklearn_xc.decomposition.gradients import MessagePassing
from sklearn_xc.decomposition.losses import MaxMargin
from sklearn_xc.search import ProductIndex

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

ANSWERS = ("predict", "predict_topk", "decision_function", "embed")


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"gradient": MessagePassing(n_blocks=0)}, "n_blocks, .* must be an integer .* Got 0"),
            ({"gradient": MessagePassing(n_rounds=10**12)}, "n_rounds must be .* Got 10{12}"),
            ({"gradient": MessagePassing(absent=0)}, "absent must be 'left_out' or 'zero'. Got 0"),
            ({"gradient": MessagePassing(threshold=-1)}, "threshold must be None or .* Got -1"),
            (
                {"gradient": MessagePassing(n_blocks=7)},
                "at most one a column, .* from 1 to 6. Got 7",
            ),
            (
                {"gradient": MessagePassing(), "index": "product"},
                "index must have exact scores.* Got ProductIndex",
            ),
            ({"gradient": MessagePassing}, "must be one of 'decomp_mips', .* Got the class M"),
            ({"index": ProductIndex}, "index must be one of 'exact', .* Got the class P"),
            ({"loss": MaxMargin}, "loss must be one of 'margin', .* Got the class M"),
        ],
        ids=str,
    )
    def test_clashes(self, parameters, message, make, xy):
        model = make(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(*xy)
        assert not [name for name in vars(model) if name.endswith("_")]


class TestDivergence:
    """Gradients are bounded: it takes rates at which float32 overflows."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        return 10 * rng.normal(size=(60, 6)).astype(np.float32), rng.integers(0, 4, 60)

    @pytest.mark.parametrize(("gradient", "embedding_dim"), [("exact", None), ("sampled", 4)])
    @pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
    def test_the_rate_is_named(self, embedding_dim, gradient, make, data):
        model = make(gradient=gradient, embedding_dim=embedding_dim, sampled_epochs=0.1)
        coef = model.fit(*data).coef_.copy()
        model.set_params(learning_rate=2e38)
        message = r"training diverged at learning_rate=2e\+38. Lower it, or scale X"
        with pytest.raises(ValueError, match=message):
            model.fit(*data)
        np.testing.assert_array_equal(model.coef_, coef)


class TestLargeNumbers:
    """Overflow is an error that names what was large, wherever it happens."""

    def test_the_sum_of_weights(self, make, xy):
        with pytest.raises(ValueError, match=r"diverged .*sample_weight, whose largest is 1e\+308"):
            make().fit(*xy, sample_weight=np.full(120, 1e308))

    @pytest.mark.parametrize("kind", ["two classes", "sparse"])
    def test_answers(self, kind, make, xy):
        X, Y = xy
        places = X.toarray()[:, :4].argmax(axis=1)
        y = {"two classes": places > 1, "sparse": Y}[kind]
        for dtype, big in ((np.float32, 1e30), (np.float64, 1e300)):
            model = make().fit(X.astype(dtype), y)
            model.coef_ = model.coef_ * dtype(big)
            for answer in (*ANSWERS[:3], "search"):
                ask = getattr(model, answer, None) or (lambda x: model.predict_topk(x, exact=False))  # noqa: B023
                message = rf"X has entries that are too large, scores overflow in {np.dtype(dtype)}"
                with pytest.raises(ValueError, match=message):
                    ask(X.astype(dtype) * dtype(1e30 if dtype == np.float32 else 1e300))
