"""Who may import whom in the package; prints the import graph.

::

    python tests/import_graph.py             files, folders, imports between folders, circles
    python tests/import_graph.py --edges     each import between folders, too

A file at the root counts as a folder.

Exits with 1 if an import is forbidden, or files import one another in a circle.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "sklearn_xc"

ESTIMATOR_FOLDERS = {"one_vs_all", "softmax", "decomposition", "embedding"}
AROUND = {"ensemble", "text"}
MIDDLE = {"search", "metrics"}
PRIVATE = {"_input", "_labels", "_state", "_parallel", "_training", "_weights", "_compile"}
LEAVES = {"datasets", "model_selection", "inspection", "command_line", "integrations"}
#: Files at the root.
BASE = {"base", "exceptions", "_topk", "_warnings", "sklearn_xc"}

BELOW = MIDDLE | PRIVATE | BASE
ALLOWED = {
    **{name: {name} | BELOW for name in ESTIMATOR_FOLDERS},
    "ensemble": {"ensemble"} | BELOW,
    "text": {"text", "ensemble", "one_vs_all"} | BELOW,  # its default classifier
    **dict.fromkeys(MIDDLE, BELOW),
    **dict.fromkeys(PRIVATE | BASE, BELOW),
    **dict.fromkeys(LEAVES, ESTIMATOR_FOLDERS | AROUND | BELOW | LEAVES),
    "_compile": {"_compile", "exceptions", "_warnings"},
    "__main__": {"command_line"},
}
#: What kernels may import from outside the package, besides the standard library.
KERNELS = {"numpy", "numba"}


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of each import in the text of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def module_of(name: str) -> str | None:
    """Return the file, relative to the package and without its suffix, that a name comes from."""
    parts = name.split(".")[1:]
    while parts:
        if ROOT.joinpath(*parts).with_suffix(".py").is_file():
            return "/".join(parts)
        if ROOT.joinpath(*parts, "__init__.py").is_file():
            return "/".join([*parts, "__init__"])
        parts.pop()
    return "__init__"


def forbidden(file: str, name: str) -> bool:
    """Tell whether a file of the package may not import a name."""
    folder, inner = file.split("/")[0], file.split("/")[:-1]
    first = name.split(".")[0]
    in_kernels = "kernels" in file.split("/")
    if first != "sklearn_xc":
        return in_kernels and first not in KERNELS | sys.stdlib_module_names
    used = module_of(name).split("/")
    if in_kernels:
        return "kernels" not in used and used[0] != "_compile" and "losses" not in used
    top = "sklearn_xc" if used == ["__init__"] else used[0]
    if folder != "__init__" and top not in ALLOWED[folder]:
        return True
    private = [
        i for i, part in enumerate(used) if part.startswith("_") and i > 0 and part != "__init__"
    ]
    return any(inner[:i] != used[:i] for i in private)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of files that import one another."""
    reach = {file: set(used) for file, used in graph.items()}
    changed = True
    while changed:
        changed = False
        for file in graph:
            further = set().union(*(reach[used] for used in reach[file])) - reach[file]
            changed |= bool(further)
            reach[file] |= further
    groups = {tuple(sorted(g for g in reach[f] if f in reach[g])) for f in graph if f in reach[f]}
    return [list(group) for group in sorted(groups)]


def read() -> tuple[dict[str, set[str]], list[str]]:
    """Return the files that each file of the package imports, and the forbidden imports."""
    graph: dict[str, set[str]] = {}
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).with_suffix("").as_posix()
        used = graph[file] = set()
        for line, name in imports(path.read_text(encoding="utf-8")):
            if forbidden(file, name):
                wrong.append(f"sklearn_xc/{file}.py:{line}: {name}")
            if name.split(".")[0] == "sklearn_xc":
                used.add(module_of(name))
        used.discard(file)
    return graph, wrong


def main() -> int:
    """Print the graph; return 1 if there is something against the rules."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--edges", action="store_true", help="print each import between folders")
    arguments = parser.parse_args()
    graph, wrong = read()
    folder = {file: file.rpartition("/")[0] or file for file in graph}
    edges = {
        (folder[file], folder[used])
        for file, files in graph.items()
        for used in files
        if folder[file] != folder[used]
    }
    n_folders = len(set(folder.values()))
    print(f"{len(graph)} files, {n_folders} folders, {len(edges)} imports between them")
    if arguments.edges:
        print(*(f"  {a} -> {b}" for a, b in sorted(edges)), sep="\n")
    found = circles(graph)
    print(f"{len(found)} circles", *(" <-> ".join(group) for group in found), sep="\n  ")
    print(f"{len(wrong)} forbidden imports", *wrong, sep="\n  ")
    return 1 if wrong or found else 0


if __name__ == "__main__":
    sys.exit(main())
