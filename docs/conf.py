"""Sphinx configuration. Build: ``sphinx-build --fail-on-warning -b html docs docs/_build``."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]

project = "mcp_actors"
author = "the mcp_actors maintainers"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "house"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "mcp_actors"

# Names in single backticks lead to where they are described; those that are described nowhere read well as code.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Cancellation", "Source"]
