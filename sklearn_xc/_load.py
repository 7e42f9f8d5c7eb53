"""Opening saved models."""

import os
from typing import Any

from sklearn_xc.storage.models import load_model


def load(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Open a model that an estimator's ``save`` wrote, without running code from it.

    Opening is immediate, whatever the size: large arrays are memory maps of the files, which
    processes share, and only the parts that are used are read. Each megabyte of them is checked
    against its checksum before its first use; sizes, dtypes and ``meta.json`` are checked on
    opening. The folder may be read-only.

    Parameters
    ----------
    path : str or PathLike
        The folder.
    verify : bool, default=False
        Whether to read and check all of it now.

    Returns
    -------
    estimator
        The fitted estimator, as it was saved. Its predictions are bit-for-bit the same, and it can
        be fitted further.

    Raises
    ------
    SavedModelError
        If the folder holds no model, a damaged one, one of a newer format, or anything that a model
        may not hold.
    FileNotFoundError
        If there is no such folder.

    Notes
    -----
    Do not change the files of a model that is open. Save over it instead, which leaves open models
    intact.

    Examples
    --------
    >>> import tempfile
    >>> import sklearn_xc
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(n_samples=100, n_labels=10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sklearn_xc.OvALinearXC(C=2.0).fit(X, Y).save(folder)
    ...     model = sklearn_xc.load(folder)
    ...     labels, scores = model.predict_topk(X[:2], k=2)
    >>> model
    OvALinearXC(C=2.0)
    >>> labels.shape
    (2, 2)
    """
    return load_model(path, verify=verify)
