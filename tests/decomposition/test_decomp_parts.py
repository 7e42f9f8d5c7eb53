"""Parts with parameters of their own, also from outside the package: loss, gradient, index."""

import numpy as np
import pytest

from sklearn_xc.decomposition.gradients import MessagePassing
from sklearn_xc.search import Candidates, SphericalIndex


def weights_of(model):
    parts = model.coef_, model.intercept_, model.feature_embedding_
    return [part for part in parts if part is not None]


def assert_close(a, b, tol=1e-9):
    for p, q in zip(weights_of(a), weights_of(b), strict=True):
        np.testing.assert_allclose(p, q, atol=tol)


def assert_same(a, b):
    for p, q in zip(weights_of(a), weights_of(b), strict=True):
        assert p.tobytes() == q.tobytes()


class Violations:
    """The triplet loss with a margin of its own, as a user would write it."""

    def __init__(self, margin=1.0):
        self.margin = margin

    @property
    def parameters(self):
        return (self.margin,)

    @staticmethod
    def gradient(scores, n_positive, n, parameters, out, work):
        out[:n] = 0.0
        loss, smallest = 0.0, scores[0]
        for k in range(n_positive):
            smallest = min(smallest, scores[k])
            for j in range(n_positive, n):
                violation = scores[j] - scores[k] + parameters[0]
                if violation > 0.0:
                    loss += violation
                    out[j] += 1.0
                    out[k] -= 1.0
        return loss, smallest - parameters[0]

    @staticmethod
    def support_floor(largest_negative, smallest_positive, parameters):
        return smallest_positive - parameters[0]


class TestLoss:
    @pytest.mark.parametrize("gradient", ["exact", "decomp_mips"])
    def test_one_from_outside_the_package(self, gradient, make, xy):
        own = {"gradient": gradient, "sampled_epochs": 0.2, "n_candidates": 8}
        given = Violations()
        model = make(given, **own).fit(*xy)
        assert_close(model, make("triplet", **own).fit(*xy))
        assert model.loss is given
        assert vars(given) == {"margin": 1.0}


class TestGradient:
    def test_blocks_and_rounds_are_those_of_the_messages(self, make, xy):
        own = {"n_candidates": 4, "sampled_epochs": 0}
        models = [
            make(gradient=MessagePassing(n_rounds=n_rounds, n_blocks=n_blocks), **own).fit(*xy)
            for n_rounds, n_blocks in ((0, 2), (3, 2), (0, 3))
        ]
        assert len({model.coef_.tobytes() for model in models}) == 3


class Sorting:
    """An index as a user would write it: sorts all scores."""

    has_exact_scores = True

    def __init__(self, sign=1):
        self.sign = sign

    def build(self, W, first=0, last=None, seed=0):
        self.W, self.columns = W, slice(first, last)

    def update(self, rows):
        pass

    def following(self, W):
        other = Sorting(self.sign)
        other.W, other.columns = W, self.columns
        return other

    def query(self, V, n_candidates):
        scores = V @ self.W[:, self.columns].T
        labels = np.argsort(-self.sign * scores, axis=1, kind="stable")[:, :n_candidates]
        counts = np.full(len(V), n_candidates)
        return Candidates(labels.astype(np.int32), np.take_along_axis(scores, labels, 1), counts)


class TestIndex:
    def test_parameters_of_an_index(self, make):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 8)), np.arange(300)
        own = {"embedding_dim": None, "gradient": "mips", "n_candidates": 20, "max_iter": 1}
        few, many = (make(index=SphericalIndex(n_clusters=n), **own).fit(X, y) for n in (1, 100))
        assert few.index_recall_ == 1.0
        assert many.index_recall_ < 1.0

    def test_an_index_for_answers_is_kept_while_it_has_the_same_parameters(
        self, make, xy, monkeypatch
    ):
        built, build = [], SphericalIndex.build

        def counted(self, *arguments):
            built.append(self.n_clusters)
            build(self, *arguments)

        model = make(index=SphericalIndex(n_clusters=4)).fit(*xy)
        monkeypatch.setattr(SphericalIndex, "build", counted)
        for _ in range(2):
            model.predict_topk(xy[0], 2, exact=False)
        assert built == [4]
        model.set_params(index="spherical").predict_topk(xy[0], 2, exact=False)
        assert built == [4, None]


def test_what_training_did(make, xy):
    model = make(gradient="decomp_mips", max_iter=3, sampled_epochs=1.5).fit(*xy)
    report = model.fit_report_
    assert list(report) == ["loss", "learning_rate", "index_recall", "seconds"]
    assert all(column.shape == (3,) == (model.n_iter_,) for column in report.values())
    np.testing.assert_allclose(report["learning_rate"], [1, 1 / 2, 1 / 3])
    assert np.isnan(report["index_recall"][:2]).tolist() == [True, False]
    assert (report["seconds"] > 0).all()
    model.set_params(warm_start=True).fit(*xy)
    np.testing.assert_allclose(model.fit_report_["learning_rate"], [1 / 4, 1 / 5, 1 / 6])
    assert report["learning_rate"][0] == 1  # replaced, not changed


class Unfinished:
    has_exact_scores, default_index, parameters = True, "exact", ()
    build = update = query = print


@pytest.mark.parametrize(
    ("name", "first", "protocol", "lack"),
    [
        ("loss", "'margin', 'softmax', 'triplet'", "losses.LabelSetLoss", "gradient, supp"),
        ("gradient", "'decomp_mips', 'exact', 'mips', 'sampled'", "", "start"),
        ("index", "'exact', 'faiss', 'product', 'spherical'", "search.MipsIndex", "following"),
    ],
)
def test_what_is_no_part_is_told(name, first, protocol, lack, make, xy):
    told = f"^DecompMIPSClassifier: {name} must be one of {first}, or an instance with .*{protocol}"
    for wrong, got in (("best", "'best'."), (3, "3."), (Unfinished(), f".* without {lack}")):
        with pytest.raises(ValueError, match=rf"{told}\). Got {got}"):
            make(**{name: wrong}).fit(*xy)
