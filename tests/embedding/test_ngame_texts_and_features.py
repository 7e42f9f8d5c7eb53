"""Features that a model makes of its texts, beside an encoder that reads them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, normalize
from text_models import NAMES, HashedWords, answers, label_texts, make, make_texts

import sklearn_xc
from sklearn_xc import LabelFeatures, StackingXC, ThresholdTuner, TopKCalibrator, topk
from sklearn_xc.embedding._label_means import LabelMeans
from sklearn_xc.embedding._memory import Budget
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.model_selection import cross_val_score, cross_val_topk
from sklearn_xc.storage import classes, loops
from sklearn_xc.storage.checkpoints import Checkpoints

#: What labels say, in words that texts have.
WORDS = [f"{name}s {topic.split(' ')[0]}" for name, topic in zip(
    NAMES, ["fruit"] * 3 + ["wheels"] * 3 + ["fur"] * 2, strict=True)]  # fmt: skip
UNTRAINED = {"max_iter": 0, "classifier_max_iter": 0}


def make_with(**parameters):
    return make(**{"label_features": LabelFeatures(WORDS), **parameters})


def tfidf(texts):
    """Return the vectorizer that "tfidf" says, fitted."""
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit(sorted(set(texts)))


def dense(rows):
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).toarray()


def assert_same(model, other, texts):
    for component in ("fused", "features", "mean", "classifier"):
        for mine, others in zip(
            model.predict_topk(texts, 4, component=component),
            other.predict_topk(texts, 4, component=component),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, others, err_msg=component)
    np.testing.assert_array_equal(model.predict(texts).toarray(), other.predict(texts).toarray())


@pytest.fixture(scope="module")
def data():
    return make_texts()


@pytest.fixture(scope="module")
def new():
    return make_texts(60, seed=9)


@pytest.fixture(scope="module")
def fitted(data):
    return make_with().fit(*data)


@pytest.fixture(scope="module")
def untrained(data):
    """Return a model whose fused scores are the sum of all."""
    return make_with(**UNTRAINED, fusion="sum", validation_fraction=0).fit(*data)


class TestAgainstScikitLearn:
    def test_the_vectorizer(self, fitted, data):
        expected = tfidf(data[0])
        assert fitted.vectorizer_.vocabulary_ == expected.vocabulary_
        np.testing.assert_array_equal(fitted.vectorizer_.idf_, expected.idf_)
        assert fitted.vectorizer == "tfidf"

    def test_cosines_of_features(self, fitted, data, new):
        vectorizer, texts = tfidf(data[0]), new[0]
        cosines = (vectorizer.transform(texts) @ vectorizer.transform(WORDS).T).toarray()
        labels, scores = fitted.predict_topk(texts, 8, component="features")
        np.testing.assert_allclose(
            scores, np.take_along_axis(cosines, labels, axis=1), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1), rtol=1e-5, atol=1e-6)
        assert scores.dtype == np.float32

    def test_means_of_features(self, data):
        texts, Y = data
        weight = np.random.default_rng(0).uniform(0.5, 3, len(texts))
        model = make_with(**UNTRAINED).fit(texts, Y, weight)
        X = tfidf(texts).transform(texts)
        sums = (sp.diags_array(weight) @ Y).T @ X
        np.testing.assert_allclose(
            dense(model._means.words), normalize(sums).toarray(), rtol=1e-4, atol=1e-6
        )

    def test_the_sum_is_of_five(self, untrained, data, new):
        texts, Y = new
        vectorizer, model = tfidf(data[0]), untrained
        X, V = vectorizer.transform(texts).toarray(), model.embed(texts)
        words = normalize(data[1].T @ vectorizer.transform(data[0])).toarray()
        means = normalize(data[1].T @ model.embed(data[0]))
        parts = [
            V @ model.label_embeddings_.T, V @ model.coef_.T,
            X @ vectorizer.transform(WORDS).toarray().T, V @ means.T, X @ words.T,
        ]  # fmt: skip
        labels, scores = model.predict_topk(texts, 8)
        expected = np.take_along_axis(sum(parts), labels, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
        assert model.fusion_ is None
        assert model.score(texts, Y) > 0.9

    def test_what_a_bag_with_the_same_rows_says(self, fitted, data, new):
        transform = fitted.vectorizer_.transform
        bag = make_with(encoder="bag", label_features=transform(WORDS), **UNTRAINED)
        bag.fit(transform(data[0]), data[1])
        for texts in (new[0], ["fruit never seen", "apples cats"]):
            for mine, others in zip(
                fitted.predict_topk(texts, 5, component="features"),
                bag.predict_topk(transform(texts), 5, component="features"),
                strict=True,
            ):
                np.testing.assert_array_equal(mine, others)
        mine, others = fitted._features, bag._features
        np.testing.assert_array_equal(dense(mine.rows), dense(others.rows))

    def test_the_fusion_reads_five_scores(self, fitted, data):
        assert fitted.fusion_.n_scores_ == 5
        assert make_with(vectorizer=None, **UNTRAINED).fit(*data).fusion_.n_scores_ == 3

    def test_shortlists_have_the_nearest_features(self, data):
        model = make_with(n_candidates=1, **UNTRAINED).fit(*data)
        labels, _ = model.predict_topk(["ships fur"], 3)
        assert {5, 6} <= set(labels[0]) | {7}
        near = model.predict_topk(["ships fur"], 1, component="features")[0][0, 0]
        assert near in labels[0]

    def test_stand_ins_are_found(self, data):
        """A label without instances has its own features as their mean, shortened."""
        texts, Y = data
        wide = sp.csr_array(sp.hstack([Y, sp.csr_array((len(texts), 1), dtype=int)]))
        model = make_with(label_features=[*WORDS, "red small old"], max_iter=2).fit(texts, wide)
        own = dense(model._features.rows)[-1]
        assert 0 < model._stand_ins.words <= 1
        np.testing.assert_allclose(
            dense(model._means.words)[-1], model._stand_ins.words * own, rtol=1e-5
        )


class TestWithout:
    def test_scores_are_three(self, data, new):
        model = make_with(vectorizer=None, fusion="sum", validation_fraction=0).fit(*data)
        assert model.vectorizer_ is None
        assert model._features is None
        assert model._means.words is None
        V = model.embed(new[0])
        scores = V @ (model.label_embeddings_ + model.coef_ + model._means.vectors).T
        labels, found = model.predict_topk(new[0], 8)
        expected = np.take_along_axis(scores, labels, axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_encoder_and_classifiers_do_not_depend_on_it(self, fitted, data):
        for vectorizer in (None, HashingVectorizer(n_features=32)):
            model = make_with(vectorizer=vectorizer).fit(*data)
            for name in ("coef_", "label_embeddings_"):
                np.testing.assert_array_equal(getattr(model, name), getattr(fitted, name))
            np.testing.assert_array_equal(model._means.vectors, fitted._means.vectors)

    def test_no_word_is_left(self, data):
        """Texts of single letters: there is nothing that the words could say."""
        letters = [text.split()[-1][:1] + f" {i % 2}" for i, text in enumerate(data[0])]
        for vectorizer, texts in (
            ("tfidf", letters),
            (TfidfVectorizer(stop_words="english"), ["the " * (1 + i % 3) for i in range(320)]),
            (CountVectorizer(min_df=0.999), data[0]),
            (Nothing(), data[0]),
        ):
            model = make_with(vectorizer=vectorizer, max_iter=1).fit(texts, data[1])
            plain = make_with(vectorizer=None, max_iter=1).fit(texts, data[1])
            assert model.vectorizer_ is None
            assert answers(model, texts[:9]) == answers(plain, texts[:9])
            with pytest.raises(ValueError, match="fit had no vectorizer, or no word for it"):
                model.predict_topk(texts[:3], component="features")
            model.partial_fit(texts, data[1]).add_labels(label_features=["x y"])
            assert model.predict_topk(texts[:3], 9)[0].shape == (3, 9)

    def test_an_encoder_of_rows(self, data):
        X = TfidfVectorizer().fit_transform(data[0])
        own = {"encoder": "bag", "label_features": None, **UNTRAINED}
        plain = make(**own).fit(X, data[1])
        assert not hasattr(plain, "vectorizer_")
        assert answers(make(**own, vectorizer=None).fit(X, data[1]), X) == answers(plain, X)
        message = "vectorizer must be 'tfidf', its default, or None: .* Got TfidfVectorizer"
        with pytest.raises(ValueError, match=message):
            make(**own, vectorizer=TfidfVectorizer()).fit(X, data[1])

    def test_another_fit_forgets_it(self, data):
        model = make_with(**UNTRAINED).fit(*data)
        width = len(model.vectorizer_.vocabulary_)
        model.set_params(vectorizer=CountVectorizer(ngram_range=(1, 2))).fit(*data)
        assert len(model.vectorizer_.vocabulary_) > width
        model.set_params(vectorizer=None).fit(*data)
        assert model.vectorizer_ is None
        X = TfidfVectorizer().fit_transform(data[0])
        model.set_params(encoder="bag", label_features=None).fit(X, data[1])
        assert not hasattr(model, "vectorizer_")


class Nothing(BaseEstimator):
    """Makes no feature of any text."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return sp.csr_array((len(X), 0))


