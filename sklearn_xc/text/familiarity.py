"""How much of a text's words a vectorizer has seen in training, and how much is usual.

In training every word is known unless the vectorizer cut it, so that what is usual is found by
leaving out: a word of one training text alone would be unknown without that text, and a word of two
is then one of one. Document frequencies tell this, and a sample of the texts is enough.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import binom

from sklearn_xc._sklearn import num_samples, safe_indexing
from sklearn_xc.exceptions import UnfamiliarTextWarning

#: Training texts that say what is usual.
_N_USUAL = 2000
#: Texts of a batch that are looked at for the warning.
_N_LOOKED_AT = 200
#: A text is strange if this share of the training texts is stranger, ...
_STRANGE = 0.1
#: ... and a batch if at least this share of its texts is strange, ...
_OF_BATCH = 0.5
#: ... or this one in a smaller batch, which may well be of one kind of texts, ...
_OF_FEW = 0.75
#: ... which as many texts like those in training would be this rarely.
_CHANCE = 1e-6


@dataclass(frozen=True, repr=False)
class Familiarity:
    """How familiar a classifier is with the words of some texts.

    Attributes
    ----------
    known : ndarray of float of shape (n,)
        The share of a text's different words (or whatever the vectorizer makes of it) that were
        learnt in training; NaN for a text without words.
    score : ndarray of float of shape (n,)
        The mean over these words of log(1 + df) / log(1 + n) with df the training texts that have
        the word, of n: 1 for a word of all texts, 0 for an unknown one. NaN without words.
    rank : ndarray of float of shape (n,)
        The share of the training texts whose score among the others is smaller, ties counted half:
        0.5 is usual, near 0 is strange. NaN without words.
    usual_known : float
        The mean of `known` over training texts, each seen from the others.
    """

    known: np.ndarray
    score: np.ndarray
    rank: np.ndarray
    usual_known: float

    def __repr__(self) -> str:
        has_words = ~np.isnan(self.known)
        if not has_words.any():
            return f"Familiarity of {len(self.known):,} texts, none with words"
        known, rank = self.known[has_words].mean(), np.median(self.rank[has_words])
        return (
            f"Familiarity of {len(self.known):,} texts: {known:.0%} of their words are known "
            f"(usual: {self.usual_known:.0%}), median rank {rank:.2f} (usual: 0.50)"
        )


class KnownWords:
    """What a fitted vectorizer has seen: how many texts have each word, and what is usual.

    Parameters
    ----------
    counts : ndarray of int32 of shape (n_words,)
        Training texts with each word of the vocabulary.
    n_texts : int
        Training texts.
    least : int
        In fewer texts a word would not have been learnt.
    usual_scores : ndarray of float of shape (m,), rising
        What ``Familiarity.score`` is of training texts, each seen from the others.
    usual_known : float
        The mean of ``Familiarity.known`` likewise.
    """

    def __init__(
        self, counts: np.ndarray, n_texts: int, least: int, usual_scores: np.ndarray,
        usual_known: float,
    ) -> None:  # fmt: skip
        self.counts, self.n_texts, self.least = counts, n_texts, least
        self.usual_scores, self.usual_known = usual_scores, usual_known

    @staticmethod
    def fits(state: Any, require: Callable[[str, int], bool]) -> bool:
        """Tell whether a state, from a file maybe, makes sense; its words are a length."""
        names = {"counts", "n_texts", "least", "usual_scores", "usual_known"}
        if type(state) is not dict or set(state) != names:
            return False
        counts, scores = np.asarray(state["counts"]), np.asarray(state["usual_scores"])
        return (
            counts.dtype == np.int32
            and counts.ndim == 1
            and require("words", len(counts))
            and scores.dtype.kind == "f"
            and scores.ndim == 1
            and all(type(state[name]) is int for name in ("n_texts", "least"))
            and type(state["usual_known"]) is float
        )

    @classmethod
    def of_fit(cls, vectorizer: Any, X: Any, features: Any) -> "KnownWords | None":
        """Return what is known after a fit, None for a vectorizer without a vocabulary.

        Parameters
        ----------
        vectorizer : transformer
            Fitted to X.
        X : sequence of n texts
        features : sparse matrix of shape (n, n_words)
            What ``fit_transform`` made of X.
        """
        words = getattr(vectorizer, "vocabulary_", None)
        if not isinstance(words, dict) or not hasattr(vectorizer, "build_analyzer"):
            return None
        is_of_words = sp.issparse(features) and features.shape[1] == len(words)
        if not is_of_words or getattr(vectorizer, "input", "content") != "content":
            return None
        columns = sp.csr_array(features)
        counts = np.bincount(columns.indices[columns.data != 0], minlength=len(words))
        n = features.shape[0]
        least = getattr(vectorizer, "min_df", 1)
        least = int(np.ceil(least * n)) if isinstance(least, float) else least
        if getattr(vectorizer, "fixed_vocabulary_", False):
            least = 0  # its words are known in any case
        found = cls(counts.astype(np.int32), n, int(least), np.empty(0), np.nan)
        rows = np.sort(np.random.default_rng(0).permutation(n)[:_N_USUAL])
        known, scores = found._measure(vectorizer, safe_indexing(X, rows), seen=1)
        has_words = ~np.isnan(known)
        if not has_words.any():
            return None
        found.usual_scores = np.sort(scores[has_words])
        found.usual_known = float(known[has_words].mean())
        return found

    def familiarity(self, vectorizer: Any, texts: Iterable) -> Familiarity:
        """Return how familiar texts are that were not trained on."""
        known, scores = self._measure(vectorizer, texts, seen=0)
        usual = self.usual_scores
        below = np.searchsorted(usual, scores) + np.searchsorted(usual, scores, side="right")
        rank = np.where(np.isnan(scores), np.nan, below / (2 * len(usual)))
        return Familiarity(known, scores, rank, self.usual_known)

    def warn_of_strange(self, vectorizer: Any, X: Any, who: str, stacklevel: int) -> None:
        """Warn if texts as a whole are far from those in training.

        Parameters
        ----------
        vectorizer : transformer
        X : sequence of n texts
            Of which some are looked at.
        who : str
            For the message.
        stacklevel : int
            Of who asked, seen from here.
        """
        n = int(num_samples(X))
        if _STRANGE**n >= _CHANCE:  # too few for any verdict
            return
        rows = np.unique(np.linspace(0, n - 1, min(n, _N_LOOKED_AT)).astype(np.int64))
        found = self.familiarity(vectorizer, safe_indexing(X, rows))
        has_words = ~np.isnan(found.rank)
        n_read, n_strange = int(has_words.sum()), int((found.rank[has_words] < _STRANGE).sum())
        share = _OF_BATCH if n_read >= _N_LOOKED_AT else _OF_FEW
        if n_strange < max(1, share * n_read):
            return
        if binom.sf(n_strange - 1, n_read, _STRANGE) >= _CHANCE:
            return
        known = float(found.known[has_words].mean())
        usual = self.usual_known
        words = (
            f"{known:.0%} of their words are known from training, where {usual:.0%} are usual"
            if known < usual - 0.02
            else "their words are known, but are rare in the training texts"
        )
        warnings.warn(
            f"{who}: these texts have little in common with the training texts: {words}. Are they "
            "in another language or from another source, or is it the wrong column of a table? "
            "Labels of such texts are not to be relied on. familiarity(X) tells how familiar each "
            f"text is; {n_strange} of {n_read} that were looked at are stranger than "
            f"{1 - _STRANGE:.0%} of the training texts.",
            UnfamiliarTextWarning,
            stacklevel=stacklevel + 1,
        )

    def _measure(
        self, vectorizer: Any, texts: Iterable, seen: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the share of known words and the score of each text; `seen` leaves so many out."""
        words: dict = vectorizer.vocabulary_
        analyse: Callable = vectorizer.build_analyzer()
        known, scores = [], []
        for text in texts:
            places = [words.get(word, -1) for word in dict.fromkeys(analyse(text))]
            if not places:
                known.append(np.nan)
                scores.append(np.nan)
                continue
            found = np.array([place for place in places if place >= 0], np.int64)
            counts = self.counts[found] - np.int32(seen)
            # A word that the vectorizer would not have learnt without the text is unknown to it.
            counts = counts[counts >= max(self.least, 1 if seen and self.least else 0)]
            known.append(len(counts) / len(places))
            scores.append(float(np.log1p(counts).sum()) / len(places))
        return np.array(known), np.array(scores) / np.log1p(max(1, self.n_texts - seen))
