"""omikuji with its default settings: three balanced trees, squared hinge, weights above 0.1."""

import importlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds, watch
from asv_bench.common.sets import DataSet
from asv_bench.peers import K, Outcome, folder_bytes, pad
from sklearn_xc.datasets import dump_xmc_file


def run(known: DataSet, n_jobs: int) -> Outcome:
    """Train and predict.

    omikuji trains on a text file alone, whose reading is part of the seconds, and refuses rows
    without features, which are left out.
    """
    library = importlib.import_module("omikuji")
    filled = np.flatnonzero(np.diff(known.X_train.indptr))
    with TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        dump_xmc_file(path, known.X_train[filled], known.Y_train[filled])
        model, usage = watch(lambda: library.Model.train_on_data(str(path), n_threads=n_jobs))
        path.unlink()
        model.save(str(Path(folder, "model")))
        model_bytes = folder_bytes(Path(folder, "model"))
    model.init_prediction_thread_pool(1)

    def predict(X: Any) -> list[list[int]]:
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        pairs = (zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True) for a, b in ends)
        return [[label for label, _ in model.predict(list(row), top_k=K)] for row in pairs]

    ranked, seconds = cpu_seconds(predict, known.X_test)
    return Outcome(usage, pad(ranked), 1000 * seconds / len(ranked), model_bytes)
