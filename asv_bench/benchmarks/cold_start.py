"""What a fresh process waits for: imports, and compilation or its cache.

The interpreter's own start is not counted, the files' being read from disk only where the system
no longer holds them in memory. An "empty" cache is that of a new installation or after an update
of the package, a "warm" one that of every later process.
"""

import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

PACKAGE_PARENT = str(Path(find_spec("sklearn_xc").origin).parent.parent)

FIT_AND_PREDICT = """
from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import make_xc_classification
X, Y = make_xc_classification(300, 500, 40, random_state=0)
OvALinearXC(prune=0).fit(X, Y).predict_topk(X)
"""


def preamble(cache):
    """Return code for a child process that is not timed; timeit has switched collection off."""
    return f"""
import gc, os, sys
gc.enable()
os.environ["NUMBA_CACHE_DIR"] = {str(cache)!r}
sys.path.insert(0, {PACKAGE_PARENT!r})
"""


class _FreshProcess:
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, *params):
        self.folder = Path(tempfile.mkdtemp())

    def teardown(self, *params):
        shutil.rmtree(self.folder)


class FirstFit(_FreshProcess):
    params = ("empty", "warm")
    param_names = ("cache",)

    def setup(self, cache):
        super().setup()
        if cache == "warm":
            code = preamble(self.folder) + FIT_AND_PREDICT
            subprocess.run([sys.executable, "-c", code], check=True)

    def timeraw_import_fit_predict(self, cache):
        """Import, fit 300 instances with 40 labels, and predict them."""
        folder = self.folder if cache == "warm" else tempfile.mkdtemp(dir=self.folder)
        return FIT_AND_PREDICT, preamble(folder)


class Imports(_FreshProcess):
    repeat = 10

    def timeraw_package(self):
        return "import sklearn_xc", preamble(self.folder)

    def timeraw_estimator(self):
        """Of this, the part of scikit-learn, scipy and numba alone is ``timeraw_libraries``."""
        return "from sklearn_xc import OvALinearXC", preamble(self.folder)

    def timeraw_libraries(self):
        return "import numba, scipy.sparse, sklearn.base, joblib", preamble(self.folder)
