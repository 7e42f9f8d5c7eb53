"""No file that is read for data may run code."""

import ast
from pathlib import Path

import sklearn_xc

ROOT = Path(sklearn_xc.__file__).parent
#: Names, attributes and calls that run code from a file.
NAMES = {"Unpickler", "marshal", "dill", "cloudpickle", "shelve"}
CALLS = {"eval", "exec", "pickle.load", "pickle.loads", "joblib.load", "torch.load"}
#: Files that may use them, and why.
ALLOWED = {
    "_compile/cache.py": "compiled code, in numba's own form; see SECURITY.md",
}


def found_in(source):
    """Yield the names in a module that may run code from a file."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                module = getattr(node, "module", None)
                roots = {name.name.split(".")[0] for name in names} | {(module or "").split(".")[0]}
                yield from roots & NAMES
                yield from {f"{module}.{name.name}" for name in names} & CALLS
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in NAMES:
                yield name
            case ast.Call(func=function):
                name = ast.unparse(function).replace("()", "")
                named = {one.arg: ast.unparse(one.value) for one in node.keywords}
                if name in CALLS and named.get("weights_only") != "True":
                    yield name
                if named.get("allow_pickle", "False") != "False":
                    yield "allow_pickle"


def test_code_that_runs_files_is_found():
    for text in (
        *("import marshal", "from pickle import loads", "import pickle\npickle.load(f)"),
        *("class A(pickle.Unpickler): pass", "np.load(f, allow_pickle=True)", "eval('1')"),
        *("from marshal import loads", "torch().load(f)"),
    ):
        assert list(found_in(text)), text
    for text in ("'eval(x)'", "ast.literal_eval(x)", "module.eval()", "np.load(f)"):
        assert not list(found_in(text)), text


def test_no_module_reads_code():
    found = {
        path.relative_to(ROOT).as_posix(): sorted(set(found_in(path.read_text("utf-8"))))
        for path in ROOT.rglob("*.py")
    }
    found = {path: names for path, names in found.items() if names}
    assert found.keys() == ALLOWED.keys(), found
