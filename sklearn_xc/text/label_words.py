"""Words of label texts in the vocabulary of a vectorizer."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_xc._made_features import fit_transform


def fit_with_label_words(vectorizer: Any, X: Any, label_texts: Iterable[str]) -> Any:
    """Fit a vectorizer to texts, and return their features; it also learns words of label texts.

    A word of a label text is learnt even if fewer than `min_df` texts have it. Document frequencies
    are those of the texts.

    Parameters
    ----------
    vectorizer : transformer
        Fitted in place. One without a vocabulary, or with a given one, is fitted to X alone.
    X : sequence of n texts
        Training texts.
    label_texts : iterable of str
        Texts of the labels.

    Returns
    -------
    matrix of shape (n, n_features)
    """
    features = fit_transform(vectorizer, X)
    if not isinstance(vectorizer, CountVectorizer) or vectorizer.vocabulary is not None:
        return features
    analyze = vectorizer.build_analyzer()
    words = {word for text in label_texts for word in analyze(text)}
    words -= vectorizer.vocabulary_.keys()
    if not words:
        return features
    # Words that max_df or max_features excluded stay out: at least min_df texts have them.
    new = np.array(sorted(words))
    counter = CountVectorizer(analyzer=analyze, vocabulary=new, binary=True)
    n_texts = np.asarray(counter.transform(X).sum(axis=0)).ravel()
    least = vectorizer.min_df
    new = new[n_texts < (least if isinstance(least, int) else least * features.shape[0])]
    source = X
    if not getattr(vectorizer, "smooth_idf", True):  # the idf of a word of no text is infinite
        source = [*X, *label_texts]
    vectorizer.set_params(vocabulary=sorted([*vectorizer.vocabulary_, *new.tolist()])).fit(source)
    vectorizer.set_params(vocabulary=None)
    vectorizer.fixed_vocabulary_ = False  # as after a fit with this parameter
    return vectorizer.transform(X)
