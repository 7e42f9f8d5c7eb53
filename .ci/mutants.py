"""Mutants of the package, drawn at random, and the test that kills each.

::

    python .ci/mutants.py --list                          their numbers, places and changes
    python .ci/mutants.py --out mutants.jsonl             tests each; goes on where it was stopped
    python .ci/mutants.py --only 3,17 --stage all         some of them, by the whole suite
    python .ci/mutants.py --only 3,17 --together          all in the sources at once

A mutant is one change of an expression or a `raise`: as many are drawn of formulae, conditions,
bounds and error paths. Tests that are near by folder, words and names come first, and are the only
ones unless the stage is "all". A mutant is killed by a test that fails or hangs; a timeout may also
be a slow compilation, which a second run finds in the cache. One that survives is equivalent, a
constant that may have another value, or lacks a test. Other seeds draw others.
"""

import argparse
import ast
import contextlib
import json
import os
import random
import re
import signal
import sys
from collections import namedtuple
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_xc"
SWAPS = {
    **{ast.Add: "formula + -", ast.Sub: "formula - +"},
    **{ast.Mult: "formula * /", ast.Div: "formula / *"},
    **{ast.Lt: "bound < <=", ast.LtE: "bound <= <", ast.Gt: "bound > >=", ast.GtE: "bound >= >"},
    **{ast.Eq: "condition == !=", ast.NotEq: "condition != =="},
    **{ast.And: "condition and or", ast.Or: "condition or and"},
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
#: pytest, with the tests in the order of the files that are named, whatever conftest.py does.
RUN = """
import sys, pytest
class Order:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: [*sys.argv, str(item.path)].index(str(item.path)))
sys.exit(pytest.main(["-n", "0", "-qx", "--tb=no", *sys.argv[1:]], plugins=[Order()]))
"""
#: `start` and `end` are bytes of the file.
Mutant = namedtuple("Mutant", "kind path line start end after change")


def places(path):
    """Return all mutants of a file."""
    source, found, skipped, indices = path.read_bytes(), [], set(), set()
    lines = source.splitlines(keepends=True)
    first = [sum(map(len, lines[:i])) for i in range(len(lines))]

    def begin(node):
        return first[node.lineno - 1] + node.col_offset

    def end(node):
        return first[node.end_lineno - 1] + node.end_col_offset

    def add(kind, node, new, start=None, stop=None):
        """Add a mutant: new text between two bytes, by default those of a node."""
        start, stop = begin(node) if start is None else start, stop or end(node)
        old, line = source[start:stop].decode(), node.lineno
        change = f"{path.relative_to(ROOT)}:{line} {kind}: {old} -> {new.format(old) or 'nothing'}"
        found.append(Mutant(kind, path, line, start, stop, new.format(old), change))

    for node in ast.walk(ast.parse(source)):
        skip = [getattr(node, x, None) for x in ("annotation", "returns")]
        operands = operators = []
        match node:
            case _ if node in skipped:
                continue
            case ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
                skip = [node]  # the parts of an f-string have wrong places before Python 3.12
            case ast.BinOp(a, op, b) | ast.AugAssign(a, op, b):
                operands, operators = [a, b], [op]
            case ast.Compare(left, operators, others):
                operands = [left, *others]
            case ast.BoolOp(op, operands):
                operators = [op] * len(operands)
            case ast.UnaryOp(op=ast.Not()):
                add("condition", node, "", stop=begin(node) + len("not "))
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                larger = node.value + 1 if isinstance(node.value, int) else 2 * node.value or 1.0
                add("bound" if node in indices else "formula", node, repr(larger))
            case ast.Subscript():
                indices.update(ast.walk(node.slice))
            case ast.Slice():
                for limit in (node.lower, node.upper):
                    if limit and not isinstance(limit, ast.Constant):
                        add("bound", limit, "({}) + 1")
            case ast.Call(func=ast.Name(id="range" | "prange")):
                add("bound", node.args[:2][-1], "({}) - 1")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in NAMES:
                add("bound", node, NAMES[name], end(node.func) - len(name), end(node.func))
            case ast.If() | ast.IfExp():
                add("condition", node.test, "True")
                add("condition", node.test, "False")
            case ast.Raise() if "NotImplementedError" not in ast.unparse(node):
                add("error", node, "pass")
        skipped.update(x for part in skip if part for x in ast.walk(part))
        for left, operator, right in zip(operands, operators, operands[1:], strict=False):
            if type(operator) in SWAPS:
                kind, old, new = SWAPS[type(operator)].split()
                start = source.index(old.encode(), end(left), begin(right))
                add(kind, left, new, start, start + len(old))
    return found


def mutated(source, mutants):
    """Return the text of a file with some mutants of it."""
    for mutant in sorted(mutants, key=lambda mutant: -mutant.start):
        source = source[: mutant.start] + mutant.after.encode() + source[mutant.end :]
    return source


def draw(seed, count):
    """Return mutants: as many of each kind; of a kind, each place is equally likely."""
    rng, pools, drawn = random.Random(seed), {}, []
    for path in sorted(PACKAGE.rglob("*.py")):
        for mutant in places(path):
            pools.setdefault(mutant.kind, []).append(mutant)
    for i, kind in enumerate(sorted(pools)):
        for mutant in rng.sample(pools[kind], len(pools[kind])):
            if len(drawn) < (i + 1) * count // len(pools):
                with contextlib.suppress(SyntaxError):
                    ast.parse(mutated(mutant.path.read_bytes(), [mutant]))
                    drawn.append(mutant)
    return drawn


def nearest_first(mutant):
    """Return the files of tests, nearest first, and how many are near."""
    *folders, stem = mutant.path.relative_to(PACKAGE).with_suffix("").parts
    module, names, ranks = ".".join(["sklearn_xc", *folders, stem]), [], {}
    for x in ast.walk(ast.parse(mutant.path.read_bytes())):
        if isinstance(x, ast.FunctionDef | ast.ClassDef) and len(x.name) > 7:
            names += [x.name] * (x.lineno <= mutant.line <= x.end_lineno)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text, own = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "tests").parts
        words = [x for x in stem.split("_") if len(x) > 3 and x in path.stem.split("_")]
        named = [name for name in names if re.search(rf"\b{name}\b", text)]
        same = [a for a, b in zip(folders, own, strict=False) if a == b]
        ranks[path] = 2 * len(same) + 4 * (module in text) + 3 * len(named) + len(words)
    return sorted(ranks, key=ranks.get, reverse=True), sum(map(bool, ranks.values()))


