"""What users hear of compilation, and that without a compiler they hear of it once they need it."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from joblib import Parallel, delayed

import sklearn_xc
from sklearn_xc._compile.jit import kernel
from sklearn_xc._compile.notices import (
    KernelCacheWarning,
    announced_compilation,
    warn_once,
)
from sklearn_xc._compile.numba_private import compilation_timer

LINE = "[sklearn_xc] compiling loops, which takes some seconds"


def add_one(x):
    return x + 1


def add_two(x):
    return x + 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder in which kernels of this test are cached."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def test_the_line_comes_once_and_names_the_folder(folder, capsys):
    with announced_compilation(1):
        assert kernel(add_one)(1) == 2
        assert kernel(add_two)(1) == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{LINE} (kept in {folder}")


@pytest.mark.parametrize("case", ["not verbose", "from the cache", "compiled before", "over"])
def test_no_line_where_none_is_wanted_or_nothing_compiled(case, folder, capsys):
    probe = kernel(add_one)
    if case == "from the cache":
        kernel(add_one)(1)
    elif case == "compiled before":
        probe(1)
    elif case == "over":
        with announced_compilation(1):
            pass
        probe(1)
    with announced_compilation(int(case != "not verbose")):
        assert probe(1) == 2
    assert capsys.readouterr().out == ""


def test_threads_of_joblib_are_heard(folder, capsys):
    probe = kernel(add_one)
    with announced_compilation(1):
        found = Parallel(n_jobs=2, require="sharedmem")(delayed(probe)(x) for x in (1, 2.0, 3j))
    assert found == [2, 3.0, 1 + 3j]
    assert capsys.readouterr().out.count(LINE) == 1


def test_within_another_body_there_is_no_second_line(folder, capsys):
    """As the fits within a search: each listens."""
    with announced_compilation(1):
        for function in (add_one, add_two):
            with announced_compilation(1):
                kernel(function)(1)
    assert capsys.readouterr().out.count(LINE) == 1
    with announced_compilation(1):  # another signature, another time
        kernel(add_one)(1.0)
    assert capsys.readouterr().out.count(LINE) == 1


def test_all_threads_together_give_one_warning(monkeypatch):
    monkeypatch.setattr("sklearn_xc._compile.notices._has_warned", False)
    tell = delayed(warn_once)
    with pytest.warns(KernelCacheWarning) as caught:
        Parallel(n_jobs=4, require="sharedmem")(tell(f"problem {n}") for n in range(8))
    assert len(caught) == 1


def run(code, **environment):
    env = {**os.environ, "PYTHONPATH": str(Path(sklearn_xc.__file__).parent.parent), **environment}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_numba_may_not_compile_only_kernels_say_so():
    code = """
import numpy as np, scipy.sparse as sp, sklearn_xc
for name in sklearn_xc.__all__:
    getattr(sklearn_xc, name)
Y = sp.csr_array(np.eye(4))
sklearn_xc.datasets.make_xc_classification()
print(sklearn_xc.metrics.precision_at_k(Y, Y, k=1))
try:
    sklearn_xc.OvALinearXC().fit(Y, Y)
except RuntimeError as error:
    print(error)
"""
    metric, message = run(code, NUMBA_DISABLE_JIT="1").splitlines()
    assert metric == "1.0"
    assert message.startswith("NUMBA_DISABLE_JIT is set, but the loops of sklearn_xc run only comp")
    assert message.endswith("Unset it before Python starts.")


def test_compilation_is_timed():
    with compilation_timer() as timer:
        assert not timer.done
        numba.njit(lambda x: x + 1)(1.0)
    assert timer.duration > 0
