"""Softmax classification by implicit stochastic gradient descent: stable at any learning rate."""

from numbers import Integral

from sklearn_xc._sklearn import Interval
from sklearn_xc.kernels.softmax.rules import RULES
from sklearn_xc.softmax._parameters import documented
from sklearn_xc.softmax.classifier import SoftmaxClassifier
from sklearn_xc.softmax.training import MOST_SEARCHED
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings


@documented
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
    {alpha}
    {fit_intercept}
    n_negatives : int, default=2
        {n_negatives}
        The default of 2 does better than the 1 of [1]_, at little cost.
    {sampling}
    {n_hard_negatives}
        "auto" is 5 for single steps with at most 2,048 classes, and none otherwise: with more
        classes, implicit steps do as well without.
    batch_size : int, default=1
        Number of instances in a step. From 2 on, they share their `n_negatives` classes, sampled
        from all, and the step is solved for all of them together. With 32 or 64 of both, an
        instance costs several times as much as a single step, and its gradient has less variance.
        A batch steps along the mean of its instances: the best learning rate grows with its size.
    {init}
    {u_init}
    {learning_rate}
    {decay_to_max_memory}
    n_jobs : int, default=None
        Number of threads for the trials of "auto", evaluation and prediction, and for the steps of
        mini-batches: up to one for each 128 bytes of weights of sampled classes (32 classes in
        float32, 16 in float64), plus one, are useful. Single steps are taken one after another.
        The model is bit-for-bit the same for any number.
    {random_state_and_verbose}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {notes}

    Source: algorithm 1 and appendices E.3 and E.4 of [1]_. It differs in that u starts at its
    optimum by default, in the unknown that is solved for, and in the solution for mini-batches
    (see docs/softmax.md). Hard negatives are not in the paper.

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
        self,
        alpha=0.0,
        *,
        fit_intercept=True,
        n_negatives=2,
        sampling="frequency",
        n_hard_negatives="auto",
        batch_size=1,
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
            n_hard,
            sampling=self.sampling,
        )
