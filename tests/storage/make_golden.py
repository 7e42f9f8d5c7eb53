"""Writes the saved models that every later version must read: ``python make_golden.py N FOLDER``.

N is the format. Each is a zip of a model's folder and ``expected.npz``: rows, and the best labels
and scores. Run it for a new format only, into a folder of its own, for models that need this
format: the files of older formats stay as they are.
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
    OvALinearXCCV,
    SoftmaxUMax,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
)
from sklearn_xc.initialisers import Bias
from sklearn_xc.weights.tensors import Tensors

TEXTS = ["soup broth ladle", "bread dough", "soup stock", "bread yeast oven", "ale malt"] * 12
NAMES = [["soup"], ["bread", "oven"], ["soup", "stock"], ["bread"], ["ale"]] * 12


def data():
    """Return sparse X (60, 12) and Y (60, 5)."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.4), dtype=np.float32)
    Y = sp.csr_array((rng.random((60, 5)) < 0.3).astype(np.int8))
    return X, Y


def network():
    """Return arrays of several dtypes and shapes."""
    rng = np.random.default_rng(0)
    return {
        "layer.0.weight": rng.normal(size=(12, 5)).astype(np.float32),
        "layer.0.bias": np.zeros(5, np.float32),
        "empty": np.zeros((0, 3), np.float16),
        "n_steps": np.array(7),
        "is_given": np.array([True, False, True]),
    }


def tensor_models():
    """Return fitted models of format 3, by name."""
    X, Y = data()
    model = OvALinearXC().fit(X, Y)
    model.network_ = Tensors(network())
    return {"tensors": model}


def compact_models():
    """Return fitted models of format 2, by name."""
    rng = np.random.default_rng(0)
    X, Y = data()
    many = sp.csr_array((rng.random((60, 300)) < 0.1).astype(np.int8))
    return {
        "compact": OvALinearXC().fit(X, Y).compact(),
        "compact_columns": OvALinearXC().fit(X, many).compact(),
    }


def models():
    """Return fitted models of format 1, by name."""
    X, Y = data()
    quick = {"random_state": 0, "max_iter": 3}
    members = [("ova", OvALinearXC()), ("softmax", ImplicitSoftmaxSGD(**quick))]
    made = {
        "OvALinearXC": OvALinearXC(init=Bias(-1.5)),
        "OvALinearXC_logistic": OvALinearXC(loss="logistic"),
        "OvALinearXCCV": OvALinearXCCV(Cs=[0.1, 1.0], cv=2),
        "SoftmaxUMax": SoftmaxUMax(**quick),
        "ImplicitSoftmaxSGD": ImplicitSoftmaxSGD(**quick),
        "DecompMIPSClassifier": DecompMIPSClassifier(**quick),
        "NGAMEEmbeddingXC": NGAMEEmbeddingXC(
            embedding_dim=8, label_features=LabelFeatures(X[:5]), random_state=0, max_iter=2,
            classifier_max_iter=2,
        ),
        "StackingXC": StackingXC(members, cv=2, n_candidates=5, random_state=0),
        "ThresholdTuner": ThresholdTuner(OvALinearXC(), cv=2, random_state=0),
        "TopKCalibrator": TopKCalibrator(OvALinearXC(), cv=2, random_state=0),
    }  # fmt: skip
    for model in made.values():
        model.fit(X, Y)
    made["classes"] = OvALinearXC().fit(X, np.array(list("abcde"))[np.arange(60) % 5])
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


def main(number, folder):
    """Write all models of a format."""
    X, _ = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {"1": models, "2": compact_models, "3": tensor_models}[number]()
    for name, model in made.items():
        write(Path(folder), name, model, TEXTS[:5] if name == "TextClassifierXC" else X[:10])


if __name__ == "__main__":
    main(*sys.argv[1:])
