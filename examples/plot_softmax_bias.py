"""
What bias costs: the true normaliser against sampled softmax
============================================================

A softmax over thousands of classes is usually trained with a few sampled classes in place of the
normaliser. That is cheap, and ends at another model. How much does it cost, in likelihood and in
the honesty of the probabilities, where all else is equal? Works of the Tate collection, one of a
thousand subjects each, drawn from those of the work.
"""

# %%
# The data come with the package. Every work with one of the 1,000 most frequent subjects is kept,
# and one of these, drawn at random, is its class: 47,000 works to train on.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from asv_bench.softmax.biased_softmax import SampledSoftmax  # from the folder of the checkout
from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.datasets import load_tate_subjects

train, test = load_tate_subjects("train"), load_tate_subjects("test")
counts = np.asarray(train.target.sum(axis=0)).ravel()
subjects = np.argsort(-counts, kind="stable")[:1000]
rng = np.random.default_rng(0)


def draw_classes(target):
    """Return the works that have one of the subjects, and one of its subjects for each."""
    Y = target[:, subjects].tocsr()
    n_subjects = np.diff(Y.indptr)
    works = np.flatnonzero(n_subjects)
    drawn = Y.indptr[works] + (rng.random(len(works)) * n_subjects[works]).astype(int)
    return works, Y.indices[drawn]


vectorizer = TfidfVectorizer(min_df=2, dtype=np.float32)
works, y = draw_classes(train.target)
X = vectorizer.fit_transform([train.data[work] for work in works])
test_works, y_test = draw_classes(test.target)
known = np.isin(y_test, y)  # two of the subjects were not drawn once
test_works, y_test = test_works[known], y_test[known]
X_test = vectorizer.transform([test.data[work] for work in test_works])
print(f"{X.shape[0]:,} works, {X.shape[1]:,} words, {len(np.unique(y)):,} subjects")

# %%
# All methods run in the same loop, with five sampled subjects a step, from the means of the
# subjects' works; implicit SGD and U-max step along the gradient of the true likelihood, the others
# replace its normaliser with something else. How subjects are sampled is another question, so that
# each method is here twice, if it can be: with subjects drawn as often as they occur, and all
# equally often. Learning rates and epochs are found on works held out of the trials, for each
# method in the same way, and then all works are trained on.

common = {"init": "means", "n_negatives": 5, "random_state": 0}
common["fit_intercept"] = False  # as the sampled softmax of the literature
sampled = {"n_hard_negatives": 0, **common}
models = {}
for sampling in ("frequency", "uniform"):
    both = {
        "implicit SGD": ImplicitSoftmaxSGD(sampling=sampling, **sampled),
        "U-max": SoftmaxUMax(sampling=sampling, **sampled),
        "one-vs-each": SampledSoftmax("ove", sampling=sampling, **common),
        "importance sampling": SampledSoftmax("is", sampling=sampling, **common),
    }
    if sampling == "uniform":
        both["noise-contrastive"] = SampledSoftmax("nce", **common)
    models.update({f"{name}, {sampling}": model for name, model in both.items()})
models["implicit SGD, 5 hard"] = ImplicitSoftmaxSGD(n_hard_negatives=5, **common)
log_loss, top = {}, {}
print(f"{'':31s}{'log-loss':>10s}{'P@1':>8s}{'claimed':>9s}{'rate':>8s}{'epochs':>8s}{'s':>7s}")
for name, model in models.items():
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    log_proba = model.predict_log_proba(X_test)
    columns = np.searchsorted(model.classes_, y_test)
    log_loss[name] = -log_proba[np.arange(len(y_test)), columns].mean()
    best = log_proba.argmax(axis=1)
    top[name] = np.exp(log_proba.max(axis=1)), best == columns
    print(
        f"{name:31s}{log_loss[name]:10.3f}{100 * top[name][1].mean():8.1f}"
        f"{100 * top[name][0].mean():9.1f}{model.learning_rate_:8g}{model.n_iter_:8d}{seconds:7.1f}"
    )

# %%
# A probability is honest if of the works whose best subject is given 30%, 30% have it. On the left,
# the held-out log-loss with the exact normaliser, by epoch; on the right, how often the best
# subject is right, by the probability it was given.

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
colours = {
    "implicit SGD": "#000000", "U-max": "#0072B2", "one-vs-each": "#009E73",
    "importance sampling": "#E69F00", "noise-contrastive": "#CC79A7",
}  # fmt: skip
for name, model in models.items():
    method, how = name.split(", ")
    style = {"color": colours[method], "label": name, "markersize": 4}
    style["marker"] = {"frequency": "o", "uniform": "s", "5 hard": "*"}[how]
    style["linestyle"] = "--" if how == "uniform" else "-"
    losses = model.fit_report_["log_loss"]
    left.plot(1 + np.arange(model.n_iter_), losses, **{**style, "markevery": 4})
    claimed, right_ones = top[name]
    edges = np.quantile(claimed, np.linspace(0, 1, 11))
    bins = np.clip(np.searchsorted(edges, claimed, side="right") - 1, 0, 9)
    right.plot(
        [claimed[bins == b].mean() for b in np.unique(bins)],
        [right_ones[bins == b].mean() for b in np.unique(bins)],
        **style,
    )
right.plot([0, 1], [0, 1], color="0.7", linewidth=1, zorder=0)
left.set(xlabel="epoch", ylabel="log-loss of held-out works")
right.set(xlabel="probability given to the best subject", ylabel="share in which it is right")
right.set(xlim=(0, 0.95), ylim=(0, 0.6))
for ax in (left, right):
    ax.grid(alpha=0.3)
figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False)

# %%
# With the same sampling, one-vs-each is as good as the true likelihood: it bounds the likelihood
# from below, and on these works the bound costs nothing. Importance sampling and noise-contrastive
# estimation do cost: five of a thousand subjects are no normaliser. Nor is it enough to be
# unbiased: the steps of U-max with five sampled subjects are so noisy that it needs a small rate,
# and claims far too little when it ends. How subjects are sampled matters to all methods, and to
# importance sampling more than anything else. With five hard negatives implicit steps reach the
# same log-loss in a quarter of the epochs. Most methods claim too much where they are sure: there
# are few works for so many weights.

figure.savefig("softmax_bias.png", dpi=120)
print("figure written to softmax_bias.png")
