"""The warnings and errors that sklearn_xc raises under names of its own.

Everything else is a plain ``ValueError`` or ``TypeError`` whose message names the argument, what
was expected and what was got.
"""

from sklearn.exceptions import ConvergenceWarning

from sklearn_xc._compile.notices import KernelCacheWarning

__all__ = [
    "ConvergenceWarning",
    "DataFormatError",
    "GridEdgeWarning",
    "KernelCacheWarning",
    "MemoryBudgetError",
    "PruningWarning",
    "SavedModelError",
    "SmallGroupWarning",
    "UnknownLabelWarning",
    "UnseenLabelWarning",
]


class DataFormatError(ValueError):
    r"""A data file does not follow its format; the message names file, line and token.

    Examples
    --------
    The third line of this file has a value that is not a number:

    >>> import pathlib, tempfile
    >>> from sklearn_xc.datasets import load_xmc_file
    >>> from sklearn_xc.exceptions import DataFormatError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.txt")
    ...     _ = path.write_text("2 4 3\n0,2 1:0.5 3:2\n0 1:x\n")
    ...     try:
    ...         load_xmc_file(path)
    ...     except DataFormatError as error:
    ...         print(str(error).replace(folder, "data"))
    data/train.txt, line 3: '1:x': expected a finite decimal number after the colon.
    """


class GridEdgeWarning(UserWarning):
    """The best value of a parameter is the smallest or largest that was tried.

    Examples
    --------
    To turn it into an error, so that it does not go unnoticed:

    >>> import warnings
    >>> from sklearn_xc import OvALinearXCCV
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.exceptions import GridEdgeWarning
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", GridEdgeWarning)
    ...     OvALinearXCCV(Cs=[0.1, 0.3, 1.0], cv=2).fit(X, Y)
    Traceback (most recent call last):
        ...
    sklearn_xc.exceptions.GridEdgeWarning: OvALinearXCCV: the best C, 1, is the largest of the 3
    in Cs_. A larger one may be better: give Cs as an array that reaches farther.
    """


class MemoryBudgetError(MemoryError):
    """The work cannot fit into memory; raised before the largest array is allocated.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.exceptions import MemoryBudgetError
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> try:
    ...     clf = OvALinearXC(max_memory="10kB").fit(X, Y)
    ... except MemoryBudgetError:
    ...     clf = OvALinearXC(max_memory="10MB").fit(X, Y)
    >>> clf.max_memory
    '10MB'
    """


class PruningWarning(UserWarning):
    """Zeroing small weights after training removed much of their squared norm.

    Examples
    --------
    Weights are of the order of 1 here, so none is left:

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.exceptions import PruningWarning
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PruningWarning)
    ...     OvALinearXC(prune=5.0).fit(X, Y)
    Traceback (most recent call last):
        ...
    sklearn_xc.exceptions.PruningWarning: OvALinearXC: prune=5.0 removed weights with 100% of
    their squared norm, in the mean over the labels: predictions need them. Lower it: weights are
    the smaller, the larger X is.
    """


class SavedModelError(ValueError):
    """A folder holds no saved model, a damaged one, or one of a newer format.

    Examples
    --------
    >>> import tempfile
    >>> import sklearn_xc
    >>> from sklearn_xc.exceptions import SavedModelError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         sklearn_xc.load(folder)
    ...     except SavedModelError as error:
    ...         print(str(error).replace(folder, "models/tagger"))
    models/tagger: holds no model, which is a folder with a meta.json. ...
    """


class SmallGroupWarning(UserWarning):
    """A group of labels has too few held-out rows to learn their probabilities from.

    Examples
    --------
    To silence it where only twelve rows are available:

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC, TopKCalibrator
    >>> from sklearn_xc.exceptions import SmallGroupWarning
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SmallGroupWarning)
    ...     clf = TopKCalibrator(OvALinearXC(), random_state=0)
    ...     clf = clf.fit(np.tile(X, (4, 1)), np.tile(Y, (4, 1)))
    >>> clf.predict_proba(X).shape
    (3, 2)
    """


class UnknownLabelWarning(UserWarning):
    """Label names are not known from the fit and are left out.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_xc.exceptions import UnknownLabelWarning
    >>> from sklearn_xc import LabelBinarizerXC
    >>> binarizer = LabelBinarizerXC().fit([["soup"], ["bread"]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", UnknownLabelWarning)
    ...     Y = binarizer.transform([["soup", "pie"], ["bread", "pie", "cake"]])
    >>> Y.toarray()
    array([[0, 1],
           [1, 0]], dtype=int8)
    >>> print(caught[0].message)
    LabelBinarizerXC: y holds 2 unknown names, 'pie' most often (2 times). They are left out.
    """


class UnseenLabelWarning(UserWarning):
    """Labels have no training instance; they are never predicted and rank below all others.

    Examples
    --------
    To silence it where it is expected that no instance has the third label:

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.exceptions import UnseenLabelWarning
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> Y = np.array([[1, 0, 0], [0, 1, 0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnseenLabelWarning)
    ...     clf = OvALinearXC().fit(X, Y)
    >>> clf.predict_topk(X, k=3)[0]
    array([[0, 1, 2],
           [1, 0, 2]])
    """
