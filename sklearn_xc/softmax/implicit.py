"""Softmax classification by implicit stochastic gradient descent: stable at any learning rate."""

from numbers import Integral

from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.softmax.classifier import SoftmaxClassifier
from sklearn_xc.softmax.kernels.rules import RULES
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings
from sklearn_xc.softmax.training import MOST_SEARCHED


class ImplicitSoftmaxSGD(SoftmaxClassifier):
    """Linear softmax (multinomial logistic) classifier, trained on a few sampled classes a step.

    Minimises the exact negative log-likelihood, for any number of classes::

        - sum_i log( exp(x_i.w_yi + b_yi) / sum_k exp(x_i.w_k + b_k) ) + 0.5 alpha sum_k |w_k|^2

    by implicit steps on a double sum over instances and classes, with an estimate u_i of each
    instance's log-normaliser [1]_. An implicit step minimises the sampled term plus half the
    squared distance moved, instead of following the gradient of the term: it cannot overshoot or
    overflow, at any learning rate. It reads only `n_negatives` + 1 weight vectors, on the
    non-zeros of one instance; its cost depends neither on the number of classes nor on that of
    instances. The steps are those of the true likelihood, unlike those of sampled softmax,
    noise-contrastive estimation or one-vs-each.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge added to the summed log-loss: C = 1 / alpha in scikit-learn's terms.
    n_negatives : int, default=2
        Number of classes other than the instance's own to sample at each step. More of them cost
        more and lower the variance; from n_classes - 1 on, all are taken.
    n_hard_negatives : int or "auto", default="auto"
        Number of additional classes in a step: those that score best for the instance. An exact
        search finds them before epochs 0, 1, 2, 4, 8, 16 and so on (unless the weights are 0),
        which costs as much as a prediction for all instances; with more than 2,048 classes, only
        once, at the start. Gradients stay unbiased and lose most of their variance. "auto" is 5
        for single steps with at most 2,048 classes, and none otherwise.
    batch_size : int, default=1
        Number of instances in a step. From 2 on, they share their `n_negatives` classes, sampled
        from all, and the step is solved for all of them together. With 32 or 64 of both, an
        instance costs several times as much as a single step, and its gradient has less variance.
        A batch steps along the mean of its instances: the best learning rate grows with its size.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {notes}

    Source: algorithm 1 and appendices E.3 and E.4 of [1]_. It differs in that u starts at its
    optimum, in the unknown that is solved for, and in the solution for mini-batches (see
    docs/papers/unbiased_softmax.md). Hard negatives are not in the paper.

    References
    ----------
    .. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577,
       2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import ImplicitSoftmaxSGD
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = ImplicitSoftmaxSGD(learning_rate=1.0, random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> bool(clf.score(X[1500:] / 16, y[1500:]) > 0.85)
    True
    >>> clf.predict_proba(X[:1] / 16).shape
    (1, 10)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **SoftmaxClassifier._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self, alpha=0.0, *, n_negatives=2, n_hard_negatives="auto", batch_size=1, **shared
    ):
        super().__init__(
            alpha, n_negatives=n_negatives, n_hard_negatives=n_hard_negatives, **shared
        )
        self.batch_size = batch_size

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        n_hard = self._n_hard() if self.batch_size == 1 else 0
        if self.n_hard_negatives == "auto" and problem.n_classes > MOST_SEARCHED:
            n_hard = 0  # implicit steps do as well without, and the search would take most time
        if self.n_hard_negatives not in (0, "auto") and self.batch_size > 1:
            raise ValueError(
                f"ImplicitSoftmaxSGD: n_hard_negatives={self.n_hard_negatives} needs batch_size=1, "
                f"as the instances of a batch share their classes. Got {self.batch_size}."
            )
        return SgdSettings(
            RULES["implicit"],
            self.n_negatives,
            self.batch_size,
            seed,
            n_hard=n_hard,
            sampling=self.sampling,
        )
