"""Imports follow the rules of import_graph.py; a bare import is light; public names are found."""

import os
import subprocess
import sys
from pathlib import Path

import import_graph
import pytest

import sklearn_xc

ROOT = Path(sklearn_xc.__file__).parent
#: Private parts of other packages, and the one file that may import them; None is for no file.
INSIDES = {
    "sklearn.": "_input/sklearn_private.py",
    "numba.core": "_compile/numba_private.py",
    "scipy.": None,
    "numpy.": None,
}
#: What writes LLVM instructions; the cache asks for the version.
EMITS = ("_compile/emitters/", "_compile/cache.py")


def test_imports_follow_the_rules():
    graph, wrong = import_graph.read()
    assert wrong == []
    assert import_graph.circles(graph) == []


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("softmax/sgd", "sklearn_xc.one_vs_all.OvALinearXC"),
        ("base", "sklearn_xc.softmax"),
        ("one_vs_all/ova", "sklearn_xc.datasets.make_xc_classification"),
        ("datasets/generators", "sklearn_xc.softmax._model.SoftmaxModel"),
        ("softmax/kernels/passes", "scipy.sparse"),
        ("softmax/kernels/passes", "sklearn_xc._parallel.memory"),
        ("_compile/jit", "sklearn_xc._input.checks"),
    ],
)
def test_a_forbidden_import_is_found(file, name):
    assert import_graph.forbidden(file, name)


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert import_graph.circles(graph) == [["a", "b", "c"]]


def private_imports(source, path):
    """Return "line N: ..." for each import of what another package holds private."""
    found = []
    for line, name in import_graph.imports(source):
        for inside, place in INSIDES.items():
            is_private = "._" in name or inside == "numba.core"
            if name.startswith(inside) and is_private and path != place:
                found.append(f"line {line}: {name}")
        if name.startswith("llvmlite") and not path.startswith(EMITS):
            found.append(f"line {line}: {name}")
    return found


def test_private_parts_of_other_packages_are_imported_in_one_file_each():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}
    found = {path: private_imports(text, path) for path, text in texts.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("base.py", "from sklearn.utils._param_validation import Interval"),
        ("base.py", "import numba.core.caching"),
        ("_input/kernels/csr_rows.py", "from llvmlite import ir"),
        ("_input/sklearn_private.py", "from scipy.sparse._sparsetools import csr_matvec"),
    ],
)
def test_a_private_import_is_found(path, source):
    (found,) = private_imports(f"import os\n{source}\n", path)
    assert found.startswith("line 2: ")


def modules_after(statement):
    """Return the names of the modules that a fresh process has loaded after `statement`."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_bare_import_loads_neither_the_compiler_nor_scikit_learn():
    loaded = modules_after("import sklearn_xc; dir(sklearn_xc); sklearn_xc.__version__")
    assert "sklearn_xc" in loaded
    assert not loaded & {"numba", "llvmlite", "sklearn", "scipy", "numpy"}


def test_a_hierarchy_can_be_imported_first():
    assert "sklearn_xc.metrics" in modules_after("from sklearn_xc import LabelHierarchy")


def test_a_public_name_means_one_thing():
    found = {}
    for folder in sklearn_xc._SUBPACKAGES:
        package = getattr(sklearn_xc, folder)
        for name in package.__all__:
            assert found.setdefault(name, getattr(package, name)) is getattr(package, name), name


def test_public_names_are_found_and_others_refused():
    assert set(sklearn_xc.__all__) <= set(dir(sklearn_xc))
    for name in sklearn_xc.__all__:
        assert getattr(sklearn_xc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'OvALinear'"):
        sklearn_xc.OvALinear  # noqa: B018
