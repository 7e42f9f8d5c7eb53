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
from hostile_matrices import FAULTS, ODDITIES, stored, well_formed

#: Errors that say no; all others are accidents.
REFUSALS = (ValueError, TypeError)


def outcome_of(call, case):
    rng = np.random.default_rng(case["seed"])
    values = well_formed(rng, call.shape, call.is_indicator)
    matrix = stored(values, case["format"], case["kind"])
    is_fault = case["what"] in FAULTS[case["format"]]
    change = (FAULTS[case["format"]] if is_fault else ODDITIES)[case["what"]]
    change(matrix, rng)
    try:
        answer = arrays_of(call.run(matrix))
    except REFUSALS as error:
        named = re.search(rf"\b({call.argument})\b", str(error)) is not None
        return {"end": "refused", "named": named, "says": f"{type(error).__name__}: {error}"}
    except BaseException as error:
        return {"end": "accident", "says": f"{type(error).__name__}: {error}"}
    if is_fault:
        return {"end": "answered", "says": "an answer to what has no meaning"}
    right = arrays_of(call.run(stored(values, "csr", case["kind"])))
    if call.has_gaps and case["what"] == "zeros are stored":
        return {"end": "right"}
    same = len(answer) == len(right) and all(
        a.shape == b.shape
        and (np.allclose(a, b, 1e-5, 1e-6) if a.dtype.kind in "fiub" else (a == b).all())
        for a, b in zip(answer, right, strict=True)
    )
    return {"end": "right"} if same else {"end": "wrong", "says": "another answer"}


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
