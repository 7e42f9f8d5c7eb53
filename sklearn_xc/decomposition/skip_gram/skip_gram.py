"""Word vectors from the softmax over all contexts."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import draw_seed
from sklearn_xc._input.parts import ParameterizedParts
from sklearn_xc._input.sklearn_private import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    fit_context,
)
from sklearn_xc._parallel.memory import parse_bytes, require_bytes
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._parallel.threads import count_threads, one_blas_thread
from sklearn_xc._state.fitted import SavedEstimator, fits_in_one_step
from sklearn_xc._state.schema import Array, declares
from sklearn_xc.decomposition.gradients import ExactGradient, MessagePassing, make_gradient
from sklearn_xc.decomposition.gradients.protocol import Gradient, GradientTask
from sklearn_xc.decomposition.skip_gram.collapsed_softmax import CollapsedSoftmax, ContextSampler
from sklearn_xc.decomposition.skip_gram.cooccurrence import Cooccurrences, read_counts
from sklearn_xc.decomposition.skip_gram.training import (
    Training,
    Vectors,
    random_start,
    training_bytes,
)
from sklearn_xc.decomposition.skip_gram.words import WordVectors
from sklearn_xc.search import make_index

#: n_candidates=None and n_sampled=None: shares of the contexts, and the least of each.
_CANDIDATES, _SAMPLED, _LEAST = 0.01, 0.02, 64


@declares(
    words_=Array("any", "words"),
    contexts_=Array("any", "contexts"),
    word_counts_=Array("int64", "words", least=0),
    input_vectors_=Array("float32", "words", "dim"),
    output_vectors_=Array("float32", "contexts", "dim"),
    vectors_=Array("float32", "words", "dim"),
    intercept_=Array("float32", "contexts"),
)
class DecompMIPSSkipGram(
    ParameterizedParts, WordVectors, SavedEstimator, CallbackSupportMixin, BaseEstimator
):
    """Word vectors by the skip-gram model, trained on its softmax over all contexts.

    A word has an input vector u and, as a context, an output vector w. The softmax of ``u_i . w_k
    + b_k`` over all k models how often context k occurs near word i. All occurrences of a word
    count as one, with the shares of its contexts ([1]_, equation 9): an iteration goes over
    distinct words, not over the text, and takes one step of the output vectors and one of the
    input vectors. In the softmax, a word's own contexts and those that `gradient` finds are scored
    exactly. All others are estimated from the first two moments of the output vectors, and a
    small sample corrects the rest. The gradient is right on
    average, with so little noise that an iteration gets nearly as far as one with the exact
    gradient.

    Parameters
    ----------
    embedding_dim : int, default=100
        Dimension of the vectors.
    window : int, default=8
        Largest distance at which words are contexts of each other; a pair at distance d counts
        ``(window - d + 1) / window``.
    min_count : int, default=5
        Rarer words are left out, and take up no place in a window.
    max_words : int or None, default=None
        Maximum number of words to keep, the most frequent ones.
    subsample : float or None, default=1e-4
        An occurrence of a word of relative frequency f is left out with probability
        ``1 - sqrt(subsample / f)``, if that is positive; None keeps all. Counts are means over
        three draws.
    gradient : {"sampled", "decomp_mips", "mips", "exact"} or Gradient, default="sampled"
        Which contexts are scored besides a word's own: only sampled ones; those found by a
        decomposed search; those found by a plain search for large inner products; or all.
    n_candidates : int or None, default=None
        Number of contexts that a search retrieves for a word. None takes a hundredth of all
        contexts, at least 64.
    n_sampled : int or None, default=None
        Number of contexts drawn for each mini-batch, to represent those that were not found. None
        takes a fiftieth of all contexts, at least 64.
    alpha : float, default=10.0
        Ridge: half of it times the squared norms of all vectors is added to the loss, summed over
        pairs. It keeps the vectors of rare words, about which little is known, short.
    learning_rate : float, default=0.5
        The share of a Newton step that the first iteration takes; iteration t, counted from 0,
        takes 1 / (1 + t / 10) of it.
    max_iter : int, default=10
        Number of iterations.
    vectors : {"sum", "input"}, default="sum"
        The vector of a word: the sum of its input and its output vector, each minus the mean of
        its kind and divided by the mean norm; or its input vector alone. The sum requires
        words and contexts to be the same.
    handle_unknown : {"error", "zero"}, default="error"
        Whether ``transform`` raises an error or returns zeros for words not seen in training.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on the memory of counts and training. None
        takes the free memory of the machine.
    n_jobs : int, default=None
        Number of threads. The model is the same, bit for bit, for any number.
    random_state : int, RandomState instance or None, default=None
        Seeds subsampling, the start vectors and the sampling of contexts.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    words_ : ndarray of str of shape (n_words,)
        Most frequent words first.
    contexts_ : ndarray of str of shape (n_contexts,)
        ``words_``, unless other names were given with a matrix of counts.
    word_counts_ : ndarray of int64 of shape (n_words,)
        Number of occurrences; for a matrix, its row sums, rounded.
    vectors_ : ndarray of float32 of shape (n_words, embedding_dim)
        By `vectors`, as it was in ``fit``.
    input_vectors_ : ndarray of float32 of shape (n_words, embedding_dim)
    output_vectors_ : ndarray of float32 of shape (n_contexts, embedding_dim)
    intercept_ : ndarray of float32 of shape (n_contexts,)
    fit_report_ : dict of ndarray of shape (n_iter,)
        ``loss``, per pair of a word and a context, before the iteration's steps; and ``seconds``.
    n_iter_ : int
        Number of iterations.

    See Also
    --------
    sklearn_xc.decomposition.skip_gram.count_contexts : Counts that ``fit`` needs, of sentences.

    Notes
    -----
    Time per iteration: some inner products and as many sums for each distinct pair of a word and a
    context, and for each word and context that is drawn. Memory: the counts, 8 bytes for each
    distinct pair, and about four times the size of all vectors.

    Source: [1]_, section 5.3. It differs in that contexts that were not found are not left out but
    estimated from moments and a sample; in the intercepts and the ridge; and in Newton steps with
    a shared curvature, since the paper does not define its steps.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSSkipGram
    >>> sentences = [["red", "apple"], ["red", "cherry"], ["grey", "cat"], ["grey", "dog"]] * 50
    >>> model = DecompMIPSSkipGram(4, subsample=None, vectors="input", random_state=0)
    >>> model = model.fit(sentences)
    >>> model.transform(["cat", "dog"]).shape
    (2, 4)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "embedding_dim": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 1, 1000, closed="both")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_words": [Interval(Integral, 1, None, closed="left"), None],
        "subsample": [Interval(Real, 0, 1, closed="right"), None],
        "gradient": "no_validation",  # make_gradient checks it
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "n_sampled": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "vectors": [StrOptions({"sum", "input"})],
        "handle_unknown": [StrOptions({"error", "zero"})],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        embedding_dim: int = 100,
        *,
        window: int = 8,
        min_count: int = 5,
        max_words: int | None = None,
        subsample: float | None = 1e-4,
        gradient: str | Gradient = "sampled",
        n_candidates: int | None = None,
        n_sampled: int | None = None,
        alpha: float = 10.0,
        learning_rate: float = 0.5,
        max_iter: int = 10,
        vectors: str = "sum",
        handle_unknown: str = "error",
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.embedding_dim = embedding_dim
        self.window = window
        self.min_count = min_count
        self.max_words = max_words
        self.subsample = subsample
        self.gradient = gradient
        self.n_candidates = n_candidates
        self.n_sampled = n_sampled
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.vectors = vectors
        self.handle_unknown = handle_unknown
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    input_vectors_: np.ndarray
    output_vectors_: np.ndarray
    fit_report_: dict[str, np.ndarray]
    n_iter_: int

    @fit_context(prefer_skip_nested_validation=True)
    @fits_in_one_step
    def fit(
        self, X: Any, y: Any = None, *, words: Any = None, contexts: Any = None
    ) -> "DecompMIPSSkipGram":
        """Learn word vectors.

        Parameters
        ----------
        X : iterable of lists of str; or matrix of shape (n_words, n_contexts)
            Sentences, such as ``(line.split() for line in file)``; or counts, dense or sparse, of
            how often each word occurs with each context.
        y : None
            Ignored.
        words : array-like of str of shape (n_words,), default=None
            Names of the rows of a matrix; None takes their numbers, as strings.
        contexts : array-like of str of shape (n_contexts,), default=None
            Names of its columns; None takes `words`, or the column numbers if there are not as
            many columns as words.

        Returns
        -------
        DecompMIPSSkipGram
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X is none of these, has no pairs of words, or has counts that are negative or not
            finite; and if training diverges.
        MemoryBudgetError
            If the vectors do not fit.

        Examples
        --------
        From counts of words with contexts:

        >>> import numpy as np
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> counts = np.array([[5, 0], [4, 1], [0, 6]])
        >>> model = DecompMIPSSkipGram(2, vectors="input", random_state=0)
        >>> model = model.fit(counts, words=["apple", "cherry", "cat"], contexts=["red", "grey"])
        >>> apple, cherry, cat = model.vectors_
        >>> bool(apple @ cherry > 0 > apple @ cat)
        True
        """
        caller = type(self).__name__
        seed = draw_seed(self.random_state)
        *names, counts = read_counts(self, X, words, contexts, seed, self._allowed_bytes())
        n_words, n_contexts = counts.shape
        if self.vectors == "sum" and n_words != n_contexts:
            raise ValueError(
                f"{caller}: vectors='sum' needs words and contexts to be the same. Got {n_words} "
                f"words and {n_contexts} contexts: set vectors='input'."
            )
        fit = Fit(self, X, y)
        training = self._training(counts, seed, self.gradient)
        self.words_, self.contexts_, self.word_counts_ = names
        self._run(training, fit)
        fit.end()
        return self

    def fit_transform(self, X: Any, y: Any = None, **names: Any) -> np.ndarray:
        """Learn word vectors, and return those of all words in the order of ``words_``.

        Parameters
        ----------
        X, y, **names
            As in ``fit``.

        Returns
        -------
        ndarray of float32 of shape (n_words, embedding_dim)
        """
        return self.fit(X, y, **names).vectors_.copy()

    def objective(self, X: Any) -> float:
        """Return the exact loss on counts, per pair of a word and a context.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_words, n_contexts)
            Counts of ``words_`` with ``contexts_``.

        Returns
        -------
        float
            The cross-entropy of contexts, in nats, over all of them; without the ridge.

        Raises
        ------
        ValueError
            For counts of another shape than in ``fit``, and counts that are negative or not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> counts = np.array([[5, 0], [4, 1], [0, 6]])
        >>> model = DecompMIPSSkipGram(2, vectors="input", random_state=0).fit(counts)
        >>> bool(model.objective(counts) < model.objective(counts[::-1]))
        True
        """
        check_is_fitted(self)
        caller = type(self).__name__
        counts = Cooccurrences.of(X, caller)
        seed = draw_seed(self.random_state)
        shape = len(self.words_), len(self.contexts_)
        if counts.shape != shape:
            raise ValueError(
                f"{caller}: X must have the shape of the counts of fit, {shape}. Got "
                f"{counts.shape}."
            )
        W = np.column_stack((self.output_vectors_, self.intercept_))
        with one_blas_thread():
            return self._training(counts, seed, "exact", (self.input_vectors_, W)).loss()

    def _training(
        self,
        counts: Cooccurrences,
        seed: int,
        gradient: str | Gradient,
        vectors: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Training:
        """Return a training from given input and output vectors, or random ones, if it fits."""
        caller = type(self).__name__
        n_words, n = counts.shape
        dim = int(self.embedding_dim) if vectors is None else vectors[0].shape[1]
        part = make_gradient(gradient, f"{caller}: gradient")
        if isinstance(part, MessagePassing):
            raise ValueError(
                f"{caller}: gradient must not be MessagePassing, which has no shares of contexts. "
                "Set it to 'decomp_mips'."
            )
        index = make_index(part.default_index, caller=f"{caller}: gradient")
        n_candidates = min(n, self.n_candidates or max(_LEAST, math.ceil(_CANDIDATES * n)))
        n_sampled = min(n, self.n_sampled or max(_LEAST, math.ceil(_SAMPLED * n)))
        require_bytes(
            training_bytes(counts, dim, part, index, n_candidates, n_sampled),
            self._allowed_bytes(),
            f"vectors, {n_words} words and {n} contexts x {dim} x 4 bytes, several "
            "times over for steps",
            "Lower embedding_dim, or raise min_count.",
            caller,
        )
        kind = part.default_index
        task = GradientTask(
            CollapsedSoftmax(), lambda: make_index(kind), n_candidates, dim, seed=seed
        )
        U, W = random_start(counts, dim, seed) if vectors is None else vectors
        return Training(
            counts,
            Vectors(U),
            Vectors(W),
            None if isinstance(part, ExactGradient) else part.start(task),
            ContextSampler(counts.context_totals, n_sampled),
            float(self.learning_rate),
            float(self.alpha),
            seed,
            count_threads(self.n_jobs, f"{caller}: n_jobs"),
        )

    def _run(self, training: Training, fit: Fit) -> None:
        """Take the iterations, and set the fitted attributes."""
        progress = fit.parts("iteration", int(self.max_iter))
        report: list[tuple[float, float]] = []

        def model_now() -> dict[str, Any]:  # for callbacks
            model = self._with_vectors(training, report)
            return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in model.items()}

        with one_blas_thread():
            for _ in range(int(self.max_iter)):
                task = progress.begin()
                report.append(training.iterate())
                if not (np.isfinite(report[-1][0]) and training.is_finite()):
                    raise ValueError(
                        f"{type(self).__name__}: training diverged at learning_rate="
                        f"{self.learning_rate:g}. Lower it, raise alpha, or raise n_sampled."
                    )
                if progress.end(task, f"loss {report[-1][0]:.4g}", model_now):
                    break
        progress.close()
        self.__dict__.update(self._with_vectors(training, report))

    def _with_vectors(
        self, training: Training, report: list[tuple[float, float]]
    ) -> dict[str, Any]:
        """Return all attributes, with the current vectors."""
        W = training.outputs.values
        loss, seconds = (np.array(column) for column in zip(*report, strict=True))
        U = training.inputs.values
        outputs = np.ascontiguousarray(W[:, :-1])
        return vars(self) | {
            "input_vectors_": U,
            "output_vectors_": outputs,
            "vectors_": U if self.vectors == "input" else _centred(U) + _centred(outputs),
            "intercept_": W[:, -1].copy(),
            "fit_report_": {"loss": loss, "seconds": seconds},
            "n_iter_": len(loss),
        }

    def _allowed_bytes(self) -> int | None:
        """Return `max_memory` in bytes; None for the free memory of the machine."""
        if self.max_memory is None:
            return None
        return parse_bytes(self.max_memory, f"{type(self).__name__}: max_memory")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = True
        return tags


def _centred(vectors: np.ndarray) -> np.ndarray:
    """Return vectors less their mean, divided by the mean of their norms.

    A constant that is added to all of them changes no softmax: of output vectors it cancels out,
    and of input vectors intercepts make up for it.
    """
    vectors = vectors - vectors.mean(axis=0)
    norm = float(np.linalg.norm(vectors, axis=1).mean())
    return vectors / np.float32(norm) if norm > 0 else vectors
