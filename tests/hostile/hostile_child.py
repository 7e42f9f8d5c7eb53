"""Runs cases one after the other, and writes before each that it begins and after it how it ended.

``python hostile_child.py CASES OUTCOMES``: both are files of JSON lines. A crash ends this process
and leaves the case that began last without an end.
"""

import json
import re
import sys
import warnings

import numpy as np
from hostile_calls import arrays_of, calls
from hostile_matrices import (
    ARRAY_ODDITIES,
    CONTENTS,
    FAULTS,
    ODDITIES,
    stored,
    well_formed,
)

#: Errors that say no; all others are accidents.
REFUSALS = (ValueError, TypeError)


def outcome_of(call, case):
    rng = np.random.default_rng(case["seed"])
    shape = tuple(n + more for n, more in zip(call.shape, case["grown"], strict=True))
    values = well_formed(rng, shape, call.is_indicator)
    CONTENTS[case["content"]](values, rng)
    matrix = stored(values, case["format"], case["kind"])
    for what in case["oddities"]:
        (ODDITIES | ARRAY_ODDITIES)[what](matrix, rng)
    dtype = matrix.dtype.newbyteorder("=")
    if case["fault"]:
        FAULTS[case["format"]][case["fault"]](matrix, rng)
    answer = answer_of(call, matrix)
    if not isinstance(answer, list):
        return answer
    if case["fault"]:
        return {"end": "answered", "says": "an answer to a malformed matrix"}
    right = answer_of(call, stored(values.astype(dtype), "csr", case["kind"]))
    if not isinstance(right, list):
        return {"end": "wrong", "says": f"the same as a native CSR: {right['says']}"}
    if call.has_gaps and "zeros are stored" in case["oddities"]:
        return {"end": "right"}
    same = len(answer) == len(right) and all(map(are_equal, answer, right))
    return {"end": "right"} if same else {"end": "wrong", "says": "another answer"}


def answer_of(call, matrix):
    """Return the arrays that a call answers, or how it ended without an answer."""
    try:
        return arrays_of(call.run(matrix))
    except REFUSALS as error:
        named = re.search(rf"\b({call.argument})\b", str(error)) is not None
        return {"end": "refused", "named": named, "says": f"{type(error).__name__}: {error}"}
    except BaseException as error:
        return {"end": "accident", "says": f"{type(error).__name__}: {error}"}


def are_equal(a, b):
    if a.shape != b.shape or a.dtype.kind not in "fciub":
        return a.shape == b.shape and (a == b).all()
    return np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)


def main(cases, outcomes):
    warnings.simplefilter("ignore")
    by_name = {f"{call.name} {call.argument}": call for call in calls()}
    with open(cases) as lines, open(outcomes, "a", buffering=1) as out:
        for line in lines:
            case = json.loads(line)
            out.write(json.dumps({"number": case["number"], "begins": True}) + "\n")
            outcome = outcome_of(by_name[case["call"]], case)
            out.write(json.dumps({"number": case["number"], **outcome}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
