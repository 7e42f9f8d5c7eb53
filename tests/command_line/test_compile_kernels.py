"""What is compiled beforehand is there when it is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc

#: A first training, and answers, in a process that may not compile.
USE = """
import tempfile
import sklearn_xc
from sklearn_xc.command_line.compile_kernels import _make_texts
from sklearn_xc.command_line.models import make_model

texts, tags = _make_texts(500)
model = make_model("ova", seed=1)
model.fit(texts[:400], tags[:400])
model.predict_topk(texts[400:])
for compact in (False, True):
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder, compact=compact)
        sklearn_xc.load(folder).predict_topk(texts[400:])
"""
#: Counts compilations: none is to be started.
COUNT = """
from numba.core import event
with event.install_recorder("numba:compile") as found:
    exec(compile(source, "use", "exec"))
print(sum(one.is_start for _, one in found.buffer))
"""


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path):
    root = str(Path(sklearn_xc.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": root, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(*command):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    out = run(sys.executable, "-m", "sklearn_xc", "compile")
    assert out.startswith("ova: ")
    assert out.endswith(f"compiled code is in {tmp_path / 'cache'}\n")
    source = f"source = {USE!r}\n{COUNT}"
    assert run(sys.executable, "-W", "ignore", "-c", source) == "0\n"
    env["NUMBA_CACHE_DIR"] = str(tmp_path / "empty")  # where there is something to compile
    assert int(run(sys.executable, "-W", "ignore", "-c", source)) > 50
