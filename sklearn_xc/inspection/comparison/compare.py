"""Two fitted models are asked about the same instances."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_count, is_number, refuse_disguised
from sklearn_xc._seeds import draw_seed
from sklearn_xc._sklearn import num_samples
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.inspection.comparison import measures
from sklearn_xc.inspection.comparison.cases import Instances, sample_cases
from sklearn_xc.inspection.comparison.common_labels import common_labels
from sklearn_xc.inspection.comparison.model_comparison import ModelComparison
from sklearn_xc.metrics.hits import hits_of
from sklearn_xc.weights.label_weights import arrangements_dropped

_WHO = "compare_models"


def compare_models(
    model_a: Any,
    model_b: Any,
    X: Any,
    y: Any,
    *,
    k: int = 5,
    metrics: Any = None,
    names: Any = ("A", "B"),
    classes: Any = None,
    texts: Any = None,
    feature_names: Any = None,
    n_groups: int = 5,
    n_labels: int = 10,
    n_examples: int = 5,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: Any = None,
) -> ModelComparison:
    """Return a report on what the second model gains over the first and what it loses.

    Both models are given the same instances, on which neither was trained. The report tells which
    metrics differ by more than luck, for which label frequencies, and which labels gain and lose
    most. It also shows some instances for which only one model has the best label right, with an
    explanation of the other one's answer. It prints in a terminal, displays in a notebook, and its
    method ``to_html`` writes a web page.

    Parameters
    ----------
    model_a, model_b : classifiers
        Fitted: any that :func:`~sklearn_xc.topk` can query, including Pipelines and searches.
        Their labels are matched by name; they may be in any order, and need not be the same.
    X : object of n instances
        Input for both models, such as texts.
    y : {array-like, sparse matrix} of shape (n, n_labels) or (n,), or n lists of names
        True labels, in a form that one of the models was fitted with. Names that neither model
        knows count as missed by both.
    k : int, default=5
        Number of best labels of each instance to consider.
    metrics : list of str, default=None
        "P@k", "nDCG@k", "R@k", "PSP@k" or "PSnDCG@k" with a number for k; "micro-F1" and
        "macro-F1" of what ``predict`` returns. None takes P@1, P@k, nDCG@k, R@k, PSP@1 and PSP@k
        (if a model has ``label_counts_``) and both F1 (if ``predict`` returns label sets, not one
        class per instance).
    names : tuple of two str, default=("A", "B")
        What the report calls the models.
    classes : array-like of shape (n_labels,), default=None
        Names of the columns of y if it is an indicator. None takes those of a data frame,
        otherwise ``classes_`` of the models.
    texts : sequence of n texts, default=None
        What to show for each instance in the report. None shows X if it holds texts, otherwise the
        features with the largest values.
    feature_names : array-like of str of shape (n_features,), default=None
        Names of the columns of X, or of the features that the transformers of Pipelines make of
        it. None takes those that the Pipelines know.
    n_groups : int, default=5
        Number of groups of labels by training frequency, each with about the same number of
        training pairs.
    n_labels : int, default=10
        Number of labels that gain, and of labels that lose, to list in texts and pages.
    n_examples : int, default=5
        Number of instances drawn from those that gain, and from those that lose.
    confidence : float, default=0.95
        Confidence level of all intervals, in (0, 1).
    n_resamples : int, default=9999
        Number of resamples of each bootstrap.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible resamples and examples.

    Returns
    -------
    ModelComparison

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid or labels cannot be matched by name; the message says what was
        expected.

    See Also
    --------
    sklearn_xc.metrics.paired_bootstrap : The interval of one metric.
    MetricByFrequencyDisplay : A metric over label frequency, as a figure.

    Notes
    -----
    Intervals and p-values are those of :func:`~sklearn_xc.metrics.paired_bootstrap`, which
    resamples instances. For macro-F1, the mean over labels that are true for some instance or that
    the model names for some, labels are resampled, because rare ones are often true for only one
    instance. The intervals concern these instances or labels, with the models taken as they are.
    Each metric and group is judged by itself: of equal models, one in twenty differs clearly at a
    confidence of 0.95.

    Single labels differ by chance all the time. The p-value of a label is that of a sign test on
    the instances in which only one model finds it, and `q` is the rate of false discoveries among
    all labels with a p-value as small [1]_. Lists of gains and losses mark labels with q below
    0.05; for the others, they only give counts.

    If both models have ``label_counts_``, the larger count of a label is its frequency. Beyond the
    two predictions of each model, time and memory grow with instances times k and with the true
    pairs, never with instances times labels.

    References
    ----------
    .. [1] Benjamini and Hochberg, "Controlling the False Discovery Rate", Journal of the Royal
       Statistical Society B 57 (1), 1995.

    Examples
    --------
    >>> from sklearn_xc import TextClassifierXC
    >>> from sklearn_xc.inspection import compare_models
    >>> texts = ["how to freeze soup", "freezing bread dough", "a clear soup stock", "rye bread"]
    >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
    >>> small = TextClassifierXC(separator=";").fit(texts[:2], tags[:2])
    >>> large = TextClassifierXC(separator=";").fit(texts, tags)
    >>> found = compare_models(
    ...     small, large, ["clear soup", "dark rye"] * 10, ["soup", "bread"] * 10, k=2,
    ...     metrics=["P@1"], names=("small", "large"), random_state=0,
    ... )
    >>> found.metrics[0].name, float(found.metrics[0].difference)
    ('P@1', 1.0)
    >>> found.verdict
    'large is better than small in P@1, by more than luck.'
    """
    k = check_count(k, f"{_WHO}: k")
    n_groups = check_count(n_groups, f"{_WHO}: n_groups")
    n_labels = check_count(n_labels, f"{_WHO}: n_labels", least=0)
    n_examples = check_count(n_examples, f"{_WHO}: n_examples", least=0)
    n_resamples = check_count(n_resamples, f"{_WHO}: n_resamples", least=100)
    if not is_number(confidence) or not 0 < float(confidence) < 1:
        raise ValueError(f"{_WHO}: confidence must be between 0 and 1. Got {confidence!r}.")
    called = _check_names(names)
    wanted = measures.check_metrics(metrics, k, _WHO)
    check_sparse(X, "X", _WHO)
    refuse_disguised(X, f"{_WHO}: X")
    models = (model_a, model_b)
    labels = common_labels(_WHO, models, y, classes)
    n = len(labels.true.counts)
    _check_length(X, n, "X")
    if texts is not None:
        _check_length(texts, n, "texts")
    if not len(labels.true.rows):
        raise ValueError(f"{_WHO}: y must have true labels. Got none in {n} rows.")

    rng = np.random.default_rng(draw_seed(random_state))
    settings = measures.Settings(n_resamples, float(confidence), rng)
    deepest = max([k, *(one.k for one in wanted if not isinstance(one, str))])
    needs_named = any(isinstance(one, str) for one in wanted)
    answers = []
    for which, model in enumerate(models):
        with arrangements_dropped():  # two large models may fit, what they score with may not
            best = labels.rank(which, model, X, deepest)
            answers.append((best, labels.predict(which, model, X) if needs_named else None))
    (a, named_a), (b, named_b) = answers
    named: Any = (named_a, named_b)
    hits = tuple(
        hits_of(labels.true, each[:, :k], k, f"the best labels of {name}")
        for (each, _), name in zip((a, b), called, strict=True)
    )
    found = tuple(measures.found_pairs(labels.true, each) for each in hits)
    at_k = tuple((places[:, :k], scores[:, :k]) for places, scores in (a, b))
    instances = Instances(X, texts, feature_names)
    hit = (hits[0].hit, hits[1].hit)
    first = [each[:, 0] for each in hit]
    return ModelComparison(
        names=called,
        kinds=(type(model_a).__name__, type(model_b).__name__),
        k=k,
        n=n,
        confidence=float(confidence),
        label_names=labels.names,
        n_trained=labels.n_trained,
        metrics=measures.differences(
            labels, (a[0], b[0]), named, wanted, settings, is_default=metrics is None
        ),
        groups=measures.groups_of(labels, (found[0], found[1]), n_groups, settings),
        labels=measures.label_changes(labels, (hits[0], hits[1]), (found[0], found[1])),
        n_right_alone=(int((first[0] & ~first[1]).sum()), int((first[1] & ~first[0]).sum())),
        cases=sample_cases(labels, models, instances, (at_k[0], at_k[1]), hit, n_examples, rng),
        n_shown=n_labels,
    )


def _check_names(names: Any) -> tuple[str, str]:
    both = tuple(names) if isinstance(names, list | tuple) else ()
    if len(both) != 2 or not all(isinstance(one, str) and one for one in both):
        raise ValueError(f"{_WHO}: names must be two texts, one for each model. Got {names!r}.")
    if both[0] == both[1]:
        raise ValueError(f"{_WHO}: names must be two different texts. Got {names!r}.")
    return both[0], both[1]


def _check_length(values: Any, n: int, name: str) -> None:
    if isinstance(values, str | bytes):
        raise ValueError(f"{_WHO}: {name} must be a list of texts. Got one text.")
    found = int(num_samples(values))
    if found != n:
        raise ValueError(f"{_WHO}: {name} must have {n} rows, as many as y. Got {found}.")
