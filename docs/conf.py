"""Sphinx configuration: MyST pages, API from docstrings, mathematics without a network."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "representation-manifold"
author = "The representation-manifold developers"
project_copyright = author
release = version = installed("representation-manifold")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "plain_notation",
    "public_api",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext", "gallery"]
smartquotes = False  # -- and -+ are states here, not dashes

# Every public object once, under its shortest public name: see _ext/public_api.py.
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    # scikit-learn adds these to classifiers, with references to its own documentation.
    "exclude-members": "set_fit_request, set_partial_fit_request, set_score_request",
}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# Shapes in the types of parameters, such as (samples, layers, n), are words and no references.
suppress_warnings = ["ref.python"]
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False

# Ten scripts, run when the pages are built; tests/docs/test_gallery.py runs them too.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "min_reported_time": 3600,  # times of a shared machine say nothing
    "write_computation_times": False,
}


def _write_explorer(app, problem):
    """Put the page of the explorer beside the others."""
    if problem is None and app.builder.name == "html":
        from rmtheory.explorer import write_page

        write_page(Path(app.outdir, "explore.html"))


def setup(app):
    app.connect("build-finished", _write_explorer)


html_theme = "furo"
html_title = "Representation manifold"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
