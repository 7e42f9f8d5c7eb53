"""Settings of the site: ``python -m sphinx -W --keep-going docs site`` builds it.

``-D plot_gallery=0`` leaves the examples unrun, which is most of the time.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sphinx.util import logging  # noqa: E402

import sklearn_xc  # noqa: E402

project = "sklearn_xc"
author = project_copyright = "The sklearn_xc developers"
version = release = sklearn_xc.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
templates_path = ["_templates"]
default_role = "code"
highlight_language = "none"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's types say more
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "ignore_pattern": r"serve\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # their table loads scripts from elsewhere
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_xc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {page: [] for page in ("index", "getting_started", "choosing", "changelog")}


def setup(app: Any) -> None:
    """Leave out what scikit-learn describes, and warn of what the reference lacks."""
    app.connect("autodoc-skip-member", _is_left_out)
    app.connect("builder-inited", _warn_of_missing)


def _warn_of_missing(app: Any) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.rst")]
    lines = "\n".join(pages).split("\n")
    named = {line.strip() for line in lines if line.startswith("   ")}
    described = {line.split()[-1] for line in lines if line.startswith(".. currentmodule::")}
    for module in sorted(described | {f"sklearn_xc.{name}" for name in sklearn_xc._SUBPACKAGES}):
        package = importlib.import_module(module)
        for name in sorted(set(package.__all__) - named - set(sklearn_xc._SUBPACKAGES)):
            if callable(getattr(package, name)):
                logging.getLogger(__name__).warning("docs/api lacks %s %s", module, name)


def _is_left_out(
    app: Any, what: str, name: str, member: Any, is_skipped: bool, options: Any
) -> bool | None:
    module = getattr(member, "__module__", None) or ""
    is_request = name.startswith("set_") and name.endswith("_request")
    is_theirs = is_request or name == "n_features_in_" or module.startswith("sklearn.")
    return True if is_theirs else None
