"""The on-disk cache of compiled code: used, never stale, and not needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc

ROOT = Path(sklearn_xc.__file__).parent

# One kernel for each loss, closing over functions of other files, as the solver's kernels do; numba
# alone would not see edits there.
PROBE = """
from sklearn_xc.kernels._jit import kernel
from sklearn_xc.losses import LOSSES

def make_probe(loss):
    value = loss.value

    @kernel
    def probe(margin):
        return value(margin)

    return probe

if __name__ == "__main__":
    probes = [make_probe(LOSSES[name]) for name in ("squared_hinge", "logistic")]
    print(*[round(probe(-1.0), 3) for probe in probes])
    print(sum(sum(probe.stats.cache_hits.values()) for probe in probes))
    print(probes[0].stats.cache_path is not None)
"""


@pytest.fixture
def package(tmp_path):
    """Copy the parts of the package that are compiled, and add a probe."""
    folder = tmp_path / "site" / "sklearn_xc"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    for part in ("kernels", "losses"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernels" / "probe.py").write_text(PROBE)
    return folder


def run_probe(package, **environment):
    """Run the probe in a new process; return results, cache hits, and whether there is a cache."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    env |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-W", "error", "-m", "sklearn_xc.kernels.probe"]
    done = subprocess.run(
        command, env=env, cwd=package.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.splitlines())


def test_an_edit_in_a_called_file_invalidates_the_cache(package, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_probe(package, **cache) == ("4.0 1.313", "0", "True")
    assert run_probe(package, **cache) == ("4.0 1.313", "2", "True")
    loss = package / "losses" / "squared_hinge.py"
    text = loss.read_text()
    assert text.count("return gap * gap") == 1
    loss.write_text(text.replace("return gap * gap", "return gap * gap * gap"))
    assert run_probe(package, **cache) == ("8.0 1.313", "0", "True")


def test_without_a_place_for_the_cache_kernels_compile_anew(package, tmp_path):
    # A file where a folder is needed stops root too, unlike permissions.
    nowhere = tmp_path / "file"
    nowhere.touch()
    (package / "kernels" / "__pycache__").touch()
    home = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "LOCALAPPDATA": str(nowhere)}
    assert run_probe(package, **home) == ("4.0 1.313", "0", "False")
