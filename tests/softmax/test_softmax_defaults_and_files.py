"""What the defaults are, and what a file holds."""

import pickle

import numpy as np
import pytest

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)


def learned(model, name):
    """Return an attribute of a fitted model, or a column of its report."""
    return model.fit_report_[name] if name in model.fit_report_ else getattr(model, name)


@pytest.fixture(params=[SoftmaxUMax, ImplicitSoftmaxSGD])
def make(request):
    def make(**parameters):
        return request.param(
            **{"learning_rate": 1.0, "max_iter": 15, "random_state": 0, **parameters}
        )

    return make


class TestPersistence:
    def test_a_file_holds_the_weights_as_often_as_the_model(self, make, tmp_path):
        """coef_ and the iterate are one array, and two with an average."""
        X = np.random.default_rng(0).normal(size=(30, 2000))
        weights = 3 * 2000 * 8
        for average, copies in ((False, 1), (True, 3)):
            model = make(average=average, max_iter=2, learning_rate=1e-4).fit(X, np.arange(30) % 3)
            size = len(pickle.dumps(model))
            assert weights * 0.9 < size < weights * copies + 20_000


class TestParameters:
    def test_defaults(self):
        umax, implicit = SoftmaxUMax(), ImplicitSoftmaxSGD()
        assert (umax.n_negatives, umax.delta, umax.alpha) == (5, 1.0, 0.0)
        assert (implicit.n_negatives, implicit.batch_size, implicit.alpha) == (2, 1, 0.0)
        for model in (umax, implicit):
            assert (model.learning_rate, model.decay, model.max_iter) == ("auto", 0.9, 50)
            assert (model.n_hard_negatives, model.average) == ("auto", False)
            assert (model.early_stopping, model.n_iter_no_change, model.tol) == ("auto", 3, 1e-3)
            assert (model.init, model.u_init, model.sampling) == ("means", "optimal", "frequency")
            assert (model.multilabel, model.top_k) == ("all", 100)
        assert set(umax.get_params()) - set(implicit.get_params()) == {"delta"}
        assert set(implicit.get_params()) - set(umax.get_params()) == {"batch_size"}
