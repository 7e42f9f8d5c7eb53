"""Whatever becomes of the files of the cache: the result is right, and the next process finds all.

Each child process takes many folders, one after the other, as each would in a process of its own.
"""

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc
from sklearn_xc._compile.cache import _checksum

# plus_one and plus_two have the same code and signature, and differ in what a name means to them.
PROBE = """
import json, os, pathlib, shutil, sys, types, warnings
import numba, numpy as np
from sklearn_xc._compile import notices
from sklearn_xc._compile.jit import kernel
from sklearn_xc._compile.notices import KernelCacheWarning

def plus_one(x):
    return x + number

number = 1.0
plus_two = types.FunctionType(plus_one.__code__, {"number": 2.0, "__name__": __name__})
plus_two.__qualname__ = "plus_two"

def total(values):
    result = values[0]
    for t in range(1, len(values)):
        result += values[t]
    return result

def make():
    return [kernel(function) for function in (plus_one, plus_two, total)]

def call(kernels):
    first, second, total = kernels
    return [first(1.0), second(1.0), total(np.ones(4)), int(total(np.ones(5, np.int64)))]

def hits(kernels):
    return sum(sum(each.stats.cache_hits.values()) for each in kernels)

def outcome(folder, change=None):
    numba.config.CACHE_DIR = folder
    notices._has_warned = False
    kernels = make()
    if change:
        change(pathlib.Path(kernels[0].stats.cache_path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = call(kernels)
    assert all(each.category is KernelCacheWarning for each in caught), caught
    return results, hits(kernels), [str(each.message) for each in caught]
"""
RESULTS = [2.0, 3.0, 4.0, 5]
N_FILES = 4


def start(code, site):
    """Start a process that has imported everything of the probe."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    root = Path(sklearn_xc.__file__).parent.parent
    env |= {"PYTHONPATH": f"{site}{os.pathsep}{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", f"from probe import *\n{code}"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True)


def run(code, site):
    process = start(code, site)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def outcomes(folders, site):
    """Return (results, hits, warnings) of a process for each of the folders."""
    folders = [str(folder) for folder in folders]
    return run(f"for folder in {folders}: print(json.dumps(outcome(folder)), flush=True)", site)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder with the probe and a complete cache."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "probe.py").write_text(PROBE)
    assert outcomes([folder / "cache"] * 2, folder) == [
        [RESULTS, 0, []],
        [RESULTS, N_FILES, []],
    ]
    assert len(files_of(folder / "cache")) == N_FILES
    return folder


def files_of(cache):
    return sorted(path for path in cache.rglob("*") if path.is_file())


def cut(length):
    return lambda path, _: path.write_bytes(path.read_bytes()[:length])


def write_what_ends_the_process(path, _):
    evil = pickle.dumps(Ends())
    path.write_bytes(bytes(32) + path.read_bytes()[32:64] + evil)


class Ends:
    """What ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (9,)


def change_version(path, _):
    content = bytes(32) + path.read_bytes()[64:]
    path.write_bytes(_checksum(content) + content)


def make_folder(path, _):
    path.unlink()
    path.mkdir()
    (path / "file").touch()


def link_to(target):
    def link(path, _):
        path.unlink()
        path.symlink_to(path if target is None else target)

    return link


DAMAGES = {
    "emptied": cut(0),
    "cut within the checksum": cut(20),
    "cut in the middle": lambda path, _: os.truncate(path, path.stat().st_size // 2),
    "another pickle": write_what_ends_the_process,
    "another kernel's": lambda path, other: shutil.copyfile(other, path),
    "a folder": make_folder,
    "unreadable": link_to(None),
}
ABSENCES = {
    "missing": lambda path, _: path.unlink(),
    "a link to nothing": link_to("nowhere"),
    "of another version": change_version,
}


def flip(number):
    """Return what flips one bit; `number` decides which one."""

    def flip_one(path, _):
        content = bytearray(path.read_bytes())
        draw = random.Random(number)
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)

    return flip_one


def check_damages(cases, site, tmp_path):
    """Have a process see each (name, damage, number of the file), and another one see it healed."""
    caches = []
    for number, (_, damage, which) in enumerate(cases):
        caches.append(tmp_path / str(number))
        shutil.copytree(site / "cache", caches[-1])
        files = files_of(caches[-1])
        damage(files[which], files[(which + 1) % N_FILES])
    seen = outcomes(caches, site)
    assert len(seen) == len(cases)
    for (name, _, which), cache, (results, hits, warnings) in zip(cases, caches, seen, strict=True):
        assert (results, hits) == (RESULTS, N_FILES - 1), (name, which)
        assert len(warnings) == (name not in ABSENCES), (name, which, warnings)
        for warning in warnings:
            assert f"compiled code in {cache}" in warning
            assert "is damaged (" in warning
            assert "compiled again, results are right" in warning
    for case, healed in zip(cases, outcomes(caches, site), strict=True):
        assert healed == [RESULTS, N_FILES, []], case


def test_each_damage_is_found_told_and_healed(site, tmp_path):
    changes = {**DAMAGES, **ABSENCES}
    cases = [(name, changes[name], which % N_FILES) for which, name in enumerate(changes)]
    cases += [("another kernel's", DAMAGES["another kernel's"], which) for which in range(N_FILES)]
    cases += [("flip", flip(n), n % N_FILES) for n in range(4)]
    check_damages(cases, site, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="a signal of POSIX")
def test_a_process_killed_while_it_writes_leaves_nothing_that_harms(site, tmp_path):
    # The system itself kills it, at its 100th byte.
    code = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
outcome({str(tmp_path / "cache")!r})
"""
    killed = start(code, site)
    killed.communicate()
    assert killed.returncode == -signal.SIGXFSZ
    (left,) = files_of(tmp_path / "cache")
    assert left.stat().st_size == 100
    assert outcomes([tmp_path / "cache"] * 2, site) == [
        [RESULTS, 0, []],
        [RESULTS, N_FILES, []],
    ]
