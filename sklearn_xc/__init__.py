"""Extreme classification, thousands to millions of labels, as scikit-learn estimators.

The public names are loaded when they are first used, so that a bare ``import sklearn_xc`` is fast
and does not start the compiler behind the inner loops.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "AutoXC": "sklearn_xc.ensemble.auto",
    "DecompMIPSClassifier": "sklearn_xc.decomposition",
    "DecompMIPSSkipGram": "sklearn_xc.decomposition.skip_gram",
    "ImplicitSoftmaxSGD": "sklearn_xc.softmax",
    "LabelFeatures": "sklearn_xc._labels.features",
    "LabelBinarizerXC": "sklearn_xc._labels.binarizer",
    "LabelHierarchy": "sklearn_xc._labels.hierarchy",
    "NGAMEEmbeddingXC": "sklearn_xc.embedding",
    "OvALinearXC": "sklearn_xc.one_vs_all",
    "OvALinearXCCV": "sklearn_xc.one_vs_all",
    "SKOPS_TRUSTED_TYPES": "sklearn_xc._state.values",
    "SoftmaxUMax": "sklearn_xc.softmax",
    "StackingXC": "sklearn_xc.ensemble.stacking",
    "TextClassifierXC": "sklearn_xc.text",
    "TextsWithFeatures": "sklearn_xc._input.texts_with_features",
    "ThresholdTuner": "sklearn_xc.ensemble.thresholds",
    "TopKCalibrator": "sklearn_xc.ensemble.calibration",
    "load": "sklearn_xc._state.files",
    "topk": "sklearn_xc._topk",
    "topk_names": "sklearn_xc._labels.topk_names",
}
_SUBPACKAGES = (
    "datasets",
    "decomposition",
    "embedding",
    "ensemble",
    "exceptions",
    "inspection",
    "metrics",
    "model_selection",
    "one_vs_all",
    "search",
    "softmax",
    "text",
)

__all__ = ["__version__", *_PUBLIC, *_SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _SUBPACKAGES:
        return importlib.import_module(f"sklearn_xc.{name}")
    raise AttributeError(f"module 'sklearn_xc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
