"""Probabilities of linear models with the logistic loss: what that loss makes of their scores."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._out_of_fold import in_parts
from sklearn_xc._state import reads_one_state
from sklearn_xc.linear.model import LinearModel
from sklearn_xc.losses import Logistic

#: Scores of all classes that are held at a time where a row's chances must sum to 1.
_TOGETHER = 2**22


def _is_logistic(model: Any) -> bool:
    """Tell whether the fitted loss is the logistic one; before a fit, whether it is asked for."""
    is_logistic = vars(model).get("_is_logistic")
    if is_logistic is None:
        is_logistic = model.loss == "logistic" or type(model.loss) is Logistic
    if not is_logistic:
        who = type(model).__name__
        raise AttributeError(
            f"{who}: probabilities are those of loss='logistic'. Got loss={model.loss!r}, for "
            f"which TopKCalibrator({who}(...)) learns them."
        )
    return True


class LogisticModel(LinearModel):
    """A linear model that has probabilities after a fit with the logistic loss.

    A subclass has a parameter ``loss``, and sets ``_is_logistic`` in fit.
    """

    @available_if(_is_logistic)
    @reads_one_state
    def predict_proba(self, X: Any) -> Any:
        """Return the probability that each label is relevant, for ``loss="logistic"`` only.

        A label's probability is ``1 / (1 + exp(-score))``, independent of the other labels. This
        is what the logistic loss estimates, but for the effects of the ridge, of pruning, and of
        `class_weight` and `negative_weight`, which count labels as more or less frequent than they
        are. :class:`~sklearn_xc.TopKCalibrator` learns to correct for these from held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a sparse fit, a CSR with the probabilities of the ``top_k`` best labels of each
            row: a missing entry means that it was not scored, not that it is zero. After a 1-D
            fit, rows are divided by their sums. Labels without a training instance have 0.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(loss="logistic", C=30.0).fit(X, Y)
        >>> clf.predict_proba(X).round(1)
        array([[0.9, 0.2],
               [0.1, 0.9],
               [1. , 0.9]])
        """
        log_proba = self.predict_log_proba(X)
        if sp.issparse(log_proba):
            log_proba.data = np.exp(log_proba.data)
            return log_proba
        return np.exp(log_proba, out=log_proba)

    @available_if(_is_logistic)
    @reads_one_state
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the entries of :meth:`predict_proba`, -inf for 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
        """
        scores = self.decision_function(X)
        if sp.issparse(scores):
            scores.data = _log_sigmoid(scores.data)
            return scores
        if self._is_binary:
            scores = np.stack([-scores, scores], axis=1)
        logs = _log_sigmoid(scores)
        logs[:, self._unseen_labels] = -np.inf
        if self._targets_kind == "classes":
            logs -= logsumexp(logs, axis=1, keepdims=True)
        return logs

    @available_if(_is_logistic)
    @reads_one_state
    def predict_proba_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance, and their probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        candidates, exclude : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may or may not be returned, as in :meth:`predict_topk`. They do not
            affect the probability of a label.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            As in :meth:`predict_topk`.
        probabilities : ndarray of float of shape (n, k)
            Padded with 0.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(loss="logistic", C=30.0).fit(X, Y)
        >>> labels, probabilities = clf.predict_proba_topk(X, k=1)
        >>> labels.ravel(), probabilities.ravel().round(1)
        (array([0, 1, 0]), array([0.9, 0.9, 1. ]))
        """
        check_is_fitted(self)
        labels, scores = self.predict_topk(X, k, candidates=candidates, exclude=exclude)
        logs = _log_sigmoid(scores)
        if self._targets_kind == "classes" and not self._is_binary:
            size = max(1, _TOGETHER // len(self.classes_))
            for at, part in enumerate(in_parts(X, len(labels), size)):
                of_all = _log_sigmoid(self.decision_function(part))
                of_all[:, self._unseen_labels] = -np.inf
                own = slice(at * size, at * size + len(of_all))
                logs[own] -= logsumexp(of_all, axis=1, keepdims=True)
        logs[(labels < 0) | np.isin(labels, self._unseen_labels)] = -np.inf
        return labels, np.exp(logs)


def _log_sigmoid(scores: np.ndarray) -> np.ndarray:
    """Return ``log(1 / (1 + exp(-scores)))``, which neither overflows nor becomes -inf too soon."""
    return -np.logaddexp(scores.dtype.type(0.0), -scores)
