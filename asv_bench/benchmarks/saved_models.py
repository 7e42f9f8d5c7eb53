"""Models in files, and fits that keep how far they are: 300 labels, 4,000 instances.

All on a disk whose pages the system holds in memory.
"""

import shutil
from pathlib import Path

import sklearn_xc
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC

from ._common import small_data


def setup_cache():
    X, Y = small_data()
    ova = OvALinearXC().fit(X, Y)
    return (
        X,
        Y,
        {
            "arrays": ova,
            "compact": ova.compact(),
        },
    )


setup_cache.timeout = 900  # with an empty compiler cache


class Folders:
    """Save, open, open and check all, open and answer one row; bytes of the folder."""

    params = ("arrays", "compact")
    param_names = ("kind",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, cache, kind):
        self.x, self.model = cache[0][:1], cache[2][kind]
        self.path = Path(f"{kind}.model")
        self.time_save(cache, kind)
        self.time_load_and_answer(cache, kind)

    def time_save(self, cache, kind):
        self.model.save(self.path)

    def time_load(self, cache, kind):
        sklearn_xc.load(self.path)

    def time_load_and_verify(self, cache, kind):
        sklearn_xc.load(self.path, verify=True)

    def time_load_and_answer(self, cache, kind):
        sklearn_xc.load(self.path).predict_topk(self.x, 5)

    def track_size(self, cache, kind):
        return sum(file.stat().st_size for file in self.path.iterdir())

    track_size.unit = "bytes"


class Compact:
    """Round the weights to a byte each; predict 1,000 rows with them."""

    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache):
        self.X, _, models = cache
        self.model, self.small = models["arrays"], models["compact"]
        self.time_compact(cache)
        self.time_predict_topk(cache)

    def time_compact(self, cache):
        self.model.compact()

    def time_predict_topk(self, cache):
        self.small.predict_topk(self.X[:1_000], 5)


class Checkpoints:
    """A fit that keeps nothing, one that keeps how far it is, and one that finds all kept."""

    params = (
        ["one-vs-all", "embedding"],
        ["nothing", "all", "finds all"],
    )
    param_names = ("classifier", "keeps")
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, cache, classifier, keeps):
        X, Y, _ = cache
        self.data = X[:1_000], Y[:1_000, :100]
        self.folder = Path("checkpoints")
        self.clf = {
            "one-vs-all": OvALinearXC(),
            "embedding": NGAMEEmbeddingXC(
                embedding_dim=32, max_iter=2, classifier_max_iter=2, random_state=0
            ),
        }[classifier]
        if keeps != "nothing":
            self.clf.set_params(checkpoint_dir=self.folder)
        self.clf.fit(*self.data)
        if keeps == "all":  # each sample has its own setup
            shutil.rmtree(self.folder)

    def teardown(self, cache, classifier, keeps):
        shutil.rmtree(self.folder, ignore_errors=True)

    def time_fit(self, cache, classifier, keeps):
        self.clf.fit(*self.data)
