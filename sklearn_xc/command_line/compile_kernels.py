"""``compile``: compiles the numba kernels ahead of time, such as when an image is built."""

import os
import tempfile
import time
import warnings
from typing import Any

import sklearn_xc
from sklearn_xc.command_line.models import ONE_LABEL, make_model

#: Enough rows and words that rare labels are solved on working sets, as those of large data are.
_N_ROWS = 20_000
_N_WORDS = 3_000
_N_LABELS = 66
#: For estimators whose kernels are the same on small data.
_FEW_ROWS = 300


def run(options: Any) -> None:
    """Fit small models and predict with them, so that their kernels are compiled and cached."""
    from sklearn_xc._input.kernels.csr_rows import copy_rows
    from sklearn_xc._weights.kernels.row_scores import topk_rows

    for name in options.estimator:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about models that are thrown away
            _compile(name)
        print(f"{name}: {time.perf_counter() - began:.1f} s")
    # The cache has a folder for each folder of sources.
    folders = [one.stats.cache_path for one in (copy_rows, topk_rows)]
    place = os.path.commonpath(folders) if all(folders) else "no folder: none can be written"
    print(f"compiled code is in {place}")


def _compile(name: str) -> None:
    texts, tags = _make_texts(_N_ROWS if name == "ova" else _FEW_ROWS)
    model = make_model(name)
    model.fit(texts, [names[0] for names in tags] if name in ONE_LABEL else tags)
    for predict in (model.predict, model.predict_topk, model.decision_function):
        predict(texts[:10])
    if name == "ova":  # kernels for few rows, and for candidates
        texts, tags = _make_texts(_FEW_ROWS)
        model.fit(texts, tags).predict_topk(texts[:1], candidates=["t1", "t2"])
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder, compact=True)
            sklearn_xc.load(folder).predict(texts[:10])


def _make_texts(n_rows: int) -> tuple[list[str], list[list[str]]]:
    """Return short texts with a long tail of words, and tags, most of them rare."""
    import numpy as np

    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{word}" for word in (_N_WORDS * rng.random(n) ** 3).astype(int))
        for n in rng.integers(3, 12, n_rows)
    ]
    tags = [{f"t{tag}"} for tag in rng.integers(_N_LABELS - 6, _N_LABELS, n_rows)]
    for tag in range(_N_LABELS - 6):
        for row in rng.integers(0, n_rows, 3):
            tags[row].add(f"t{tag}")
    return texts, [sorted(names) for names in tags]
