"""Writes the saved models of ``golden``: ``python make_golden.py FOLDER``.

Each is a zip of a model's folder and ``expected.npz``: the best labels and scores of some rows. Run
it when the format changes.
"""

import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    TextClassifierXC,
    TopKCalibrator,
)
from sklearn_xc.one_vs_all.starts import Bias

TEXTS = ["soup broth ladle", "bread dough", "soup stock", "bread yeast oven", "ale malt"] * 12
NAMES = [["soup"], ["bread", "oven"], ["soup", "stock"], ["bread"], ["ale"]] * 12


def data():
    """Return sparse X (60, 12) and Y (60, 5)."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.4), dtype=np.float32)
    Y = sp.csr_array((rng.random((60, 5)) < 0.3).astype(np.int8))
    return X, Y


def models():
    """Return fitted models, by name."""
    X, Y = data()
    quick = {"random_state": 0, "max_iter": 3}
    made = {
        "OvALinearXC": OvALinearXC(init=Bias(-1.5)).fit(X, Y),
        "compact": OvALinearXC().fit(X, Y).compact(),
        "ImplicitSoftmaxSGD": ImplicitSoftmaxSGD(**quick).fit(X, Y),
        "DecompMIPSClassifier": DecompMIPSClassifier(**quick).fit(X, Y),
        "NGAMEEmbeddingXC": NGAMEEmbeddingXC(
            embedding_dim=8,
            label_features=LabelFeatures(X[:5]),
            random_state=0,
            max_iter=2,
            classifier_max_iter=2,
        ).fit(X, Y),
        "TopKCalibrator": TopKCalibrator(OvALinearXC(), cv=2, random_state=0).fit(X, Y),
    }
    made["TextClassifierXC"] = TextClassifierXC(classifier=OvALinearXC()).fit(TEXTS, NAMES)
    return made


def write(folder, name, model, rows):
    """Write the zip of a model, and what it answers to rows."""
    with tempfile.TemporaryDirectory() as place:
        model.save(Path(place) / "model")
        labels, scores = model.predict_topk(rows, 3)
        np.savez(Path(place) / "expected.npz", labels=labels, scores=scores)
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(Path(place).rglob("*")):
                if path.is_file():
                    entry = zipfile.ZipInfo(str(path.relative_to(place)))
                    file.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, model in models().items():
        rows = TEXTS[:5] if name == "TextClassifierXC" else data()[0][:10]
        write(Path(sys.argv[1]), name, model, rows)
