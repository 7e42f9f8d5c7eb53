"""The code on the pages of the documentation runs.

All Python blocks of a page run one after the other, in one namespace and an empty folder. Two
comments, which a reader of the page does not see, help; blocks with a third need other packages::

    <!-- run first
    X, Y = ...
    -->                 code that runs in its place, for what the reader has already
    <!-- not run: why -->    above a block that is only parsed
    <!-- needs: NAME NAME -->    above a block that runs in slow tests, where these are installed
"""

import ast
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_PART = re.compile(
    r"^(?P<indent> *)```python\n(?P<code>.*?)^ *```$|"
    r"^<!-- run first\n(?P<first>.*?)^-->$|"
    r"^<!-- (?P<kind>not run|needs): (?P<why>[^>]+) -->$",
    re.MULTILINE | re.DOTALL,
)


def parts_of(text):
    """Return (line, code, is run) of each block of Python, and of what runs in its place.

    The last is True, False, or the names of the packages that a block needs.
    """
    found, is_run = [], True
    for match in _PART.finditer(text):
        if match["why"] is not None:
            is_run = match["kind"] == "needs" and match["why"].split()
            continue
        code = match["first"]
        if code is None:
            cut = len(match["indent"])
            code = "".join(line[cut:] or "\n" for line in match["code"].splitlines(keepends=True))
        line = text[: match.start()].count("\n") + 2
        found.append((line, code, is_run))
        is_run = True
    return found


def pages_with_code():
    """Return the pages that have blocks of Python; last, as slow, one with other packages."""
    pages = [page for page in PAGES if parts_of(page.read_text(encoding="utf-8"))]
    slow = pytest.param(ROOT / "docs/with_other_tools.md", True, id="tools", marks=pytest.mark.slow)
    return [*(pytest.param(page, False, id=page.name) for page in pages), slow]


@pytest.mark.parametrize(("page", "with_tools"), pages_with_code())
def test_code_runs(page, with_tools, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace = {"__name__": "__main__"}
    for line, code, is_run in parts_of(page.read_text(encoding="utf-8")):
        tree = ast.parse(code, f"{page.name}:{line}")
        ast.increment_lineno(tree, line - 1)
        if is_run is True or (with_tools and is_run and all(map(find_spec, is_run))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(tree, str(page), "exec"), namespace)


def test_blocks_are_found_with_their_lines():
    text = "a\n```python\nx = 1\n```\n<!-- not run: slow -->\n  ```python\n  y = 2\n  ```\n"
    assert parts_of(text) == [(3, "x = 1\n", True), (7, "y = 2\n", False)]
    text = "<!-- run first\nx = 1\n-->\n\n<!-- needs: a b -->\n```python\ny = x\n```\n"
    assert parts_of(text) == [(2, "x = 1\n", True), (7, "y = x\n", ["a", "b"])]
