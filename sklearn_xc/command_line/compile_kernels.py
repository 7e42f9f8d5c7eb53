"""``compile``: the inner loops compiled beforehand, such as when an image is made."""

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import sklearn_xc
from sklearn_xc.command_line.estimators import ONE_LABEL, ONE_VS_ALL, make_model

#: Rows and words of the made texts: enough that rare labels are solved on working sets, as those of
#: large data are.
_N_ROWS, _N_WORDS, _N_LABELS = 20_000, 3_000, 66
#: Of the others, whose loops are the same for few rows.
_FEW_ROWS = 300


def compile_kernels(options: Any) -> None:
    """Train small models and ask them, so that their loops are compiled and kept on the disk."""
    for name in options.estimator:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that nobody will use
            _train(name)
        print(f"{name}: {time.perf_counter() - began:.1f} s")
    print(f"compiled code is in {_folder()}")


def _train(name: str) -> None:
    texts, tags = _made_texts(_N_ROWS if name == "ova" else _FEW_ROWS)
    if name in ONE_LABEL:
        tags = [names[:1] for names in tags]
    model = make_model(
        name, [], decisions="thresholds", separator=None, min_count=1, label_texts=None, n_jobs=1,
        seed=0,
    )  # fmt: skip
    model.fit(texts, [names[0] for names in tags] if name in ONE_LABEL else tags)
    ask: list[Callable[[Any], Any]] = [model.predict, model.predict_topk, model.decision_function]
    for answer in ask:
        answer(texts[:10])
    if name == "ova":  # of few rows, and of many frequent labels
        texts, tags = _made_texts(_FEW_ROWS)
        model.fit(texts, tags).predict_topk(texts[:1], candidates=["t1", "t2"])
    if name in ONE_VS_ALL:
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder, compact=True)
            sklearn_xc.load(folder).predict(texts[:10])


def _made_texts(n_rows: int) -> tuple[list[str], list[list[str]]]:
    """Return short texts of words by a law of frequency, and tags, most of them rare."""
    import numpy as np

    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 12, n_rows)
    words = (_N_WORDS * rng.random(lengths.sum()) ** 3).astype(int).tolist()
    ends = np.cumsum(lengths).tolist()
    texts = [
        " ".join(f"w{word}" for word in words[last - n : last])
        for n, last in zip(lengths.tolist(), ends, strict=True)
    ]
    tags = [[f"t{tag}"] for tag in rng.integers(_N_LABELS - 6, _N_LABELS, n_rows).tolist()]
    for tag in range(_N_LABELS - 6):
        for row in rng.integers(0, n_rows, 3).tolist():
            tags[row].append(f"t{tag}")
    return texts, [sorted(set(names)) for names in tags]


def _folder() -> str:
    """Return where compiled code is kept."""
    from sklearn_xc.kernels.prediction.topk import topk_rows

    place = topk_rows.stats.cache_path
    if place is None:
        return "no folder: there is none that can be written"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return os.path.abspath(chosen) if chosen else f"{place}, and in those beside it"
