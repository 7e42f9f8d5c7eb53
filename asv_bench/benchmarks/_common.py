"""Data of the benchmarks: made by the package, or inside it. Nothing is downloaded."""

import warnings
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import load_tate_subjects, make_xc_classification
from sklearn_xc.exceptions import PruningWarning

N_SAMPLES, N_FEATURES, N_LABELS = 10_000, 10_000, 2_000

# The made labels warn with the default `prune`. Labels that do not converge are still heard of.
warnings.simplefilter("ignore", PruningWarning)


def made_data() -> tuple[Any, Any]:
    """Return X of shape (10,000, 10,000), 50 float32 non-zeros a row, and Y of 2,000 labels."""
    return make_xc_classification(N_SAMPLES, N_FEATURES, N_LABELS, random_state=0)


def small_data() -> tuple[Any, Any]:
    """Return X of shape (4,000, 5,000), 50 float32 non-zeros a row, and Y of 300 labels."""
    return make_xc_classification(4_000, 5_000, 300, random_state=0)


def tate_texts(n_works: int) -> tuple[list[str], Any, list[list[str]]]:
    """Return texts, subjects and the names of these, of some works."""
    tate = load_tate_subjects()
    works = np.random.default_rng(0).permutation(len(tate.data))[:n_works]
    Y, names = tate.target[works], np.array(tate.target_names, dtype=object)
    tags = [names[subjects].tolist() for subjects in np.split(Y.indices, Y.indptr[1:-1])]
    return [tate.data[work] for work in works], Y, tags


def tate_data(n_samples: int = 5_000) -> tuple[Any, Any]:
    """Return tf-idf features and subjects of some works, every subject on one work at least."""
    tate = load_tate_subjects()
    works = np.random.default_rng(0).permutation(len(tate.data))[:n_samples]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X = vectorizer.fit_transform([tate.data[work] for work in works])
    Y = tate.target[works]
    return X, Y[:, np.flatnonzero(Y.sum(axis=0))]


def warm_up(X: Any, Y: Any, **params: Any) -> None:
    """Load or compile what a fit with `params` runs, and what predicts after it."""
    OvALinearXC(**params).fit(X[:100], Y[:100, :16]).predict_topk(X[:1])
