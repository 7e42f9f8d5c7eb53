"""Warnings that point to the caller of the package."""

import os
import re
import sys
import warnings
from importlib.util import find_spec
from typing import Any

#: Where code between the caller and a warning is: the package itself, decorators, loops in threads.
_SKIPPED = tuple(
    os.path.join(os.path.dirname(spec.origin), "")
    for spec in map(find_spec, ("sklearn_xc", "joblib", "numba", "sklearn"))
    if spec is not None and spec.origin is not None
)
#: Searches and cross-validation, which reset Python's own memory of warnings in each fold.
_FOLDS = os.path.join("sklearn", "model_selection", "")
#: Warnings that are not repeated: of folds, by line, category and text up to the first figure.
_given: set[Any] = set()


def warn(message: str, category: type[Warning] = UserWarning, once: str = "") -> None:
    """Give a warning that points to the line outside the package that led to it.

    A line that searches or cross-validates gets one warning for all folds. With a text `once`, the
    process gets one for that text. For the line, ``skip_file_prefixes`` of ``warnings.warn`` does
    the same from Python 3.12 on.
    """
    level = 2
    frame = sys._getframe(1)
    in_folds = False
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        in_folds |= _FOLDS in frame.f_code.co_filename
        frame, level = frame.f_back, level + 1
    if once or in_folds:
        text = re.split(r"[\d'\"]", message)[0]
        key = once or (frame.f_code.co_filename, frame.f_lineno, category, text)
        if key in _given:
            return
        _given.add(key)
    warnings.warn(message, category, stacklevel=level)
