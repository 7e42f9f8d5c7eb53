"""The part of the PECOS run that its own interpreter executes, without sklearn_xc.

One argument, a JSON object: ``folder``, with X_train.npz, Y_train.npz and X_test.npz, for topk.npy
and result.json; ``n_jobs``; ``k``.
"""

import json
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any


def main(job: dict[str, Any]) -> None:
    """Train, save, load for prediction, predict on one thread, and write the results.

    The settings are those that PECOS recommends and its command line has as defaults: label
    features from positive instances, a 16-ary tree, the dual solver with C=1, weights above 0.1, a
    beam of 10.
    """
    sys.path.remove(str(Path(__file__).resolve().parent))  # our pecos.py is there
    import numpy as np
    import scipy.sparse as sp
    from pecos.xmc import Indexer, LabelEmbeddingFactory  # type: ignore[import-not-found]
    from pecos.xmc.xlinear.model import XLinearModel  # type: ignore[import-not-found]

    folder, threads, k = Path(job["folder"]), job["n_jobs"], job["k"]
    parts = ("X_train", "Y_train", "X_test")
    X, Y, X_test = (sp.csr_matrix(sp.load_npz(folder / f"{part}.npz")) for part in parts)
    Y = Y.tocsc()
    wall, cpu = perf_counter(), process_time()
    features = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=threads)
    chain = Indexer.gen(features, threads=threads)
    model = XLinearModel.train(X, Y, C=chain, threshold=0.1, threads=threads)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    place = folder / "model"
    model.save(str(place))
    model = XLinearModel.load(str(place), is_predict_only=True)
    options = {"beam_size": 10, "only_topk": k, "threads": 1}
    model.predict(X_test[:1], **options)
    began = process_time()
    scores = model.predict(X_test, **options).tocsr()
    seconds = process_time() - began
    topk = np.full((X_test.shape[0], k), -1, dtype=np.int64)
    for row in range(X_test.shape[0]):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        best = np.argsort(-scores.data[part], kind="stable")[:k]
        topk[row, : len(best)] = scores.indices[part][best]
    np.save(folder / "topk.npy", topk)
    result = {
        "usage": [cpu, wall, None, peak],
        "ms_per_row": 1000 * seconds / X_test.shape[0],
        "model_bytes": sum(path.stat().st_size for path in place.rglob("*") if path.is_file()),
    }
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
