"""napkinXC's label tree with default settings."""

import importlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp

from asv_bench.common.measure import cpu_seconds, watch
from asv_bench.common.sets import DataSet
from asv_bench.peers import K, Outcome, folder_bytes, pad


def run(known: DataSet, n_jobs: int) -> Outcome:
    """Train and predict; the writing of the model is part of the seconds."""
    library = importlib.import_module("napkinxc.models")
    X, Y = sp.csr_matrix(known.X_train), sp.csr_matrix(known.Y_train, dtype=np.float32)
    X_test = sp.csr_matrix(known.X_test)
    with TemporaryDirectory() as folder:
        model = library.PLT(folder, threads=n_jobs, seed=0)
        _, usage = watch(model.fit, X, Y)
        model_bytes = folder_bytes(Path(folder))
        model.set_params(threads=1)
        model.load()
        ranked, seconds = cpu_seconds(lambda: model.predict(X_test, top_k=K))
    return Outcome(usage, pad(ranked), 1000 * seconds / len(ranked), model_bytes)
