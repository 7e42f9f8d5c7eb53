"""The weight of the package; exits with 1 where a figure is above its budget.

::

    python .ci/weight.py              all figures beside their budgets
    python .ci/weight.py --folders    code lines of each folder, too
    python .ci/weight.py --longest 9  the longest functions, and those with most arguments, too

A code line holds a token that is no comment, docstring or blank. Files and depth of a fit are those
of the package that a call goes through. A budget is raised only by a decision, in a commit that
says why.
"""

import argparse
import ast
import importlib
import inspect
import io
import pkgutil
import sys
import tempfile
import tokenize
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The figures reached, rounded up.
BUDGET = {
    "sklearn_xc code lines": 30_000,
    "files": 272,
    "files at the root": 6,
    "tests code lines": 30_200,
    "asv_bench code lines": 4_680,
    "lines of the longest function": 70,
    "functions above 60 lines": 2,
    "most arguments": 13,
    "public objects": 130,
    "most constructor parameters": 20,
    "OvALinearXC.fit files": 28,
    "OvALinearXC.fit depth": 13,
    "NGAMEEmbeddingXC.fit files": 34,
    "NGAMEEmbeddingXC.fit depth": 13,
    "TextClassifierXC.fit files": 44,
    "TextClassifierXC.fit depth": 26,
    "save files": 7,
    "load files": 14,
}
_BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def code_lines(source):
    """Return the numbers of the code lines of a file, and its syntax tree."""
    tree, lines = ast.parse(source), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _BLANK | {tokenize.ENDMARKER}:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str())) as text:
                    lines.difference_update(range(text.lineno, text.end_lineno + 1))
    return lines, tree


def sources():
    """Return the figures read from the sources, lines by folder, functions by lines, arguments."""
    figures, folders, functions, arguments = {}, {}, [], []
    for top in ("sklearn_xc", "tests", "asv_bench"):
        paths = sorted((ROOT / top).rglob("*.py"))
        figures[f"{top} code lines"] = 0
        for path in paths:
            lines, tree = code_lines(path.read_text(encoding="utf-8"))
            figures[f"{top} code lines"] += len(lines)
            if top != "sklearn_xc":
                continue
            folder = path.parent.relative_to(ROOT).as_posix()
            folders[folder] = folders.get(folder, 0) + len(lines)
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                    own = lines & set(range(node.lineno, node.end_lineno + 1))
                    functions.append((len(own), where))
                    if node.name != "__init__":
                        n = len(node.args.args) + len(node.args.kwonlyargs)
                        arguments.append((n, where))
        if top == "sklearn_xc":
            figures["files"] = len(paths)
            figures["files at the root"] = sum(path.parent == ROOT / top for path in paths)
    functions.sort(reverse=True)
    arguments.sort(reverse=True)
    figures["lines of the longest function"] = functions[0][0]
    figures["functions above 60 lines"] = sum(n > 60 for n, _ in functions)
    figures["most arguments"] = arguments[0][0]
    return figures, folders, functions, arguments


def public():
    """Return how many public objects there are, and the most parameters of a constructor."""
    from sklearn.base import BaseEstimator

    import sklearn_xc

    found = {}
    modules = pkgutil.walk_packages(sklearn_xc.__path__, "sklearn_xc.")
    for name in ["sklearn_xc", *(module.name for module in modules)]:
        if any(part.startswith("_") for part in name.split(".")):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:  # of an extra that is not installed
            continue
        found |= {
            id(getattr(module, x)): getattr(module, x) for x in getattr(module, "__all__", ())
        }
    kinds = [x for x in found.values() if inspect.isclass(x) and issubclass(x, BaseEstimator)]
    most = max(len(inspect.signature(kind).parameters) for kind in kinds)
    return {"public objects": len(found), "most constructor parameters": most}


def travel(call):
    """Return how many files of the package a call goes through, and how deep."""
    root, files, depth, deepest = str(ROOT / "sklearn_xc"), set(), 0, 0

    def profile(frame, event, _):
        nonlocal depth, deepest
        name = frame.f_code.co_filename
        if name.startswith(root):
            if event == "call":
                files.add(name)
                depth += 1
                deepest = max(deepest, depth)
            elif event == "return" and depth:
                depth -= 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), deepest


def calls():
    """Return what fits, save and load go through."""
    import sklearn_xc
    from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC, TextClassifierXC
    from sklearn_xc.datasets import make_xc_classification

    X, Y = make_xc_classification(n_samples=2000, n_features=800, n_labels=60, random_state=0)
    texts = [
        "freezing soup",
        "freezing bread dough",
        "clear soup stock",
        "bread without yeast",
    ] * 50
    tags = ["freezing;soup", "freezing;bread", "soup;stock", "bread;yeast"] * 50
    fits = {
        "OvALinearXC": lambda: OvALinearXC().fit(X, Y),
        "NGAMEEmbeddingXC": lambda: NGAMEEmbeddingXC(random_state=0, max_iter=2).fit(X, Y),
        "TextClassifierXC": lambda: TextClassifierXC(separator=";").fit(texts, tags),
    }
    figures = {}
    for name, fit in fits.items():
        fit()  # compiles
        figures[f"{name}.fit files"], figures[f"{name}.fit depth"] = travel(fit)
    model = OvALinearXC().fit(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        figures["save files"], _ = travel(lambda: model.save(f"{folder}/model"))
        opened = travel(lambda: sklearn_xc.load(f"{folder}/model").predict_topk(X[:5]))
    return {**figures, "load files": opened[0]}


def main():
    """Print all figures; return 1 if one is above its budget."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folders", action="store_true")
    parser.add_argument("--longest", type=int, default=0)
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    warnings.simplefilter("ignore")
    figures, folders, functions, counts = sources()
    figures |= public() | calls()
    for name, value in figures.items():
        budget = BUDGET.get(name)
        over = "  OVER" if budget is not None and value > budget else ""
        print(f"{name:32} {value:7,}   budget {budget}{over}")
    if arguments.folders:
        print(*(f"  {n:6,} {folder}" for folder, n in sorted(folders.items())), sep="\n")
    for n, where in [*functions[: arguments.longest], *counts[: arguments.longest]]:
        print(f"  {n:4} {where}")
    return int(any(value > BUDGET.get(name, value) for name, value in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
