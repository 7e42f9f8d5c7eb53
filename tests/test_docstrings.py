"""Docstrings of what is public name the arguments that there are, and what they raise.

A method that a protocol of its folder describes, and one that says where to "see", may leave that
to them. A parameter without a type is one of which the docstring says "As ...".
"""

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import sklearn_xc

SECTIONS = (
    "Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Methods", "Notes",
    "References", "Examples", "See Also",
)  # fmt: skip
#: What takes care of the parameters of methods of its folder.
PROTOCOLS = {
    "Encoder", "Gradient", "GradientMethod", "Initialiser", "LabelSetLoss", "MarginLoss",
    "MipsIndex", "BatchSampler",
}  # fmt: skip


def public_names():
    """Return "folder.name" of all that is callable and ours, once each."""
    found = {}
    for folder in (*sklearn_xc._SUBPACKAGES, "sklearn_xc"):
        package = sklearn_xc if folder == "sklearn_xc" else getattr(sklearn_xc, folder)
        for name in package.__all__:
            if callable(getattr(package, name)):
                found.setdefault(id(getattr(package, name)), (folder, name))
    return sorted(found.values())


NAMES = public_names()


def value_of(folder, name):
    return getattr(sklearn_xc if folder == "sklearn_xc" else getattr(sklearn_xc, folder), name)


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


@pytest.mark.parametrize(("folder", "name"), NAMES, ids=[".".join(pair) for pair in NAMES])
def test_of_what_is_public(folder, name):
    value = value_of(folder, name)
    if not inspect.isclass(value):
        assert problems(value, value.__doc__, inspect.unwrap(value)) == []
        return
    is_protocol = name in PROTOCOLS or getattr(value, "_is_protocol", False)
    if is_protocol or issubclass(value, BaseException):
        assert value.__doc__
        return
    body = vars(value).get("__init__")
    is_written = inspect.isfunction(body) and body.__code__.co_filename != "<string>"
    assert problems(value, value.__doc__, body if is_written else None) == []


def methods_of(folder, name):
    """Yield the public methods of a class that are written in this package."""
    value = value_of(folder, name)
    for method in dir(value) if inspect.isclass(value) else ():
        function = inspect.getattr_static(value, method)
        function = getattr(function, "__func__", function)  # of a class or static method
        is_ours = inspect.isfunction(function) and function.__module__.startswith("sklearn_xc.")
        if is_ours and not method.startswith("_"):
            yield method, inspect.unwrap(function)


CLASSES = [pair for pair in NAMES if any(methods_of(*pair))]


@pytest.mark.parametrize(("folder", "name"), CLASSES, ids=[".".join(pair) for pair in CLASSES])
def test_of_methods(folder, name):
    described = {
        method
        for place, protocol in NAMES
        if place == folder and protocol in PROTOCOLS - {name}
        for method in dir(value_of(place, protocol))
    }
    found = {}
    for method, function in methods_of(folder, name):
        is_elsewhere = method in described or "see `" in function.__doc__
        body = None if is_elsewhere else function
        if missing := problems(function, function.__doc__, body, is_elsewhere):
            found[method] = missing
    assert found == {}


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


def test_what_came_is_told_in_a_sentence_of_its_own():
    """Messages say what was expected. Got ..."""
    root = Path(sklearn_xc.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"[,;:] got\b|^got\b", node.value), f"{path}:{node.lineno}"


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
