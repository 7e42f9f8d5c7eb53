"""Labels with features: a fit, mini-batches by sampler, clusters, top-k labels by component.

On the made data: 10,000 instances, 2,000 labels that are known by the mean of their instances, and
embeddings of 128 dimensions. All on one thread.
"""

from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc.embedding.samplers import balanced_clusters

from ._common import made_data

DIM, BATCH_SIZE = 128, 1_600


def setup_cache():
    return made_data()


def fitted(data, n_epochs, **parameters):
    """Return a fitted estimator."""
    clf = NGAMEEmbeddingXC(
        embedding_dim=DIM,
        batch_size=BATCH_SIZE,
        random_state=0,
        **{"max_iter": n_epochs, "classifier_max_iter": n_epochs, **parameters},
    )
    return clf.fit(*data)


class Encoder:
    """Two epochs of the encoder alone, by sampler."""

    params = ("ngame", "in_batch", "ance")
    param_names = ("sampler",)
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, data, sampler):
        self.parameters = {"sampler": sampler, "classifier_max_iter": 0}
        fitted(data, 1, **self.parameters)

    def time_fit(self, data, sampler):
        fitted(data, 2, **self.parameters)


class Clusters:
    """Put the embeddings of 10,000 instances into clusters."""

    params = (8, 64, 1_600)
    param_names = ("cluster_size",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data, cluster_size):
        self.clf = fitted(data, 1)
        self.V = self.clf.embed(data[0])
        self.time_balanced_clusters(data, cluster_size)

    def time_balanced_clusters(self, data, cluster_size):
        balanced_clusters(self.V, max(1, len(self.V) // cluster_size), 0, n_jobs=1)

    def time_embed(self, data, cluster_size):
        self.clf.embed(data[0])


class Predict:
    """The 5 best labels of 1,000 instances, and of a single one."""

    params = ("embedding", "classifier", "fused")
    param_names = ("component",)
    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, data, component):
        self.clf = fitted(data, 1)
        self.X, self.x = data[0][:1_000], data[0][:1]
        self.time_predict_topk(data, component)
        self.time_predict_topk_of_one(data, component)

    def time_predict_topk(self, data, component):
        self.clf.predict_topk(self.X, 5, component=component)

    def time_predict_topk_of_one(self, data, component):
        self.clf.predict_topk(self.x, 5, component=component)


class Fit:
    """Two epochs each of the encoder and the classifiers, fusion, and the threshold."""

    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, data):
        fitted(data, 1)

    def time_fit(self, data):
        fitted(data, 2)

    def peakmem_fit(self, data):
        fitted(data, 2)
