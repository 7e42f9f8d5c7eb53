"""Whatever a checkpoint folder holds: no code runs, nothing hangs or crashes, errors say why."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from crafted_checkpoints import MAY_CHANGE

PROGRAM = Path(__file__).with_name("crafted_checkpoints.py")


def run(folders, first, last, seconds):
    """Return how fits ended, by number; a child that dies or hangs is replaced."""
    found = {}
    while first < last:
        command = [sys.executable, "-W", "ignore", str(PROGRAM), folders, str(first), str(last)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
            out, why = done.stdout, f"ended with {done.returncode}: {done.stderr[-500:]}"
        except subprocess.TimeoutExpired as error:
            out, why = (error.stdout or b"").decode(), "hung"
        lines = out.splitlines()
        for line in lines:
            if line.startswith("end "):
                number, kind, ended = line[4:].split("\t")
                found[int(number)] = kind, ended
        tried = max((int(line[4:]) for line in lines if line.startswith("try ")), default=last)
        if tried not in found:
            found[tried] = "any", why
        first = tried + 1
    return found


@pytest.mark.skipif(os.name != "posix", reason="makes pipes and links")
@pytest.mark.parametrize("n", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_crafted_folders(n, tmp_path):
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "-1", "0"], check=True)
    found = {}
    for first in range(0, n, 50):
        found |= run(str(tmp_path), first, min(first + 50, n), 600)
    counts = Counter(ended for _, ended in found.values())
    print(counts, Counter((kind, ended) for kind, ended in found.values()))
    assert len(found) == n
    assert counts.keys() <= {"same", "refused", "other"}, [
        (number, *one)
        for number, one in found.items()
        if one[1] not in ("same", "refused", "other")
    ]
    assert not [
        (number, *one)
        for number, one in found.items()
        if one[1] == "other" and one[0].split(" ", 1)[1] not in MAY_CHANGE
    ]
