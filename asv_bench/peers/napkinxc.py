"""napkinXC: its label tree with default settings, or its one-vs-rest."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import SplitSet
from asv_bench.peers.meter import watch
from asv_bench.peers.outcome import K, Outcome, folder_bytes, pad, timed_topk

#: One-vs-rest as LIBLINEAR's dual solver does it: squared hinge, C=1.
_ONE_VS_REST = {
    "loss": "squaredHinge", "liblinear_solver": "L2R_L2LOSS_SVC_DUAL", "liblinear_c": 1,
    "liblinear_eps": 0.1, "weights_threshold": 0.01,
}  # fmt: skip


def run(split: SplitSet, task: Mapping[str, Any]) -> Outcome:
    """Train and predict.

    Parameters
    ----------
    split : SplitSet
        The data.
    task : mapping
        ``n_jobs``; ``model`` "BR" for one-vs-rest.

    Returns
    -------
    Outcome
        The seconds include the writing of the model, which training does.
    """
    library = importlib.import_module("napkinxc.models")
    name = task.get("model", "PLT")
    settings = _ONE_VS_REST if name == "BR" else {}
    X, Y = sp.csr_matrix(split.X_train), sp.csr_matrix(split.Y_train, dtype=np.float32)
    X_test = sp.csr_matrix(split.X_test)
    with TemporaryDirectory() as folder:
        model = getattr(library, name)(folder, threads=task["n_jobs"], seed=0, **settings)
        _, usage = watch(model.fit, X, Y)
        model_bytes = folder_bytes(Path(folder))
        model.set_params(threads=1)
        model.load()
        ranked, ms = timed_topk(lambda rows: model.predict(rows, top_k=K), X_test)
    return Outcome(
        usage=usage,
        topk=pad(ranked),
        predict_ms_per_row=ms,
        model_bytes=model_bytes,
        model_in="files",
        n_threads=task["n_jobs"],
    )