class TestVectorizers:
    @pytest.mark.parametrize(
        "vectorizer",
        [
            CountVectorizer(), CountVectorizer(dtype=np.uint8), HashingVectorizer(n_features=64),
            TfidfVectorizer(analyzer="char", ngram_range=(2, 3)),
            make_pipeline(CountVectorizer(binary=True), Normalizer()),
        ],
        ids=["counts", "uint8", "hashes", "letters", "pipeline"],
    )  # fmt: skip
    def test_others(self, vectorizer, data, new):
        model = make_with(vectorizer=vectorizer, **UNTRAINED).fit(*data)
        assert type(model.vectorizer_) is type(vectorizer)
        assert model.vectorizer_ is not vectorizer
        assert "vocabulary_" not in vars(vectorizer)
        X, Z = (
            normalize(model.vectorizer_.transform(texts).astype(float)) for texts in (new[0], WORDS)
        )
        labels, scores = model.predict_topk(new[0], 3, component="features")
        expected = np.take_along_axis((X @ Z.T).toarray(), labels, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
        assert model._features.rows.dtype == np.float32

    def test_one_that_is_fitted_stays_so(self, data, new):
        vectorizer = TfidfVectorizer().fit(["apples fruit", "cars wheels"])
        model = make_with(vectorizer=FrozenEstimator(vectorizer), **UNTRAINED).fit(*data)
        assert model._features.rows.shape == (8, 4)
        assert model.predict_topk(["apples wheels"], 1, component="features")[1][0, 0] > 0.4

    def test_its_own_checks_are_made(self, data):
        with pytest.raises(ValueError, match="'ngram_range' parameter of TfidfVectorizer"):
            make_with(vectorizer=TfidfVectorizer(ngram_range="x")).fit(*data)

    def test_parameters_of_it_are_searched(self, data):
        texts, Y = data
        candidates = [None, "tfidf", TfidfVectorizer(ngram_range=(1, 2))]
        search = GridSearchCV(make_with(max_iter=1), {"vectorizer": candidates}, cv=KFold(3))
        search.fit(texts, Y.toarray())
        scores = search.cv_results_["mean_test_score"]
        assert scores[1] > scores[0]
        assert scores.min() > 0
        own = {"vectorizer__ngram_range": [(1, 1), (1, 2)], "vectorizer__min_df": [1, 3]}
        model = make_with(vectorizer=TfidfVectorizer(), **UNTRAINED)
        search = GridSearchCV(model, own, cv=KFold(2)).fit(texts, Y.toarray())
        assert search.best_score_ > 0.5


class TestInstances:
    def test_repeated_rows_are_weights(self, fitted, data, new):
        texts, Y = data
        order = np.random.default_rng(3).permutation(2 * len(texts))
        twice, Y2 = 2 * texts, sp.csr_array(sp.vstack([Y, Y]))
        doubled = make_with().fit([twice[i] for i in order], Y2[order])
        weighted = make_with().fit(texts, Y, np.full(len(texts), 2.0))
        assert doubled.vectorizer_.vocabulary_ == fitted.vectorizer_.vocabulary_
        np.testing.assert_array_equal(doubled.vectorizer_.idf_, fitted.vectorizer_.idf_)
        assert_same(doubled, weighted, new[0])

    def test_rows_without_a_weight_or_a_label_are_not_there(self, fitted, data, new):
        texts, Y = data
        more = [*texts, "nothing of this counts", "nor of that"]
        wide = sp.csr_array(sp.vstack([Y, Y[:1], sp.csr_array((1, 8), dtype=int)]))
        model = make_with().fit(more, wide, np.r_[np.ones(len(texts)), 0, 1])
        assert "counts" not in model.vectorizer_.vocabulary_
        assert "that" not in model.vectorizer_.vocabulary_
        assert_same(model, fitted, new[0])

    def test_order_does_not_matter(self, fitted, data, new):
        texts, Y = data
        order = np.random.default_rng(1).permutation(len(texts))
        assert_same(make_with().fit([texts[i] for i in order], Y[order]), fitted, new[0])

    def test_blank_texts_and_unknown_words(self, data):
        texts, Y = data
        model = make_with(max_iter=2).fit(["", *texts[1:]], Y)
        shares = model._shares(np.float32)
        frequent = np.argsort(-shares, kind="stable")[:3]
        for component in ("fused", "features", "embedding"):
            labels, scores = model.predict_topk(["", "apples"], 3, component=component)
            np.testing.assert_array_equal(labels[0], frequent)
            np.testing.assert_array_equal(scores[0], shares[frequent])
            assert labels[1, 0] == 0
        # The encoder makes something of words that the vectorizer does not know.
        labels, scores = model.predict_topk(["zebra"], 3, component="features")
        np.testing.assert_array_equal(labels[0], frequent)
        np.testing.assert_array_equal(scores[0], shares[frequent])
        assert not np.array_equal(model.predict_topk(["zebra"], 3)[1][0], shares[frequent])
        everything = model.decision_function(["", "zebra", "apples"]).toarray()
        np.testing.assert_allclose(everything[0], shares)

    def test_labels_without_a_known_word(self, data):
        texts, Y = data
        named = [*WORDS[:-1], "zebra"]
        model = make_with(label_features=named, max_iter=2).fit(texts, Y)
        assert not dense(model._features.rows)[-1].any()
        assert model._described.all()
        labels, scores = model.predict_topk(["apples", "fur zebra"], 8, component="features")
        assert (scores[labels == 7] == 0).all()

    def test_candidates(self, fitted, new):
        texts = new[0]
        everything = fitted.predict_topk(texts, 8, component="features")
        scores = np.empty((len(texts), 8), np.float32)
        np.put_along_axis(scores, *everything, axis=1)
        for component in ("fused", "features"):
            labels, found = fitted.predict_topk(texts, 3, component=component, candidates=[1, 4, 6])
            assert set(labels.ravel()) == {1, 4, 6}
        np.testing.assert_array_equal(np.take_along_axis(scores, labels, axis=1), found)
        own = sp.csr_array(np.eye(8)[np.arange(len(texts)) % 8])
        labels, found = fitted.predict_topk(texts, 2, component="features", candidates=own)
        np.testing.assert_allclose(
            found[:, 0], scores[np.arange(len(texts)), labels[:, 0]], rtol=1e-6
        )
        assert (labels[:, 0] == np.arange(len(texts)) % 8).all()
        excluded, _ = fitted.predict_topk(texts, 8, exclude=own)
        assert (excluded != (np.arange(len(texts)) % 8)[:, None]).all()

    def test_1_d(self, data):
        texts, Y = data
        y = np.array(NAMES)[Y.toarray().argmax(axis=1)]
        model = make_with(label_features=LabelFeatures(WORDS, classes=NAMES)).fit(texts, y)
        assert (model.predict(texts) == y).mean() > 0.9
        two = np.array(["a", "b"])[np.arange(len(texts)) % 2]
        model = make_with(label_features=["apples", "cars"], **UNTRAINED).fit(texts, two)
        assert model.decision_function(texts).shape == (320,)


class TestAfterwards:
    def test_partial_fit(self, data, new):
        texts, Y = data
        model = make_with(max_iter=2).fit(texts, Y)
        words = set(model.vectorizer_.vocabulary_)
        later = [f"{text} zebra" for text in new[0]]
        model.partial_fit(later, new[1])
        assert set(model.vectorizer_.vocabulary_) == words
        X = [tfidf(texts).transform(part) for part in (texts, later)]
        sums = Y.T @ X[0] + new[1].T @ X[1]
        np.testing.assert_allclose(
            dense(model._means.words), normalize(sums).toarray(), rtol=1e-4, atol=1e-6
        )
        first = make_with(max_iter=2).partial_fit(texts, Y)
        assert_same(first, make_with(max_iter=2).fit(texts, Y), new[0])

    def test_add_labels(self, data):
        texts, Y = data
        model = make_with(max_iter=2).fit(texts, Y)
        before = model.predict_topk(texts, 8, component="features")
        model.add_labels(label_features=["small old red", "kayak"])
        vectorizer = tfidf(texts)
        Z = vectorizer.transform([*WORDS, "small old red", "kayak"])
        cosines = (vectorizer.transform(texts) @ Z.T).toarray()
        labels, scores = model.predict_topk(texts, 10, component="features")
        expected = np.take_along_axis(cosines, labels, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
        known = labels < 8
        np.testing.assert_array_equal(scores[known], before[1].ravel())
        stand_in = model._stand_ins.words * Z[[8]].toarray()[0]
        np.testing.assert_allclose(dense(model._means.words)[8], stand_in, rtol=1e-5, atol=1e-7)
        wide = sp.csr_array(sp.hstack([Y, sp.csr_array((len(texts), 2), dtype=int)]))
        model.partial_fit(texts, wide)
        assert model.coef_.shape == (10, 16)

    def test_labels_that_change(self, fitted, new):
        texts = new[0]
        model = pickle.loads(pickle.dumps(fitted))
        labels, scores = model.predict_topk(texts, 8)
        order = [3, 1, 2, 0, 7, 6, 5, 4]
        model.reorder_labels(order)
        moved, again = model.predict_topk(texts, 8)
        np.testing.assert_array_equal(np.sort(again, axis=1), np.sort(scores, axis=1))
        assert (np.array(order)[moved[:, 0]] == labels[:, 0]).mean() > 0.95
        model.drop_labels([7])
        assert model._features.rows.shape[0] == model._means.words.shape[0] == 7
        assert model.predict_topk(texts, 8, component="features")[0].max() == 6

    def test_threads_change_nothing(self, fitted, data, new):
        model = make_with(n_jobs=2).fit(*data)
        assert_same(model, fitted, new[0])

    def test_pieces_change_nothing(self, fitted, data, new, monkeypatch):
        texts = new[0]
        expected = [fitted.predict_topk(texts, 4, component=c) for c in ("fused", "features")]
        everything = fitted.decision_function(texts).toarray()
        monkeypatch.setattr("sklearn_xc.embedding._memory.PIECE", 3000)
        found = [fitted.predict_topk(texts, 4, component=c) for c in ("fused", "features")]
        for part, others in zip(found, expected, strict=True):
            for a, b in zip(part, others, strict=True):
                np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(fitted.decision_function(texts).toarray(), everything)

    def test_what_memory_is_told(self, data, monkeypatch):
        told, plain = [], Budget.require

        def require(self, held):
            told.extend(held)
            return plain(self, held)

        monkeypatch.setattr(Budget, "require", require)
        texts, Y = data
        distinct = sorted(set(texts))
        n_values = tfidf(texts).transform(distinct).nnz
        assert len({(text, label) for text, label in zip(texts, Y.indices, strict=True)}) == len(
            distinct
        )
        for vectorizer, more, n_scores in ((None, 0, 3), ("tfidf", n_values, 5)):
            told.clear()
            model = make_with(vectorizer=vectorizer, **UNTRAINED).fit(texts, Y)
            shapes = {held.what: held.shape for held in told}
            assert shapes["features of the instances"] == (len(distinct) + more,)
            assert shapes["scores of pairs held out"][1] == n_scores
            assert model._asked.n_scores == n_scores
            n_of_labels = 0 if vectorizer is None else tfidf(texts).transform(WORDS).nnz
            assert model._asked.n_label_values == n_of_labels
            told.clear()
            model.predict_topk(texts, 2)
            shapes = {held.what: held.shape for held in told}
            assert (shapes["features of an instance"] > (1, 0)) == (vectorizer is not None)


class TestKept:
    def test_pickles(self, fitted, new):
        again = pickle.loads(pickle.dumps(fitted))
        assert_same(again, fitted, new[0])

    @pytest.fixture
    def can_be_saved(self, monkeypatch):
        monkeypatch.setitem(classes.MODULES, "HashedWords", "text_models")

    @pytest.mark.usefixtures("can_be_saved")
    @pytest.mark.parametrize("vectorizer", ["tfidf", None, HashingVectorizer(n_features=32)])
    def test_folders(self, vectorizer, data, new, tmp_path):
        model = make_with(vectorizer=vectorizer, max_iter=1).fit(*data)
        model.save(tmp_path / "model")
        for verify in (False, True):
            again = sklearn_xc.load(tmp_path / "model", verify=verify)
            assert answers(again, new[0]) == answers(model, new[0])
        again = sklearn_xc.load(tmp_path / "model")
        again.partial_fit(*new).add_labels(label_features=["kayak"])
        model.partial_fit(*new).add_labels(label_features=["kayak"])
        assert answers(again, new[0]) == answers(model, new[0])

    @pytest.mark.usefixtures("can_be_saved")
    def test_folders_of_what_does_not_fit(self, data, tmp_path):
        model = make_with(**UNTRAINED).fit(*data)
        for wrong in (tfidf(WORDS), Normalizer(), KFold()):
            model.vectorizer_ = wrong
            model.save(tmp_path / "model")
            if isinstance(wrong, Normalizer):  # what it makes is checked when it is asked
                continue
            with pytest.raises(SavedModelError, match=r"vectorizer: must be|features\..*must be"):
                sklearn_xc.load(tmp_path / "model", verify=True)

    def test_checkpoints(self, fitted, data, new, tmp_path, monkeypatch):
        class Stopped(BaseException):
            pass

        kept = {"n": 0, "last": None}
        monkeypatch.setattr(loops, "INTERVAL", 0.0)

        def put(checkpoints, name, arrays, plain=Checkpoints.put):
            plain(checkpoints, name, arrays)
            kept["n"] += 1
            if kept["n"] == kept["last"]:
                raise Stopped

        monkeypatch.setattr(Checkpoints, "put", put)
        whole = make_with(checkpoint_dir=tmp_path / "whole").fit(*data)
        assert_same(whole, fitted, new[0])
        n = kept["n"]
        for last in (1, n // 2, n - 1):
            kept.update(n=0, last=last)
            with pytest.raises(Stopped):
                make_with(checkpoint_dir=tmp_path / f"{last}").fit(*data)
            kept["last"] = None
            again = make_with(checkpoint_dir=tmp_path / f"{last}", n_jobs=2).fit(*data)
            assert_same(again, fitted, new[0])
        with pytest.raises(ValueError, match="other parameters: vectorizer was 'tfidf', is None"):
            make_with(checkpoint_dir=tmp_path / "whole", vectorizer=None).fit(*data)
        with pytest.raises(ValueError, match="other data: X is not the same"):
            make_with(checkpoint_dir=tmp_path / "whole").fit([*data[0][:-1], "other"], data[1])


class TestInsideOthers:
    def test_cross_validation(self, data):
        texts, Y = data
        scores = [
            cross_val_score(make_with(vectorizer=one, max_iter=1), texts, Y, cv=KFold(3)).mean()
            for one in (None, "tfidf")
        ]
        assert scores[1] > scores[0] + 0.05
        scored = cross_val_topk(make_with(max_iter=1), texts, Y, k=1, cv=KFold(3))
        assert (scored.indices == Y.indices).mean() > 0.9

    @pytest.mark.parametrize(
        "around",
        [
            lambda model: ThresholdTuner(model, cv=3, random_state=0),
            lambda model: TopKCalibrator(model, cv=3, random_state=0),
            lambda model: StackingXC([("a", model), ("b", model)], cv=0.3, random_state=0),
            lambda model: StackingXC(
                [("a", model), ("b", ThresholdTuner(model, cv=0.3, random_state=0))],
                cv=0.3, random_state=0,
            ),
            lambda model: make_pipeline(FunctionTransformer(), model),
        ],
        ids=["tuner", "calibrator", "stack", "stack of a tuner", "pipeline"],
    )  # fmt: skip
    def test_around(self, around, data, new):
        model = around(make_with(max_iter=2))
        model.fit(*data)
        labels, scores = topk(model, new[0], 2)
        assert (labels[:, 0] == new[1].indices).mean() > 0.9
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(topk(again, new[0], 2)[1], scores)
        blank = topk(model, ["", "apples"], 2)
        assert blank[0][1, 0] == 0

    def test_no_explanation(self, fitted):
        for x in ("apples", ["apples"], np.zeros((1, 4))):
            with pytest.raises(ValueError, match=r"explain needs an X of features, .* reads texts"):
                fitted.explain(x, 0)


class Made(BaseEstimator):
    """Makes what it is told of texts."""

    def __init__(self, make=None):
        self.make = make

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.make(X)


def ones(X, d=3):
    return sp.csr_array(np.ones((len(X), d)))


WRONG = {
    "dense": (lambda X: np.ones((len(X), 3)), r"a sparse matrix, .* Got ndarray of shape \(\d+, 3"),
    "lists": (lambda X: [[1.0]] * len(X), "a sparse matrix, with a row for each text. Got list"),
    "none": (lambda X: None, "a sparse matrix, with a row for each text. Got NoneType"),
    "texts": (lambda X: X, "a sparse matrix, with a row for each text. Got list"),
    "rows": (lambda X: ones([*X, ""]), r"rows of \d+ texts, of .* features. Got shape \(\d+, 3\)"),
    "NaN": (lambda X: ones(X) * np.nan, "must make finite numbers. Got NaN or infinity"),
    "infinity": (lambda X: ones(X) * np.inf, "must make finite numbers. Got NaN or infinity"),
    "too large": (lambda X: ones(X) * 1e20, r"values up to 1e\+15 in float32. Got 1e\+20 in row 0"),
    "complex": (lambda X: ones(X) * 1j, "must make real numbers. Got dtype complex128"),
    "too wide": (lambda X: sp.csr_array((len(X), 2**31)), "of less than 2\\*\\*31 - 1 features"),
    "outside": (lambda X: outside(X), "column index 7"),
    "one row": (lambda X: sp.coo_array(np.ones(len(X))), "2 dimensions was expected"),
}


def outside(X):
    made = ones(X)
    made.indices[0] = 7
    return made


class TestErrors:
    @pytest.mark.parametrize("name", WRONG)
    def test_what_it_makes(self, name, data):
        wrong, says = WRONG[name]
        with pytest.raises(ValueError, match=rf"^NGAMEEmbeddingXC: vectorizer Made:? .*{says}"):
            make_with(vectorizer=Made(wrong), **UNTRAINED).fit(*data)

    @pytest.mark.parametrize("name", WRONG)
    def test_what_it_makes_later(self, name, data):
        model = make_with(vectorizer=Made(ones), **UNTRAINED).fit(*data)
        model.vectorizer_ = Made(WRONG[name][0])
        for ask in (
            lambda: model.predict_topk(data[0][:2]),
            lambda: model.predict(data[0][:2]),
            lambda: model.partial_fit(*data),
            lambda: model.add_labels(label_features=["a", "b"]),
        ):
            with pytest.raises(ValueError, match=r"^NGAMEEmbeddingXC: vectorizer Made"):
                ask()
        assert model.embed(data[0][:2]).any()  # which needs no features
        assert model.predict_topk(data[0][:2], component="classifier")[0].shape == (2, 5)

    def test_other_widths(self, data):
        model = make_with(vectorizer=Made(ones), **UNTRAINED).fit(*data)
        model.vectorizer_ = Made(lambda X: ones(X, 4))
        message = r"must make 2 rows of 2 texts, of 3 features\. Got shape \(2, 4\)"
        with pytest.raises(ValueError, match=message):
            model.predict(data[0][:2])

    def test_tiny_values_are_zeros(self, data):
        model = make_with(vectorizer=Made(lambda X: ones(X) * 1e-30), **UNTRAINED).fit(*data)
        assert not len(model._features.rows.data)
        assert model.predict_topk(data[0][:2], component="fused")[0].shape == (2, 5)

    @pytest.mark.parametrize("wrong", ["bow", "", 3, True, BaseEstimator(), Normalizer, ("tfidf",)])
    def test_no_vectorizer(self, wrong, data):
        error = TypeError if wrong is Normalizer else ValueError
        with pytest.raises(error, match=r"vectorizer|should provide an instance"):
            make_with(vectorizer=wrong).fit(*data)

    def test_its_errors_are_its_own(self, data):
        def fail(X):
            raise RuntimeError("out of ink")

        with pytest.raises(RuntimeError, match="out of ink"):
            make_with(vectorizer=Made(fail)).fit(*data)
        with pytest.raises(ValueError, match="max_df corresponds to < documents than min_df"):
            make_with(vectorizer=CountVectorizer(min_df=5, max_df=2)).fit(*data)


def test_a_state_without_the_attribute(fitted, data, new):
    """Models of texts that were pickled before there was a vectorizer have none."""
    model = make_with(vectorizer=None, max_iter=1).fit(*data)
    expected = answers(model, new[0])
    del model.vectorizer_
    assert answers(pickle.loads(pickle.dumps(model)), new[0]) == expected
    assert isinstance(model._means, LabelMeans)
    assert HashedWords.reads == "texts"
    assert len(label_texts()) == len(NAMES)
