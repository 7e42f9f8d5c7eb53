"""Malformed sparse matrices in every argument of every public call, in processes that may die."""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hostile_calls import calls
from hostile_child import answer_of, are_equal
from hostile_matrices import ARRAY_ODDITIES, CONTENTS, FAULTS, ODDITIES, well_formed

HERE = Path(__file__).parent
#: A case that takes longer hangs; the first of a process compiles what is not in the cache.
SECONDS = 300.0


def draw_cases(n_cases):
    """Yield random cases: a call, a matrix, and how the matrix is stored or malformed."""
    rng = np.random.default_rng(0)
    names = [f"{call.name} {call.argument}" for call in calls()]
    deck = []
    for number in range(n_cases):
        deck = deck or list(rng.permutation(names))
        fmt = str(rng.choice([*FAULTS]))
        fault, oddities = "", []
        if fmt in ("lil", "dok"):
            oddities = ["foreign byte order"] if rng.random() < 0.2 else []
        elif rng.random() < 0.8:
            n_oddities = int(rng.integers(1, 4))
            oddities = rng.choice([*ARRAY_ODDITIES], n_oddities, replace=False).tolist()
        if rng.random() < 0.4:
            fault = str(rng.choice([*FAULTS[fmt]]))
            oddities = [one for one in oddities if one != "other dtypes"]
        elif fmt in ("csr", "csc") and rng.random() < 0.5:
            oddities.insert(0, str(rng.choice([*ODDITIES])))
        plain = bool(fault) or rng.random() < 0.7
        yield {
            "number": number,
            "call": str(deck.pop()),
            "format": fmt,
            "kind": ("array", "matrix")[number % 2],
            "content": "plain" if plain else str(rng.choice([*CONTENTS])),
            "grown": [0, 0] if plain else rng.choice([-1, 0, 0, 0, 0, 1], 2).tolist(),
            "oddities": oddities,
            "fault": fault,
            "seed": number,
        }


def run(cases, folder):
    """Return the outcome of each case, by its number; a new process goes on after a crash."""
    outcomes, left, part = {}, list(cases), 0
    while left:
        to_do, done = folder / f"cases_{part}.jsonl", folder / f"outcomes_{part}.jsonl"
        to_do.write_text("".join(json.dumps(case) + "\n" for case in left))
        done.touch()
        command = [sys.executable, str(HERE / "hostile_child.py"), str(to_do), str(done)]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        size, since, hangs = -1, time.monotonic(), False
        while child.poll() is None:
            time.sleep(0.05)
            if done.stat().st_size != size:
                size, since = done.stat().st_size, time.monotonic()
            if time.monotonic() - since > SECONDS:
                hangs = True
                child.kill()
                child.wait()
        errors = child.stderr.read()
        child.stderr.close()
        lines = [json.loads(line) for line in done.read_text().splitlines() if line.endswith("}")]
        begun = [line["number"] for line in lines if line.get("begins")]
        outcomes |= {line["number"]: line for line in lines if "end" in line}
        if begun and begun[-1] not in outcomes:
            how = "hangs" if hangs else "crash"
            outcomes[begun[-1]] = {"end": how, "says": f"exit status {child.returncode}"}
        assert begun, errors  # it did not even start
        left = [case for case in left if case["number"] not in outcomes]
        part += 1
    return outcomes


def judge(n_cases, folder):
    """Raise AssertionError unless each case is answered rightly or refused."""
    cases = list(draw_cases(n_cases))
    outcomes = run(cases, folder)
    ends = Counter(outcome["end"] for outcome in outcomes.values())
    named = sum(outcome.get("named", False) for outcome in outcomes.values())
    report = [f"{dict(ends)}; {named / max(1, ends['refused']):.1%} of refusals name the argument"]
    for case in cases:
        outcome = outcomes[case["number"]]
        if outcome["end"] not in ("right", "refused"):
            report.append(f"{case}: {outcome['end']} {outcome['says']}")
    print(report[0])
    assert len(report) == 1, "\n".join(report[:40])
    assert named >= 0.95 * ends["refused"], report[0]


@pytest.mark.filterwarnings("ignore")
def test_dense_arrays_in_foreign_byte_order():
    for call in calls():
        values = well_formed(np.random.default_rng(0), call.shape, call.is_indicator)
        right = answer_of(call, values)
        answer = answer_of(call, values.astype(values.dtype.newbyteorder()))
        assert isinstance(answer, list) == isinstance(right, list), (call.name, answer)
        if isinstance(answer, list):
            assert all(map(are_equal, answer, right)), call.name


def test_some(tmp_path):
    judge(120, tmp_path)


@pytest.mark.slow
def test_many(tmp_path):
    judge(10_000, tmp_path)
