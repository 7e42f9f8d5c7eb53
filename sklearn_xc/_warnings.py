"""Warnings that point to the caller of the package."""

import os
import sys
import warnings
from importlib.util import find_spec

#: Where code between the caller and a warning is: the package itself, decorators, loops in threads.
_SKIPPED = tuple(
    os.path.join(os.path.dirname(spec.origin), "")
    for spec in map(find_spec, ("sklearn_xc", "joblib", "numba", "sklearn"))
    if spec is not None and spec.origin is not None
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that points to the line outside the package that led to it.

    From Python 3.12 on, ``skip_file_prefixes`` of ``warnings.warn`` does the same.
    """
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
