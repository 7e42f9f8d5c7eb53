"""Who imports whom, read from the sources; the layers are drawn in CONTRIBUTING.md."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_xc

ROOT = Path(sklearn_xc.__file__).parent
ESTIMATORS = {
    "calibration", "decomposition", "embedding", "linear", "skip_gram", "softmax", "stacking",
    "text", "thresholds",
}  # fmt: skip
PARTS = {"solvers", "initialisers", "samplers", "mips", "encoders", "gradients"}
FOUNDATIONS = {
    "base", "exceptions", "hierarchy", "kernels", "losses", "metrics", "parallel", "preprocessing",
    "storage", "weights",
    "_allowed_labels", "_arguments", "_atomic_files", "_best_allowed", "_blank_rows", "_checks",
    "_clone_fits", "_containers", "_data", "_declared_state", "_distinct", "_explanation",
    "_folds", "_frequency_groups", "_given_vectors", "_held_out",
    "_label_changes", "_label_features", "_some_labels",
    "_label_names", "_made_features", "_name_lists", "_near_names", "_new_classes",
    "_objective", "_out_of_fold", "_parts", "_pruning_notes", "_row_pieces",
    "_saved", "_scored_pairs", "_seeds", "_shared_memory", "_show_versions", "_sklearn",
    "_sparse_input", "_state", "_texts_with_features", "_topk", "_topk_names", "_wrapped",
}  # fmt: skip
SHELVES = {"datasets", "inspection", "model_selection"}
#: The package itself: its version.
TOP = {"sklearn_xc"}

MAY_USE = {
    **dict.fromkeys(ESTIMATORS, ESTIMATORS | PARTS | FOUNDATIONS | TOP),
    **dict.fromkeys(PARTS, PARTS | FOUNDATIONS | TOP),
    **dict.fromkeys(FOUNDATIONS, FOUNDATIONS | TOP),
    **dict.fromkeys(SHELVES, ESTIMATORS | PARTS | FOUNDATIONS | SHELVES | TOP),
    "command_line": ESTIMATORS | PARTS | FOUNDATIONS | SHELVES | TOP | {"command_line"},
    "integrations": ESTIMATORS | PARTS | FOUNDATIONS | SHELVES | TOP | {"integrations"},
    "kernels": {"kernels"},
    "losses": {"losses", "kernels", "_parts"},
}
#: What these folders may import from outside, besides the standard library.
OUTSIDE = {"kernels": {"numpy", "numba", "llvmlite"}, "losses": {"numpy", "numba", "sklearn"}}


#: Insides of other packages, and the one file that may take from each; None is for no file.
INSIDES = {
    "sklearn.": "_sklearn.py",
    "numba.core": "kernels/compiling/numba_private.py",
    "scipy.": None,
    "numpy.": None,
}
#: Who writes instructions; the cache asks for the version.
EMITS = {"kernels/emitters", "kernels/compiling/cache.py"}


def imported_modules(source, module):
    """Yield (line, dotted name) of each import in the text of a module, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], base]).rstrip(".")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def offences(source, module):
    """Return "line N: ..." for each import of a module that its layer may not have."""
    own = module.split(".")[1] if "." in module else "sklearn_xc"
    if own not in MAY_USE:  # __init__ and __main__ of the package may use everything
        return []
    found = []
    for line, name in imported_modules(source, module):
        first, *rest = name.split(".")
        if first == "sklearn_xc":
            used = rest[0] if rest and rest[0] in MAY_USE else "sklearn_xc"
            allowed = used in MAY_USE[own]
        else:
            allowed = (
                own not in OUTSIDE or first in OUTSIDE[own] or first in sys.stdlib_module_names
            )
        if not allowed:
            found.append(f"line {line}: {own} may not import {name}")
    return found


SOURCES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


TEXTS = {path: (ROOT / path).read_text() for path in SOURCES}


