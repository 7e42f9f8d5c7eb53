"""Softmax classification by U-max: stochastic gradients that cannot explode."""

from numbers import Real

from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.softmax.classifier import SoftmaxClassifier
from sklearn_xc.softmax.kernels.rules import RULES, UMaxSettings
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings


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
    alpha : float, default=0.0
        Ridge added to the summed log-loss: C = 1 / alpha in scikit-learn's terms.
    n_negatives : int, default=5
        Number of classes other than the instance's own to sample at each step. More of them cost
        more and lower the variance; from n_classes - 1 on, all are taken.
    n_hard_negatives : int or "auto", default="auto"
        Number of additional classes in a step: those that score best for the instance. An exact
        search finds them before epochs 0, 1, 2, 4, 8, 16 and so on (unless the weights are 0),
        which costs as much as a prediction for all instances; with more than 2,048 classes, only
        once, at the start. Gradients stay unbiased and lose most of their variance. "auto" is 5;
        without hard negatives, one step can undo an epoch.
    delta : float, default=1.0
        u_i is lifted where it is more than this below what the sampled classes allow.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {notes}

    Source: algorithm 2 of [1]_. It differs in that the classes of a step are distinct, that u
    starts at its optimum, and that the ridge is applied as a proximal step, 1 / (1 + r) instead of
    1 - r. Hard negatives are not in the paper.

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

    def __init__(self, alpha=0.0, *, n_negatives=5, n_hard_negatives="auto", delta=1.0, **shared):
        super().__init__(
            alpha, n_negatives=n_negatives, n_hard_negatives=n_hard_negatives, **shared
        )
        self.delta = delta

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        rule = RULES["umax"]._replace(settings=UMaxSettings(float(self.delta)))
        return SgdSettings(
            rule, self.n_negatives, 1, seed, n_hard=self._n_hard(), sampling=self.sampling
        )
