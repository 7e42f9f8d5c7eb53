"""omikuji with its default settings: three balanced trees, squared hinge, weights above 0.1."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.data import SplitSet
from asv_bench.peers.meter import watch
from asv_bench.peers.outcome import K, Outcome, folder_bytes, pad, timed_topk
from sklearn_xc.datasets import dump_xmc_file


def run(split: SplitSet, task: Mapping[str, Any]) -> Outcome:
    """Train and predict.

    Parameters
    ----------
    split : SplitSet
        The data. Training rows without features are left out: omikuji refuses them.
    task : mapping
        ``n_jobs``.

    Returns
    -------
    Outcome
        The seconds include the reading of a text file, from which alone it trains.
    """
    library = importlib.import_module("omikuji")
    filled = np.flatnonzero(np.diff(split.X_train.indptr))
    remarks = ["reads text"]
    if len(filled) < split.X_train.shape[0]:
        remarks.append(f"{split.X_train.shape[0] - len(filled):,} rows without features left out")
    with TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        dump_xmc_file(path, split.X_train[filled], split.Y_train[filled])
        model, usage = watch(
            lambda: library.Model.train_on_data(str(path), n_threads=task["n_jobs"])
        )
        path.unlink()
        model.save(str(Path(folder, "model")))
        model_bytes = folder_bytes(Path(folder, "model"))
    model.init_prediction_thread_pool(1)

    def predict(X: Any) -> list[list[int]]:
        return [[label for label, _ in model.predict(row, top_k=K)] for row in _pairs(X)]

    ranked, ms = timed_topk(predict, split.X_test)
    return Outcome(
        usage=usage,
        topk=pad(ranked),
        predict_ms_per_row=ms,
        model_bytes=model_bytes,
        model_in="files",
        n_threads=task["n_jobs"],
        remarks=remarks,
    )


def _pairs(X: Any) -> Any:
    """Yield each row of X as pairs of feature and value."""
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))
