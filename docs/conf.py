"""How Sphinx builds the site; `python -m docs` calls it. Nothing in a page needs a network."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "viz")]

import symgrad  # noqa: E402

project = "symgrad"
author = "The symgrad authors"
copyright = "The symgrad authors, BSD-3-Clause"
release = version = symgrad.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "docs.site.cells",
    "docs.site.docstrings",
    "docs.site.mathematics",
    "docs.site.pages",
]
exclude_patterns = ["_build", "site"]
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a page that is included begins at its own level

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
toc_object_entries = False
# Types in signatures are those of the source; not each of them has an entry of its own.
nitpick_ignore_regex = [("py:.*", ".*")]

html_theme = "furo"
html_title = "symgrad"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_selector = "div.cell-input div.highlight pre, div.highlight-sh pre"
