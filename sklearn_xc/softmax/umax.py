"""Softmax classification by U-max: stochastic gradients that cannot explode."""

import math
from numbers import Real

from sklearn_xc._sklearn import Interval
from sklearn_xc.kernels.softmax.rules import RULES, UMaxSettings
from sklearn_xc.softmax._parameters import documented
from sklearn_xc.softmax.classifier import SoftmaxClassifier
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings


@documented
class SoftmaxUMax(SoftmaxClassifier):
    """Linear softmax (multinomial logistic) classifier, trained on a few sampled classes a step.

    Minimises the exact negative log-likelihood, for any number of classes::

        - sum_i log( exp(x_i.w_yi + b_yi) / sum_k exp(x_i.w_k + b_k) ) + 0.5 alpha sum_k |w_k|^2

    with stochastic gradients of a double sum over instances and classes, with an estimate u_i of
    each instance's log-normaliser [1]_. A step reads only `n_negatives` + 1 weight vectors, on the
    non-zeros of one instance: its cost depends neither on the number of classes nor on that of
    instances, and its gradients are unbiased, unlike those of sampled softmax, noise-contrastive
    estimation or one-vs-each. U-max lifts u_i where the sampled classes prove it too low by more
    than `delta`; without this, gradients can be arbitrarily large.

    :class:`ImplicitSoftmaxSGD` tolerates larger learning rates and offers mini-batches: try it
    first.

    Parameters
    ----------
    {alpha}
    {fit_intercept}
    n_negatives : int, default=5
        {n_negatives}
        The default of 5 is that of [1]_.
    {sampling}
    {n_hard_negatives}
        "auto" is 5; without hard negatives, one step can undo an epoch.
    delta : float, default=1.0
        u_i is lifted where it is more than this below what the sampled classes allow.
    {init}
    {u_init}
    {learning_rate}
    {decay_to_max_memory}
    n_jobs : int, default=None
        Number of threads for the trials of "auto", evaluation and prediction; the steps of an
        epoch are taken one after another. The model is bit-for-bit the same for any number.
    {random_state_and_verbose}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {notes}

    Source: algorithm 2 of [1]_. It differs in that the classes of a step are distinct, that u
    starts at its optimum by default, and that the ridge is applied as a proximal step, 1 / (1 + r)
    instead of 1 - r. With a ridge, u and W are projected onto the bounds of appendix B. Hard
    negatives are not in the paper.

    References
    ----------
    .. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577,
       2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import SoftmaxUMax
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SoftmaxUMax(learning_rate=0.1, random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> bool(clf.score(X[1500:] / 16, y[1500:]) > 0.85)
    True
    >>> clf.predict_proba(X[:1] / 16).shape
    (1, 10)
    """

    _diverging_advice = ", or use ImplicitSoftmaxSGD."
    _parameter_constraints: dict = {  # noqa: RUF012
        **SoftmaxClassifier._parameter_constraints,
        "delta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        alpha=0.0,
        *,
        fit_intercept=True,
        n_negatives=5,
        sampling="frequency",
        n_hard_negatives="auto",
        delta=1.0,
        init="means",
        u_init="optimal",
        learning_rate="auto",
        decay=0.9,
        average=False,
        max_iter=50,
        multilabel="all",
        early_stopping="auto",
        validation_fraction="auto",
        n_iter_no_change=3,
        tol=1e-3,
        label_names=None,
        top_k=100,
        warm_start=False,
        max_memory=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            alpha=alpha, fit_intercept=fit_intercept, n_negatives=n_negatives, sampling=sampling,
            n_hard_negatives=n_hard_negatives, init=init, u_init=u_init,
            learning_rate=learning_rate, decay=decay, average=average, max_iter=max_iter,
            multilabel=multilabel, early_stopping=early_stopping,
            validation_fraction=validation_fraction, n_iter_no_change=n_iter_no_change, tol=tol,
            label_names=label_names, top_k=top_k, warm_start=warm_start, max_memory=max_memory,
            n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.delta = delta

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        largest_u = math.inf if self.fit_intercept else problem.largest_normaliser()
        return SgdSettings(
            RULES["umax"]._replace(settings=UMaxSettings(float(self.delta), largest_u)),
            self.n_negatives,
            1,
            seed,
            self._n_hard(),
            problem.radius(),
            self.sampling,
        )
