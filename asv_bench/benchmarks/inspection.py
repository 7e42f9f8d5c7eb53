"""Why a label, and two models side by side: 300 labels, 4,000 instances."""

from sklearn_xc import DecompMIPSClassifier, ImplicitSoftmaxSGD, NGAMEEmbeddingXC, OvALinearXC
from sklearn_xc.inspection import compare_models

from ._common import small_data

CLASSIFIERS = {
    "one-vs-all": lambda: OvALinearXC(),
    "softmax": lambda: ImplicitSoftmaxSGD(max_iter=2, learning_rate=0.1, random_state=0),
    "decomposition": lambda: DecompMIPSClassifier(max_iter=1, random_state=0),
    "embedding": lambda: NGAMEEmbeddingXC(max_iter=1, classifier_max_iter=1, random_state=0),
}


def setup_cache():
    X, Y = small_data()
    return X, Y, {name: make().fit(X, Y) for name, make in CLASSIFIERS.items()}


setup_cache.timeout = 900  # with an empty compiler cache


class Explanations:
    """Features behind a score. The embedding is asked once more without each of the features."""

    params = tuple(CLASSIFIERS)
    param_names = ("classifier",)

    def setup(self, cache, classifier):
        self.x, self.clf = cache[0][:1], cache[2][classifier]
        self.time_explain(cache, classifier)

    def time_explain(self, cache, classifier):
        self.clf.explain(self.x, 0)


class Comparison:
    """The report on two models and 1,000 instances, drawn 999 times."""

    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, cache):
        X, Y, models = cache
        self.arguments = models["one-vs-all"], models["softmax"], X[:1_000], Y[:1_000]
        self.time_compare_models(cache)

    def time_compare_models(self, cache):
        compare_models(*self.arguments, n_resamples=999, random_state=0)