def test_imports_follow_the_layers():
    modules = {path: ".".join(["sklearn_xc", *path.with_suffix("").parts]) for path in TEXTS}
    found = {str(path): offences(text, modules[path]) for path, text in TEXTS.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_contributing_has_every_file_and_layer():
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    the_map = page[page.index("\nsklearn_xc/\n") : page.index("\ntests/  ")]
    named = set(re.findall(r"^  ([a-z_]+(?:\.py|/)) ", the_map, re.MULTILINE))
    there = {path.name for path in ROOT.glob("*.py") if not path.name.startswith("__")}
    there |= {f"{path.parent.name}/" for path in ROOT.glob("*/__init__.py")}
    assert named == there
    layers = {"estimators": ESTIMATORS, "parts": PARTS, "side shelves": SHELVES}
    for layer, members in layers.items():
        (row,) = re.findall(rf"^\| {layer} \|([^|]*)", page, re.MULTILINE)
        assert set(re.findall("`([a-z_]+)`", row)) == members
    (row,) = re.findall(r"^\| foundations \|([^|]*)", page, re.MULTILINE)
    folders = {name for name in FOUNDATIONS if not name.startswith("_")}
    assert set(re.findall("`([a-z_]+)`", row)) == folders
    files = {path.removesuffix(".py") for path in there if path.startswith("_")}
    assert files == FOUNDATIONS - folders


def insides(source, path):
    """Return "line N: ..." for each import of what another package holds private."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            for inside, place in INSIDES.items():
                is_private = "._" in name or inside == "numba.core"
                if name.startswith(inside) and is_private and path != place:
                    found.append(f"line {node.lineno}: {name}")
            if name.startswith("llvmlite") and not path.startswith(tuple(EMITS)):
                found.append(f"line {node.lineno}: {name}")
    return found


def test_insides_of_other_packages_are_in_one_file_each():
    found = {path.as_posix(): insides(text, path.as_posix()) for path, text in TEXTS.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("base.py", "from sklearn.base import _fit_context"),
        ("base.py", "from sklearn.utils._param_validation import Interval"),
        ("base.py", "import numba.core.caching"),
        ("kernels/rows/csr_rows.py", "from llvmlite import ir"),
        ("_sklearn.py", "from scipy.sparse._sparsetools import csr_matvec"),
    ],
)
def test_an_inside_is_found(path, source):
    (found,) = insides(f"import os\n{source}\n", path)
    assert found.startswith("line 2: ")


def private_uses(source, path):
    """Return "line N: ..." for each import of a private module or name from outside its folder."""
    found, folder = [], ["sklearn_xc", *path.parent.parts]
    for line, name in imported_modules(
        source, "sklearn_xc." + ".".join(path.with_suffix("").parts)
    ):
        parts = name.split(".")
        for i, part in enumerate(parts):
            if parts[0] != "sklearn_xc" or not part.startswith("_") or part.startswith("__"):
                continue
            owner = parts[:i]  # a folder, or a module that keeps the name to itself
            is_folder = ROOT.joinpath(*owner[1:]).is_dir()
            if not is_folder or folder[: len(owner)] != owner:
                found.append(f"line {line}: {name}")
    return found


def test_what_begins_with_an_underscore_stays_in_its_folder():
    found = {str(path): private_uses(text, path) for path, text in TEXTS.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn_xc.softmax._model import SoftmaxModel",
        "from sklearn_xc.linear.problem import _rearranged",
        "import sklearn_xc.datasets._files",
    ],
)
def test_a_use_from_outside_is_found(source):
    (found,) = private_uses(f"import os\n{source}\n", Path("metrics/scorers.py"))
    assert found.startswith("line 2: ")


def test_every_folder_has_a_layer():
    folders = {path.parts[0].removesuffix(".py") for path in SOURCES}
    assert folders - {"__init__", "__main__"} <= set(MAY_USE)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("solvers.newton_cg", "from sklearn_xc.linear import OvALinearXC"),
        ("solvers.newton_cg", "import sklearn_xc.linear.ova"),
        ("base", "from sklearn_xc import solvers"),
        ("weights.label_weights", "def f():\n    from ..initialisers import Zero"),
        ("linear.ova", "from sklearn_xc.datasets import make_xc_classification"),
        ("kernels.topk", "import scipy.sparse"),
        ("kernels.topk", "from sklearn_xc.losses import LOSSES"),
        ("datasets.text", "from sklearn_xc.command_line import main"),
        ("losses.logistic", "from scipy import sparse"),
        ("losses.logistic", "from llvmlite import ir"),
        ("losses.logistic", "from sklearn_xc.parallel import memory"),
    ],
)
def test_an_offence_is_found_and_its_line_named(module, source):
    (offence,) = offences(f"import os\n{source}\n", f"sklearn_xc.{module}")
    assert offence.startswith(f"line {3 if source.startswith('def') else 2}: ")


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


FOLDERS_AND_MODULES = sorted(
    {path.parts[0].removesuffix(".py") for path in SOURCES if not path.parts[0].startswith("_")}
)


@pytest.mark.parametrize("name", FOLDERS_AND_MODULES)
def test_whatever_is_not_private_is_an_attribute_of_the_package(name):
    # Asked for as in a fresh process: an import elsewhere may have set it here already.
    assert sklearn_xc.__getattr__(name) is sys.modules[f"sklearn_xc.{name}"]
    assert name in dir(sklearn_xc) or name in sklearn_xc._INTERNAL


def test_a_public_name_means_one_thing():
    found = {}
    for folder in sklearn_xc._SUBPACKAGES:
        package = getattr(sklearn_xc, folder)
        for name in package.__all__:
            assert found.setdefault(name, getattr(package, name)) is getattr(package, name), name


def test_parts_are_attributes_of_a_bare_import():
    found = modules_after("import sklearn_xc as s; s.initialisers")
    assert "sklearn_xc.initialisers.constant" in found


def test_public_names_are_found_and_others_refused():
    assert set(sklearn_xc.__all__) <= set(dir(sklearn_xc))
    for name in sklearn_xc.__all__:
        assert getattr(sklearn_xc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'OvALinear'"):
        sklearn_xc.OvALinear  # noqa: B018
