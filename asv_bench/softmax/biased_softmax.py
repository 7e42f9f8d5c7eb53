"""The methods that the softmax estimators are compared with, as one estimator."""

from numbers import Integral, Real

from asv_bench.softmax.biased_rules import BIASED_RULES, ShiftedSettings
from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._input.sklearn_private import Interval, StrOptions
from sklearn_xc.softmax.classifier import SoftmaxClassifier
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings

#: Methods and their names in tables.
METHODS = {
    "ove": "one-vs-each",
    "nce": "noise-contrastive",
    "is": "importance sampling",
    "vanilla": "vanilla",
    "raman": "Raman et al., lifted",
}


class SampledSoftmax(SoftmaxClassifier):
    """Linear softmax classifier trained by one of the methods that came before U-max.

    The loop is that of :class:`sklearn_xc.SoftmaxUMax`; only the step differs. "ove", "nce" and
    "is" are biased: they follow the gradients of other objectives. "vanilla" and "raman" are the
    double sum without a guard, and with another parameterisation of u.

    Parameters
    ----------
    method : {"ove", "nce", "is", "vanilla", "raman"}, default="is"
        The step; see ``biased_rules`` for losses and sources.
    n_negatives : int, default=5
        Classes sampled at each step.
    sampling : {"uniform", "frequency"}, default="uniform"
        As of :class:`sklearn_xc.SoftmaxUMax`; "nce" is for uniform noise alone.
    batch_size : int, default=1
        Instances of a step, 1 for "vanilla" and "raman"; the paper's is 100 for the others.
    delta : float, default=1.0
        Of the lift, for "raman".
    shift : float, default=1.0
        Of "raman": u is replaced with ``u + shift * x.w_y``. 0 is U-max.
    fit_intercept : bool, default=False
        As of :class:`sklearn_xc.SoftmaxUMax`.
    alpha, init, learning_rate, decay and further parameters
        As of :class:`sklearn_xc.SoftmaxUMax`.
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **SoftmaxClassifier._parameter_constraints,
        "method": [StrOptions(set(METHODS))],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "shift": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        method="is",
        *,
        n_negatives=5,
        sampling="uniform",
        batch_size=1,
        delta=1.0,
        shift=1.0,
        fit_intercept=False,
        init="zero",
        n_hard_negatives=0,
        alpha=0.0,
        learning_rate="auto",
        decay=0.9,
        max_iter=50,
        early_stopping="auto",
        validation_fraction="auto",
        tol=1e-3,
        label_names=None,
        top_k=100,
        warm_start=False,
        max_memory=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.method = method
        self.n_negatives = n_negatives
        self.sampling = sampling
        self.batch_size = batch_size
        self.delta = delta
        self.shift = shift
        self.fit_intercept = fit_intercept
        self.init = init
        self.n_hard_negatives = n_hard_negatives
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.decay = decay
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.label_names = label_names
        self.top_k = top_k
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        rule = BIASED_RULES[self.method]
        if self.method == "nce" and self.sampling != "uniform":
            raise ValueError(f'method="nce" needs sampling="uniform". Got {self.sampling!r}.')
        if self.batch_size > 1 and rule.batch_step is None:
            raise ValueError(f'method="{self.method}" needs batch_size=1. Got {self.batch_size}.')
        if self.method == "raman":
            shifted = ShiftedSettings(float(self.delta), float(self.shift))
            rule = rule._replace(settings=shifted)
        return SgdSettings(rule, self.n_negatives, self.batch_size, seed, sampling=self.sampling)


class FromZero:
    """Softmax estimators whose u start at 0, as in the code of the authors of U-max."""

    def _start(self, *args):
        problem, state, settings = super()._start(*args)  # type: ignore[misc]
        state.u[:] = 0.0
        return problem, state, settings


class SampledFromZero(FromZero, SampledSoftmax):
    """See ``SampledSoftmax``."""


class UMaxFromZero(FromZero, SoftmaxUMax):
    """See ``SoftmaxUMax``."""


class ImplicitFromZero(FromZero, ImplicitSoftmaxSGD):
    """See ``ImplicitSoftmaxSGD``."""
