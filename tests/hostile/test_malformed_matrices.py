"""Malformed sparse matrices in arguments of public calls: refused by name, and never a crash.

Calls run in a fork, which writes each case before it begins and its outcome after it.
"""

import json
import os
import re
import sys
import traceback
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hostile_matrices import ARRAY_ODDITIES, FAULTS, ODDITIES, stored, well_formed

from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    LabelHierarchy,
    NGAMEEmbeddingXC,
    OvALinearXC,
    ThresholdTuner,
    metrics,
    topk,
)
from sklearn_xc.datasets import dump_xmc_file
from sklearn_xc.model_selection import cross_val_topk

N, D, L = 24, 12, 6
FEW = {"max_iter": 2, "random_state": 0}
ESTIMATORS = {
    "OvALinearXC": lambda: OvALinearXC(),
    "ImplicitSoftmaxSGD": lambda: ImplicitSoftmaxSGD(learning_rate=0.1, **FEW),
    "DecompMIPSClassifier": lambda: DecompMIPSClassifier(embedding_dim=4, **FEW),
    "NGAMEEmbeddingXC": lambda: NGAMEEmbeddingXC(
        embedding_dim=4, max_iter=1, classifier_max_iter=1, random_state=0
    ),
    "ThresholdTuner": lambda: ThresholdTuner(OvALinearXC(), cv=0.3, random_state=0),
}


def data():
    """Return well-formed X and Y, sparse."""
    rng = np.random.default_rng(7)
    X = rng.integers(1, 9, (N, D)) / 8 * (rng.random((N, D)) < 0.5)
    return sp.csr_array(X), sp.csr_array(well_formed(rng, (N, L), True))


def calls(folder):
    """Return by name: the argument in messages, its shape, whether it is an indicator, the call."""
    X, Y = data()
    ranked = np.argsort(-Y.toarray(), axis=1)[:, :3]
    tree = LabelHierarchy(range(6), [(0, 1), (1, 2), (3, 2), (4, 3)])
    ova = OvALinearXC().fit(X, Y)
    found = {
        "cross_val_topk": ("y", (N, L), True, lambda M: cross_val_topk(OvALinearXC(), X, M, cv=2)),
        "topk": ("X", (N, D), False, lambda M: topk(ova, M, 3)),
        "exclude": ("exclude", (N, L), True, lambda M: ova.predict_topk(X, 3, exclude=M)),
        "explain": ("x|X", (1, D), False, lambda M: ova.explain(M, 1).score),
        "init": ("init", (L, D), False, lambda M: OvALinearXC(init=M).fit(X, Y).predict_topk(X, 3)),
        "precision_at_k": ("Y_true", (N, L), True, lambda M: metrics.precision_at_k(M, ranked, 2)),
        "hierarchical_f1": ("Y_pred", (N, L), True, lambda M: metrics.hierarchical_f1(Y, M, tree)),
        "dump_xmc_file": ("Y", (N, L), True, lambda M: dump_xmc_file(folder / "data.txt", X, M)),
        "label_features": (
            "label_features|LabelFeatures|features",
            (L, D),
            False,
            lambda M: ESTIMATORS["NGAMEEmbeddingXC"]().fit(X, Y, label_features=M).predict_topk(X),
        ),
    }
    for name, make in ESTIMATORS.items():
        fitted = make().fit(X, Y)
        found |= {
            f"{name}.fit, X": ("X", (N, D), False, lambda M, f=make: f().fit(M, Y).predict_topk(X)),
            f"{name}.fit, y": ("y", (N, L), True, lambda M, f=make: f().fit(X, M).predict_topk(X)),
            f"{name}.predict_topk": ("X", (N, D), False, lambda M, f=fitted: f.predict_topk(M, 3)),
        }
    return found


def draw_case(rng, names):
    """Return a call, and how its matrix is stored or malformed."""
    fmt = str(rng.choice([*FAULTS]))
    fault, oddities = "", []
    if fmt not in ("lil", "dok"):
        oddities = rng.choice([*ARRAY_ODDITIES], int(rng.integers(3)), replace=False).tolist()
    if rng.random() < 0.5:
        fault = str(rng.choice([*FAULTS[fmt]]))
        oddities = [one for one in oddities if one != "other dtypes"]
    elif fmt in ("csr", "csc"):
        oddities.insert(0, str(rng.choice([*ODDITIES])))
    return str(rng.choice(names)), fmt, str(rng.choice(["array", "matrix"])), fault, oddities


def outcome_of(call, case, rng):
    """Return "right", "refused", or what was wrong."""
    argument, shape, is_indicator, run = call
    _, fmt, kind, fault, oddities = case
    values = well_formed(rng, shape, is_indicator)
    matrix = stored(values, fmt, kind)
    for name in oddities:
        (ODDITIES | ARRAY_ODDITIES)[name](matrix, rng)
    dtype = matrix.dtype.newbyteorder("=")
    if fault:
        FAULTS[fmt][fault](matrix, rng)
    try:
        answer = run(matrix)
    except (ValueError, TypeError) as error:
        is_named = re.search(rf"\b({argument})\b", str(error))
        return "refused" if is_named else f"the argument is not named: {error}"
    except BaseException:
        return traceback.format_exc()[-2000:]
    if fault:
        return "an answer to a malformed matrix"
    expected = run(stored(values.astype(dtype), "csr", kind))
    return "right" if are_equal(answer, expected) else "another answer"


def are_equal(a, b):
    if sp.issparse(a):
        a, b = a.toarray(), b.toarray()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(are_equal, a, b))
    return a is b or np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)


def run_cases(n_cases, folder):
    """Write each case to a file before it begins, and its outcome after it."""
    warnings.simplefilter("ignore")
    found = calls(folder)
    with open(folder / "log", "w", buffering=1) as log:
        for number in range(n_cases):
            rng = np.random.default_rng(number)
            case = draw_case(rng, [*found])
            print(json.dumps(case), file=log)
            print(json.dumps(outcome_of(found[case[0]], case, rng)), file=log)


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("n_cases", [150, pytest.param(1_500, marks=pytest.mark.slow)])
def test_malformed_matrices_are_refused_by_name_and_others_answered(n_cases, tmp_path):
    child = os.fork()
    if not child:
        try:
            run_cases(n_cases, tmp_path)
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert status == 0, lines[-1]
    cases = list(zip(lines[::2], lines[1::2], strict=True))
    assert len(cases) == n_cases
    wrong = [case for case in cases if case[1] not in ("right", "refused")]
    assert not wrong, "\n".join(map(str, wrong[:20]))
    assert {outcome for _, outcome in cases} == {"right", "refused"}
