"""How well word vectors agree with people: on how similar words are, and on analogies."""

import math
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from sklearn_xc._input.arguments import check_numbers
from sklearn_xc.decomposition.skip_gram.nearest import nearest_rows, pair_cosines
from sklearn_xc.decomposition.skip_gram.word_arrays import (
    as_distinct_words,
    as_vectors,
    as_words,
    known_rows,
)


def spearman_of_pairs(model: Any, a: Any, b: Any, scores: Any) -> tuple[float, int]:
    """Return the rank correlation of cosines with human similarity ratings of pairs of words.

    Parameters
    ----------
    model : estimator, or tuple (words, vectors)
        Fitted, with ``words_`` and ``vectors_``; or arrays of shape (n_words,) and (n_words, dim).
    a, b : array-like of str of shape (n_pairs,)
        The words of each pair. Pairs with an unknown word are left out. If the model was fitted to
        lower-case words, pass lower-case words.
    scores : array-like of shape (n_pairs,)
        How similar the words are, in any unit.

    Returns
    -------
    rho : float
        Spearman's correlation, in [-1, 1]. NaN if fewer than two pairs are known, or all have the
        same score or the same cosine.
    n_used : int
        Number of pairs of two known words.

    Raises
    ------
    ValueError
        For different lengths, scores that are not finite, and words or vectors that do not match.
    TypeError
        For words that are not strings, and a model without vectors.

    Examples
    --------
    >>> from sklearn_xc.decomposition.skip_gram import spearman_of_pairs
    >>> model = ["bread", "rye", "car"], [[1.0, 0.1], [0.9, 0.2], [0.1, 1.0]]
    >>> first, second = ["bread", "bread", "bread"], ["rye", "car", "ham"]
    >>> rho, n_used = spearman_of_pairs(model, first, second, [7.5, 1.0, 6.0])
    >>> round(rho, 3), n_used
    (1.0, 2)
    """
    who = "spearman_of_pairs"
    words, vectors = _words_and_vectors(model, who)
    first, second = (as_words(given, f"{who}: {name}") for name, given in (("a", a), ("b", b)))
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"{who}: a and b must have the same shape (n_pairs,). Got {first.shape} and "
            f"{second.shape}."
        )
    truth = check_numbers(scores, f"{who}: scores", len(first), "pair")
    rows, others = known_rows(words, first), known_rows(words, second)
    is_known = (rows >= 0) & (others >= 0)
    # Without their last digits, so that words that are paired with themselves have equal ranks.
    cosines = pair_cosines(vectors, rows[is_known], others[is_known]).round(12)
    truth = truth[is_known]
    n_used = len(truth)
    if n_used < 2 or np.ptp(cosines) == 0 or np.ptp(truth) == 0:
        return math.nan, n_used
    return float(spearmanr(cosines, truth).statistic), n_used


def analogy_accuracy(model: Any, questions: Any) -> tuple[float, int]:
    """Return the share of analogies that vectors complete with the right word.

    Parameters
    ----------
    model : estimator, or tuple (words, vectors)
        Fitted, with ``words_`` and ``vectors_``; or arrays of shape (n_words,) and (n_words, dim).
    questions : array-like of str of shape (n, 4)
        "a is to b as c is to d". Questions with an unknown word are left out. If the model was
        fitted to lower-case words, pass lower-case words.

    Returns
    -------
    accuracy : float
        Share of the questions used for which 3CosAdd names d; see
        :meth:`~sklearn_xc.decomposition.skip_gram.queries.WordVectors.analogy`. NaN if there
        are none.
    n_used : int
        Number of questions of four known words.

    Raises
    ------
    ValueError
        For another shape, and words or vectors that do not match.
    TypeError
        For words that are not strings, and a model without vectors.

    Examples
    --------
    >>> from sklearn_xc.decomposition.skip_gram import analogy_accuracy
    >>> model = ["man", "woman", "king", "queen"], [[1, 0, 0], [1, 1, 0], [1, 0, 2], [1, 1, 2]]
    >>> analogy_accuracy(model, [["man", "woman", "king", "queen"]])
    (1.0, 1)
    """
    who = "analogy_accuracy"
    words, vectors = _words_and_vectors(model, who)
    asked = as_words(questions, f"{who}: questions")
    if asked.ndim != 2 or asked.shape[1] != 4:
        raise ValueError(f"{who}: questions must have shape (n, 4). Got shape {asked.shape}.")
    rows = known_rows(words, asked)
    rows = rows[(rows >= 0).all(axis=1)]
    if not len(rows):
        return math.nan, 0
    found, _ = nearest_rows(vectors, rows[:, :3], np.array([-1.0, 1.0, 1.0]), 1)
    return float((found == rows[:, 3:]).any(axis=1).mean()), len(rows)


def _words_and_vectors(model: Any, who: str) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(model, tuple) and len(model) == 2:
        words = as_distinct_words(model[0], f"{who}: words")
        return words, as_vectors(model[1], len(words), f"{who}: vectors")
    if not (hasattr(model, "words_") and hasattr(model, "vectors_")):
        raise TypeError(
            f"{who}: model must be fitted and have words_ and vectors_, or be a tuple (words, "
            f"vectors). Got {type(model).__name__}."
        )
    return model.words_, model.vectors_
