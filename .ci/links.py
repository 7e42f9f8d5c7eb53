"""Check a built site: each link has its page and its anchor, and no page loads from elsewhere.

``python .ci/links.py site``
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"img", "link", "script"}


class _Page(HTMLParser):
    """The anchors of a page, and where it leads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name == "id":
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append((tag, value))


def _reason(tag: str, link: str, path: Path, pages: dict[Path, _Page]) -> str | None:
    """Return what is wrong with a link, or None."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "loads from elsewhere" if tag in _LOADED and parts.scheme != "data" else None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "leads to no file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "leads to no anchor"
    return None


root = Path(sys.argv[1]).resolve()
paths = [path for path in root.rglob("*.html") if "_static" not in path.relative_to(root).parts]
pages = {path: _Page(path) for path in paths}
count = sum(len(page.links) for page in pages.values())
wrong = [
    f"{path.relative_to(root)}: {link} {reason}"
    for path, page in pages.items()
    for tag, link in page.links
    if (reason := _reason(tag, link, path, pages))
]
print(f"The site has {len(pages)} pages and {count:,} links.")
if wrong or not pages:
    sys.exit("\n".join(wrong) or f"no pages in {root}")
