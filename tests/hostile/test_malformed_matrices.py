"""Malformed sparse matrices in every argument of every public call, in processes that may die."""

import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hostile_calls import calls
from hostile_matrices import FAULTS, ODDITIES

HERE = Path(__file__).parent
#: A case that takes longer hangs; the first of a process compiles what is not in the cache.
SECONDS = 300.0


def all_cases(n_seeds):
    """Yield each call with each fault of each format, and each oddity of the compressed ones."""
    wanted = [(fmt, what) for fmt, faults in FAULTS.items() for what in faults]
    wanted += [(fmt, what) for fmt in ("csr", "csc") for what in ODDITIES]
    names = [f"{call.name} {call.argument}" for call in calls()]
    product = itertools.product(range(n_seeds), names, wanted)
    for number, (seed, name, (fmt, what)) in enumerate(product):
        kind = "array" if (number + seed) % 2 else "matrix"
        yield {
            "number": number, "call": name, "format": fmt, "what": what, "kind": kind,
            "seed": [seed, number],
        }  # fmt: skip


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


def judge(cases, outcomes):
    """Return counts of all endings, and the cases that did not end as they must."""
    ends, bad, named = Counter(), [], 0
    for case in cases:
        outcome = outcomes[case["number"]]
        is_fault = case["what"] in FAULTS[case["format"]]
        end = outcome["end"]
        ends[end] += 1
        named += bool(outcome.get("named"))
        if end not in (("refused",) if is_fault else ("right", "refused")):
            bad.append((case["call"], case["format"], case["what"], end, outcome.get("says", "")))
    return ends, bad, named / max(1, ends["refused"])


def report(ends, bad, named):
    lines = [f"{dict(ends)}; {named:.1%} of the messages name the argument"]
    return "\n".join([*lines, *(" | ".join(map(str, case)) for case in bad[:40])])


def test_some_of_each(tmp_path):
    cases = list(all_cases(1))
    chosen = np.random.default_rng(0).permutation(len(cases))[:350]
    cases = [cases[i] for i in chosen]
    found = judge(cases, run(cases, tmp_path))
    assert not found[1], report(*found)
    assert found[2] >= 0.95, report(*found)


@pytest.mark.slow
def test_all(tmp_path):
    cases = list(all_cases(2))
    assert len(cases) >= 10_000
    found = judge(cases, run(cases, tmp_path))
    print(report(*found))
    assert not found[1], report(*found)
    assert found[2] >= 0.95, report(*found)
