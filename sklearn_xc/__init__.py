"""Extreme classification, thousands to millions of labels, as scikit-learn estimators.

The public names are loaded when they are first used, so that a bare ``import sklearn_xc`` is fast
and does not start the compiler behind the inner loops.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "DecompMIPSClassifier": "sklearn_xc.decomposition",
    "DecompMIPSSkipGram": "sklearn_xc.skip_gram",
    "ImplicitSoftmaxSGD": "sklearn_xc.softmax",
    "LabelFeatures": "sklearn_xc._label_features",
    "LabelHierarchy": "sklearn_xc.hierarchy",
    "NGAMEEmbeddingXC": "sklearn_xc.embedding",
    "OvALinearXC": "sklearn_xc.linear",
    "OvALinearXCCV": "sklearn_xc.linear",
    "SoftmaxUMax": "sklearn_xc.softmax",
    "StackingXC": "sklearn_xc.stacking",
    "TextClassifierXC": "sklearn_xc.text",
    "TextsWithFeatures": "sklearn_xc._texts_with_features",
    "ThresholdTuner": "sklearn_xc.thresholds",
    "TopKCalibrator": "sklearn_xc.calibration",
    "load": "sklearn_xc.storage.models",
    "show_versions": "sklearn_xc._show_versions",
    "topk": "sklearn_xc._topk",
    "topk_names": "sklearn_xc._topk_names",
}
_SUBPACKAGES = (
    "calibration",
    "datasets",
    "decomposition",
    "embedding",
    "encoders",
    "exceptions",
    "gradients",
    "hierarchy",
    "initialisers",
    "inspection",
    "linear",
    "losses",
    "metrics",
    "mips",
    "model_selection",
    "preprocessing",
    "samplers",
    "skip_gram",
    "softmax",
    "stacking",
    "text",
    "thresholds",
)

# For the package's own use; reached as attributes too.
_INTERNAL = (
    "base",
    "command_line",
    "integrations",
    "kernels",
    "parallel",
    "solvers",
    "storage",
    "weights",
)

__all__ = ["__version__", *_PUBLIC, *_SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _SUBPACKAGES or name in _INTERNAL:
        return importlib.import_module(f"sklearn_xc.{name}")
    raise AttributeError(f"module 'sklearn_xc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
