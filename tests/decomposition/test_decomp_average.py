"""Models that are averages of the weights over the steps."""

import io
import re

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

WEIGHTS = ("coef_", "feature_embedding_")


@pytest.fixture
def few():
    """Return a few instances of many labels: averages look at the weights after each epoch only."""
    rng = np.random.default_rng(0)
    X = sp.random_array((12, 9), density=0.5, rng=rng, format="csr")
    Y = np.zeros((12, 200), int)
    Y[np.arange(12), rng.integers(0, 200, 12)] = 1
    return X, sp.csr_array(Y)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
@pytest.mark.parametrize("gradient", ["exact", "sampled", "decomp_mips"])
def test_is_the_mean_of_models_of_fewer_epochs(make, few, gradient, optimizer):
    parameters = {"gradient": gradient, "optimizer": optimizer, "sampled_epochs": 0.5}
    model = make(max_iter=4, **parameters).fit(*few)
    ends = [make(average=False, max_iter=n, **parameters).fit(*few) for n in range(1, 5)]
    shares = np.diff(np.arange(5.0) ** 4) / 4**4
    for name in WEIGHTS:
        mean = sum(share * getattr(end, name) for share, end in zip(shares, ends, strict=True))
        np.testing.assert_allclose(getattr(model, name), mean, atol=1e-13)
    np.testing.assert_array_equal(
        model.fit_report_["loss"], ends[-1].fit_report_["loss"]
    )  # of the steps


def test_within_an_epoch_too(make, few):
    """With fewer rows than instances the average of one epoch is not what that ends with."""
    X, Y = (
        sp.vstack([few[0]] * 3, format="csr") * np.arange(1, 37)[:, None],
        sp.vstack([few[1]] * 3),
    )
    Y = sp.csr_array(Y.toarray()[:, :100] + Y.toarray()[:, 100:])
    model = make(max_iter=1).fit(X, Y)
    end = make(max_iter=1, average=False).fit(X, Y)
    assert np.abs(model.coef_ - end.coef_).max() > 1e-3 * np.abs(end.coef_).max()


@pytest.mark.parametrize("embedding_dim", [None, 6])
def test_goes_on_where_it_was(make, xy, embedding_dim):
    X = xy[0].toarray()
    whole = make(embedding_dim=embedding_dim, max_iter=4).fit(X, xy[1])
    part = make(embedding_dim=embedding_dim, max_iter=1, warm_start=True)
    for _ in range(4):
        part.fit(X, xy[1])
    steps = make(embedding_dim=embedding_dim)
    for _ in range(4):
        steps.partial_fit(X, xy[1])
        file = io.BytesIO()
        joblib.dump(steps, file)
        file.seek(0)
        steps = joblib.load(file)
    for model in (part, steps):
        for name in WEIGHTS[: 1 + (embedding_dim is not None)]:
            np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))


def test_can_be_left_out_later_and_taken_up_again(make, few):
    model = make(max_iter=2, warm_start=True).fit(*few)
    last = make(max_iter=2, warm_start=True, average=False).fit(*few)
    assert (model.coef_ != last.coef_).any()
    model.set_params(average=False, max_iter=1).fit(*few)  # from the last step, not the average
    last.set_params(max_iter=1).fit(*few)
    np.testing.assert_array_equal(model.coef_, last.coef_)
    before = model.coef_.copy()
    model.set_params(average=True).fit(*few)
    last.fit(*few)
    share = 1 - (3 / 4) ** 4  # of the fourth epoch
    np.testing.assert_allclose(
        model.coef_, share * last.coef_ + (1 - share) * before, rtol=1e-12, atol=1e-14
    )


def test_is_more_accurate_where_classes_are_alike():
    from sklearn_xc import DecompMIPSClassifier
    from sklearn_xc.datasets import make_hierarchical_classes

    data = make_hierarchical_classes(3, dim=32, n_test=1000, random_state=0)
    averaged, last = (
        DecompMIPSClassifier(average=average, learning_rate=0.3, max_iter=2, random_state=0)
        .fit(data.X_train, data.y_train)
        .score(data.X_test, data.y_test)
        for average in (True, False)
    )
    assert averaged > last + 0.1


def test_memory_of_both_is_asked_for(make, xy):
    from sklearn_xc.exceptions import MemoryBudgetError

    def needed(**parameters):
        with pytest.raises(MemoryBudgetError) as refused:
            make(max_memory=1, **parameters).fit(*xy)
        return float(re.search(r"([\d.]+) KiB are needed", str(refused.value))[1]), refused

    (of_one, _), (of_both, refused) = needed(average=False), needed()
    assert of_both - of_one == pytest.approx((15 + 40) * 6 * 8 / 1024, abs=0.1)
    assert refused.match(r"x 8 bytes, as much again for their averages\..*average=False")
    make(max_memory=f"{of_both + 0.1} KiB").fit(*xy)
    make(max_memory=f"{of_one + 0.1} KiB", average=False).fit(*xy)
