"""
What do metrics miss when labels are missing?
=============================================

Nobody looks through a million labels, so true labels are missing from the data, including test
data. P@k then counts right answers as wrong. In propensity-scored metrics, the rarer the label, the
more a hit counts. What does that repair, and what not?
"""

# %%
# Only synthetic data have complete labels to compare with. We hide half of them, in training and
# test rows alike, in two ways: each label with the same chance, or rare labels more often than
# frequent ones, by the curve of ``propensity``. A label's propensity is its chance of being seen.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from sklearn_xc import OvALinearXC, TopKCalibrator
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

began = time.perf_counter()
rng = np.random.default_rng(0)
X, complete = make_xc_classification(10_000, 6000, 1500, labels_per_row=6, random_state=0)
n, k = 6000, 5
X_train, X_test, Y_test = X[:n], X[n:], complete[n:]
counts = np.asarray(complete[:n].sum(axis=0)).ravel()
rare_less = propensity(counts, n)
at_random = np.full(len(counts), np.average(rare_less, weights=counts))
chances = {"hidden at random": at_random, "rare labels hidden more": rare_less}


def hide(Y, chance):
    """Return Y with each label kept by its chance."""
    Y = Y.tocoo()
    rows, labels = Y.coords
    kept = rng.random(Y.nnz) < chance[labels]
    return csr_array((Y.data[kept], (rows[kept], labels[kept])), Y.shape)


# %%
# The systems to compare differ in one number, a: calibrated probabilities, learned from the
# incomplete training labels, are divided by the propensity to the power of a. With a = 0, frequent
# labels come first; a = 1 gives the order for propensity-scored precision; above that, rare labels
# come first.
#
# Four measures use incomplete test labels, as in practice: P@5; P@5 where a hit counts one over the
# true propensity, or one over that of the formula, computed from the training labels that are seen;
# and PSP@5, which is the latter divided by the best attainable value. The truth is P@5 with
# complete labels.

warnings.simplefilter("ignore", UnseenLabelWarning)
powers = np.linspace(0, 2, 11)
measures = ["P@5, complete", "P@5", "P@5 / true prop.", "P@5 / formula", "PSP@5"]
curves, noise = {}, {}
for how, chance in chances.items():
    Y, Y_seen = hide(complete[:n], chance), hide(Y_test, chance)
    model = TopKCalibrator(OvALinearXC(n_jobs=2), random_state=0).fit(X_train, Y)
    formula = propensity(model.label_counts_, n)
    P = model.predict_proba(X_test).toarray()
    curves[how] = np.empty((len(measures), len(powers)))
    for a, power in enumerate(powers):
        best = np.argsort(-P / formula**power, axis=1, kind="stable")[:, :k]
        hits = np.take_along_axis(Y_seen.toarray(), best, axis=1)
        weighted = [hits, hits / chance[best], hits / formula[best]]
        curves[how][0, a] = precision_at_k(Y_test, best, k=k)
        curves[how][1:4, a] = [values.mean() for values in weighted]
        curves[how][4, a] = psp_at_k(Y_seen, best, k=k, propensities=formula)
        if power == 1:
            noise[how] = [values.mean(axis=1).std() / len(best) ** 0.5 for values in weighted]
            full = psp_at_k(Y_test, best, k=k, propensities=formula)
    print(f"\n{how}: {100 * Y.sum() / counts.sum():.0f}% of the training labels are seen")
    print(f"{'a':20s}" + "".join(f"{power:7.1f}" for power in powers) + f"{'best':>7s}")
    for name, curve in zip(measures, 100 * curves[how], strict=True):
        print(f"{name:20s}" + "".join(f"{value:7.1f}" for value in curve), end="")
        print(f"{powers[curve.argmax()]:7.1f}")
    print("standard errors at a = 1:", *(f"{100 * error:.2f}" for error in noise[how]))
    print(f"PSP@5 at a = 1 with complete test labels: {100 * full:.1f}")
print(f"trained and evaluated {time.perf_counter() - began:.0f} s after the start")

# %%
# The large point marks where a measure is best: the system that one would choose by it.

looks = ["#000000", "#0072B2", "#009E73", "#E69F00", "#D55E00"]
styles = ["D-", "s-", "^--", "v--", "o:"]
labels = ["P@5, complete test labels", "P@5", "P@5, hits / true propensity"]
labels += ["P@5, hits / propensity by formula", "PSP@5"]
figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained", sharey=True)
for ax, (how, values) in zip(axes, curves.items(), strict=True):
    for curve, colour, style, label in zip(100 * values, looks, styles, labels, strict=True):
        ax.plot(powers, curve, style[1:], color=colour, linewidth=2)
        top = curve.argmax()
        ax.plot(powers[top], curve[top], style[0], color=colour, markersize=11)
        ax.plot([], [], style, color=colour, linewidth=2, markersize=8, label=label)
    ax.set_title(how, fontsize=13)
    ax.set_xlabel("a: how much rare labels are favoured", fontsize=12)
    ax.set_xticks([0, 0.5, 1, 1.5, 2])
    ax.tick_params(labelsize=11)
    ax.set_ylim(15, 52)
    ax.grid(axis="y", alpha=0.3)
axes[0].set_ylabel("in %", fontsize=12)
handles = axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=11)
figure.savefig("propensity.png", dpi=120)
print("figure written to propensity.png")

# %%
# Hiding labels at random halves P@5, from 43.3 to 20.9% with a = 0. But P@5 falls for all systems
# alike, and chooses the same one as the truth. What misleads here is the formula, which assumes
# that rare labels are hidden more. By the formula, a = 1 looks best, which is 0.9 points of true
# P@5 below the best.
#
# Where rare labels are hidden more, P@5 favours frequent ones: it chooses a = 0.4, if only just,
# with a true P@5 of 43.9%, while a = 1 would give 44.5%. Weighting hits by one over the true
# propensity repairs both the choice and the value, to within 0.3 points. With the formula, computed
# from the labels that are seen, the choice is right, too (a = 1 and 1.2 differ by less than the
# noise), but the value is 4 to 6 points too high.
#
# Watch out:
#
# - PSP@k is good for comparing systems on the same data, but is no estimate of P@k: it is 31.4%
#   with a = 1, where 44.5% of the five best are true. With complete test labels it would be 19.7%.
# - All of it rests on the propensities. The formula assumes that rare labels are hidden more,
#   whatever the data, and its counts lack labels themselves. Have some rows labelled completely to
#   check.
# - A few rare hits weigh heavily: the standard error of P@5 about doubles, from 0.3 to between 0.5
#   and 0.7 points.
