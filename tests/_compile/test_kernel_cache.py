"""The on-disk cache of compiled code: used, never stale, and not needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc
from sklearn_xc._compile.cache import _Files

ROOT = Path(sklearn_xc.__file__).parent

# One kernel for each loss, closing over functions of other files, as the solver's kernels do; numba
# alone would not see edits there.
PROBE = """
from sklearn_xc._compile.jit import kernel
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled

def make_probe(loss):
    value = loss.value

    @kernel
    def probe(margin):
        return value(margin)

    return probe

if __name__ == "__main__":
    probes = [make_probe(compiled(LOSSES[name]())) for name in ("squared_hinge", "logistic")]
    print(*[round(probe(-1.0), 3) for probe in probes])
    print(sum(sum(probe.stats.cache_hits.values()) for probe in probes))
    print(probes[0].stats.cache_path is not None)
"""


@pytest.fixture
def package(tmp_path):
    """Copy the parts of the package that are compiled, and add a probe."""
    folder = tmp_path / "site" / "sklearn_xc"
    for part in ("_compile", "one_vs_all/losses"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("kernels", "_input"):
        (folder / part).mkdir()
    for part in (".", "one_vs_all", "kernels", "_input"):
        (folder / part / "__init__.py").touch()
    for part in ("exceptions.py", "_warnings.py", "_input/parts.py"):  # which these import
        shutil.copy(ROOT / part, folder / part)
    (folder / "kernels" / "probe.py").write_text(PROBE)
    return folder


def run_probe(package, action="error", **environment):
    """Run the probe in a new process; return results, cache hits, and whether there is a cache.

    If `action` for warnings is "always", also the lines in which one begins.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    env |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-W", action, "-m", "sklearn_xc.kernels.probe"]
    done = subprocess.run(
        command, env=env, cwd=package.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if "Warning: " in line]
    return (*done.stdout.splitlines(), *warnings)


def test_an_edit_in_a_called_file_invalidates_the_cache(package, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_probe(package, **cache) == ("4.0 1.313", "0", "True")
    assert run_probe(package, **cache) == ("4.0 1.313", "2", "True")
    loss = package / "one_vs_all" / "losses" / "squared_hinge.py"
    text = loss.read_text()
    assert text.count("return gap * gap") == 1
    loss.write_text(text.replace("return gap * gap", "return gap * gap * gap"))
    assert run_probe(package, **cache) == ("8.0 1.313", "0", "True")


@pytest.fixture
def nowhere(package, tmp_path):
    """Return an environment in which numba finds no folder for its cache."""
    # A file where a folder is needed stops root too, unlike permissions.
    path = tmp_path / "file"
    path.touch()
    (package / "kernels" / "__pycache__").touch()
    return dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(path))


@pytest.mark.parametrize("cache", [None, "loop"])
def test_without_a_place_for_the_cache_kernels_compile_anew(cache, package, nowhere, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    if cache is not None:
        nowhere["NUMBA_CACHE_DIR"] = str(tmp_path / cache)
    *seen, warning = run_probe(package, action="always", **nowhere)
    assert seen == ["4.0 1.313", "0", "False"]
    assert "KernelCacheWarning: There is no place where compiled code can be kept" in warning
    assert "NUMBA_CACHE_DIR" in warning


#: Has no folder be writable: root, who may write anywhere, is told the same.
NOTHING_CAN_BE_WRITTEN = """
import errno, tempfile

def refuse(*args, **kwargs):
    raise OSError(errno.EROFS, "Read-only file system")

tempfile.TemporaryFile = refuse
"""


def test_code_is_read_where_nothing_can_be_written(package, tmp_path):
    """As in an image with a read-only home, whose cache was filled when it was made."""
    environment = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    assert run_probe(package, **environment) == ("4.0 1.313", "0", "True")
    (package.parent / "sitecustomize.py").write_text(NOTHING_CAN_BE_WRITTEN)
    assert run_probe(package, **environment) == ("4.0 1.313", "2", "True")
    # What is not there is compiled, and not kept.
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:-1])
    before = sorted(tmp_path.rglob("*.nbc"))
    *seen, warning = run_probe(package, action="always", **environment)
    assert seen == ["4.0 1.313", "0", "True"]
    assert "no place where compiled code can be kept" in warning
    assert sorted(tmp_path.rglob("*.nbc")) == before


# A kernel of the package around a function that is not, as a user's own rule or loss.
RULE_PROBE = """
from rule import step
from sklearn_xc._compile.jit import kernel

def make_probe(step):
    @kernel
    def probe(x):
        return step(x)
    return probe

if __name__ == "__main__":
    probe = make_probe(step)
    print(probe(1.0))
    print(sum(probe.stats.cache_hits.values()))
"""
RULE = """
from numba.extending import register_jitable
from helpers import OFFSET, double

@register_jitable
def step(x):
    return double(x) + OFFSET
"""
HELPERS = """
from numba.extending import register_jitable
OFFSET = 5.0

@register_jitable
def double(x):
    return 2.0 * x
"""


@pytest.fixture
def site(package):
    (package / "kernels" / "probe.py").write_text(RULE_PROBE)
    (package.parent / "rule.py").write_text(RULE)
    (package.parent / "helpers.py").write_text(HELPERS)
    return package


def test_an_edit_outside_the_package_is_noticed(site, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_probe(site, **cache) == ("7.0", "0")
    assert run_probe(site, **cache, PYTHONHASHSEED="1") == ("7.0", "1")
    path = site.parent / "helpers.py"
    assert path.read_text().count("2.0 * x") == 1
    path.write_text(path.read_text().replace("2.0 * x", "3.0 * x"))
    assert run_probe(site, **cache) == ("8.0", "0")


@pytest.mark.skipif(os.name != "posix", reason="makes a pipe")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    files = _Files(str(tmp_path), "probe", "sources")
    os.mkfifo(files._path("key"))
    with pytest.raises(ValueError, match=r"nbc is no regular file"):
        files.load("key")
    files.save("key", 1)
    assert files.load("key") == 1
