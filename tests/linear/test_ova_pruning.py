"""The warning of pruning: where answers get worse, and nowhere else."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC, OvALinearXCCV, StackingXC, ThresholdTuner, TopKCalibrator
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import PruningWarning, UnseenLabelWarning
from sklearn_xc.losses import LOSSES
from sklearn_xc.model_selection import cross_val_topk


@pytest.fixture(scope="module", name="data")
def texts():
    return make_xc_classification(
        n_samples=600, n_features=400, n_labels=60, random_state=0, return_X_y=True
    )


def warnings_of(X, y, make=OvALinearXC, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(**parameters).fit(X, y)
    return model, [w for w in caught if not issubclass(w.category, UnseenLabelWarning)]


def hits(model, X, Y, k=5):
    labels, _ = model.predict_topk(X, k)
    return Y.toarray()[np.arange(len(labels))[:, None], labels].sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_default_is_silent_on_rows_of_unit_length(loss, data):
    assert not warnings_of(*data, loss=loss)[1]


def test_an_objective_that_rises_is_no_reason(data):
    X, Y = data
    model, caught = warnings_of(X, Y, prune=0.1)
    assert not caught
    report = model.fit_report_
    assert (report["pruning_increase"] > 0.01 * report["objective"]).mean() > 0.5
    whole = OvALinearXC(prune=0).fit(X, Y)
    assert model.coef_.nnz < 0.7 * whole.coef_.nnz
    assert hits(model, X, Y) > 0.99 * hits(whole, X, Y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make_y", [sp.csr_array, sp.csr_array.toarray])
def test_too_much_is_warned_of(make_y, loss, data):
    X, Y = data
    with pytest.warns(PruningWarning) as caught:
        model = OvALinearXC(C=0.5, prune=0.5, loss=loss).fit(X, make_y(Y))
    (warning,) = [w for w in caught if w.category is PruningWarning]
    message = str(warning.message)
    assert message.startswith("OvALinearXC: prune=0.5 lowered ")
    assert "precision@5 from 0." in message
    assert "of the training instances. Lower it" in message
    assert warning.filename == __file__
    whole = OvALinearXC(C=0.5, prune=0, loss=loss).fit(X, Y)
    assert hits(model, X, Y) < 0.95 * hits(whole, X, Y)
    assert (model.fit_report_["pruning_increase"] > 0).any()


def test_the_scale_of_x_decides(data):
    """Weights shrink as X grows."""
    X, Y = data
    assert not warnings_of(X, Y)[1]
    (warning,) = warnings_of(100 * X, Y)[1]
    assert warning.category is PruningWarning


def test_the_fitted_share_is_named(data):
    """All rows are in the sample of a small set: the figures are those of all."""
    X, Y = data[0][:200], data[1][:200]
    model, (warning,) = warnings_of(X, Y, prune=0.5)
    whole = OvALinearXC(prune=0).fit(X, Y)
    n_sampled = (np.diff(Y.indptr) > 0).sum()
    before, after = (hits(m, X[np.diff(Y.indptr) > 0], Y[np.diff(Y.indptr) > 0]) for m in
                     (whole, model))  # fmt: skip
    text = f"precision@5 from {before / 5 / n_sampled:.3f} to {after / 5 / n_sampled:.3f}"
    assert text in str(warning.message)
    assert f"on {n_sampled} of the training instances" in str(warning.message)


def test_nothing_to_prune_is_silent(data):
    for prune in (0, 1e-12):
        assert not warnings_of(*data, prune=prune)[1]


def test_classes(data):
    """Two classes are told apart by a sign, many by their rank."""
    X, Y = data
    y = Y[:, :8].toarray().argmax(axis=1)
    assert not warnings_of(X, y)[1]
    (warning,) = warnings_of(X, y, prune=1.0, C=1.0)[1]
    assert "precision@1 from " in str(warning.message)
    assert "F1" not in str(warning.message)
    two = np.where(Y[:, [0]].toarray()[:, 0] > 0, "yes", "no")
    assert not warnings_of(X, two)[1]
    (warning,) = warnings_of(X, two, prune=1.5, C=1.0)[1]
    assert "F1 from " in str(warning.message)
    assert "precision" not in str(warning.message)


def test_cross_validation_warns_once_of_the_final_fit(data):
    X, Y = data
    with pytest.warns(PruningWarning) as caught:
        OvALinearXCCV(Cs=[0.3, 1], cv=2, prune=0.5).fit(X, Y)
    (warning,) = [w for w in caught if w.category is PruningWarning]
    assert str(warning.message).startswith("OvALinearXCCV: prune=0.5 lowered ")
    assert warning.filename == __file__


class TestFitsInsideAnother:
    """They warn once, of the worst."""

    OVA = OvALinearXC(prune=0.5)

    def warned(self, act):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            act()
        found = [w for w in caught if w.category is PruningWarning]
        assert len(found) == 1
        assert found[0].filename == __file__
        return str(found[0].message)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize(
        ("make", "n_fits"),
        [
            (lambda ova, n: TopKCalibrator(ova, cv=3, n_groups=1, n_jobs=n, random_state=0), 4),
            (lambda ova, n: ThresholdTuner(ova, cv=3, n_jobs=n, random_state=0), 4),
            (
                lambda ova, n: StackingXC(
                    [("a", ova), ("b", OvALinearXC(prune=0.6))], cv=2, n_jobs=n, random_state=0
                ),
                6,
            ),
            (
                lambda ova, n: ThresholdTuner(
                    TopKCalibrator(ova, cv=2, n_groups=1, random_state=0),
                    cv=2, n_jobs=n, random_state=0,
                ),
                9,
            ),
        ],
    )  # fmt: skip
    def test_wrappers_and_stacks(self, make, n_fits, n_jobs, data):
        model = make(self.OVA, n_jobs)
        text = self.warned(lambda: model.fit(*data))
        who = type(model).__name__
        assert text.startswith(f"{who}: {n_fits} fits lost by pruning. The worst: OvALinearXC: ")
        assert text.count("The worst") == 1

    def test_the_worst_is_told(self, data):
        members = [("a", self.OVA), ("b", OvALinearXC(prune=1.0))]
        text = self.warned(lambda: StackingXC(members, cv=2, random_state=0).fit(*data))
        assert "The worst: OvALinearXC: prune=1.0 lowered" in text

    def test_folds_that_are_scored(self, data):
        text = self.warned(lambda: cross_val_topk(self.OVA, *data, cv=3))
        assert text.startswith("cross_val_topk: 3 fits lost by pruning. The worst: OvALinearXC: ")

    def test_after_an_error_fits_warn_at_once_again(self, data):
        X, Y = data
        broken = [("a", self.OVA), ("b", OvALinearXC(C=-1.0))]
        with pytest.raises(ValueError, match=r"estimator 'b': .*C"):
            StackingXC(broken, cv=2, random_state=0).fit(X, Y)
        with pytest.warns(PruningWarning, match=r"^OvALinearXC: prune=0\.5 lowered"):
            OvALinearXC(prune=0.5).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
def test_blocks_and_threads_do_not_change_it(data, monkeypatch):
    X, Y = data
    monkeypatch.setattr("sklearn_xc.parallel.blocks.MAX_LANES", 4)
    costs = [OvALinearXC(prune=0.5, n_jobs=n).fit(X, Y)._pruning_cost for n in (1, 2)]
    assert costs[0] == costs[1]
    assert costs[0].hits[5][1] < costs[0].hits[5][0]
    model = OvALinearXC(prune=0.5).fit(X, Y)
    assert pickle.loads(pickle.dumps(model))._pruning_cost == model._pruning_cost
