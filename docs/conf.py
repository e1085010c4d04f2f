"""Sphinx settings; `make docs` treats every warning as an error."""

from __future__ import annotations

import entrepot

project = "entrepot"
author = "the entrepot authors"
release = entrepot.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "entrepot"
html_show_copyright = False
napoleon_use_ivar = True  # dataclass fields are described once, in their class
autodoc_typehints = "description"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.xref_missing"]  # the included ARCHITECTURE.md links to files in the repository