def test(mutants, stage, timeout):
    """Return how the tests end with some mutants in the sources, which are then restored."""
    files, n_near = nearest_first(mutants[0])
    files = [*files[:n_near], mutants[0].path.parent] if stage == "nearest" else [*files, PACKAGE]
    command = [sys.executable, "-B", "-c", RUN, *map(str, files)]
    before = {path: (path.read_bytes(), path.stat()) for path in {x.path for x in mutants}}
    try:
        for path, (source, _) in before.items():
            path.write_bytes(mutated(source, [x for x in mutants if x.path == path]))
        process = Popen(command, cwd=ROOT, stdout=PIPE, text=True, process_group=0)
        output, _ = process.communicate(timeout=timeout)
    except TimeoutExpired:
        return "killed", "timeout"
    finally:
        for path, (source, stat) in before.items():
            path.write_bytes(source)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        with contextlib.suppress(ProcessLookupError):  # also ends what the tests have started
            os.killpg(process.pid, signal.SIGKILL)
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", output, re.MULTILINE)
    return "killed" if process.returncode else "survived", failed[1] if failed else output[-80:]


def main():
    """Draw mutants; print them, or how each ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--only", help="numbers, separated by commas")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--stage", choices=["nearest", "all"], default="nearest")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--timeout", type=int, default=400, help="seconds for each mutant")
    parser.add_argument("--out", default=os.devnull, help="JSON lines; what it has is not repeated")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    mutants = draw(options.seed, options.count)
    chosen = [*map(int, options.only.split(","))] if options.only else range(len(mutants))
    with open(options.out, "a+") as out:
        out.seek(0)
        done = [json.loads(line)[:3] for line in out]
        for group in [chosen] if options.together else [[number] for number in chosen]:
            changes = [mutants[number].change for number in group]
            key = [options.stage, options.seed, changes]
            if key in done:
                continue
            print(*map("{:3} {}".format, group, changes), sep="\n", flush=True)
            if not options.list:
                result = test([mutants[i] for i in group], options.stage, options.timeout)
                print("   ", *result, flush=True)
                print(json.dumps([*key, group, *result]), file=out, flush=True)


if __name__ == "__main__":
    main()
