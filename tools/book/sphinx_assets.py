"""Sphinx extension: chapters number their contents, links lead home, proofs unfold.

MathJax and plotly.js come from installed Python packages, so that the book reads offline.
"""

import re
from importlib.metadata import distribution
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.util.fileutil import copy_asset
from sphinx_proof.nodes import proof_node

from tools.book.slides import deck_of, is_chapter

_CHAPTER = re.compile(r"notebooks/(\d+)_")
_NOTES = "book/notes"  # the page whose contents are the research notes
_MATHJAX, _FONTS = "tex-chtml-full.js", "output/chtml/fonts/woff-v2"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("html-page-context", _link_source_and_slides, priority=900)
    app.connect("env-get-updated", _number_by_chapter, priority=900)  # behind Sphinx's own
    app.connect("build-finished", _copy_assets)
    app.connect("autodoc-process-docstring", _escape_bars, priority=900)
    app.connect("autodoc-skip-member", _skip_what_others_wrote)
    app.connect("doctree-read", _give_proofs_a_title)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _number_by_chapter(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Give chapters the numbers of their files, notes N1, N2, ..., and what is in them, too."""
    notes = enumerate(env.toctree_includes.get(_NOTES, []), start=1)
    numbered: dict[str, Any] = {page: (f"N{place}",) for place, page in notes}
    files = {page: file for page in env.tocs if (file := _CHAPTER.match(page))}
    numbered |= {page: (int(file[1]),) for page, file in files.items()}
    for page, number in numbered.items():
        links = list(env.tocs[page].findall(nodes.reference))
        links[0]["secnumber"] = number
        unnumbered = {link["anchorname"]: () for link in links[1:]}
        env.toc_secnumbers[page] = {"": number, **unnumbered}
    TocTreeCollector().assign_figure_numbers(env)
    assigned: dict[str, Any] = env.toc_fignumbers
    for page in assigned.keys() - numbered:
        for numbers in assigned[page].values():  # as in an appendix: Table A.1
            numbers.update({name: ("A", *number) for name, number in numbers.items()})
    return []


def _give_proofs_a_title(app: Sphinx, doctree: nodes.document) -> None:
    """Turn the words "Proof. " that open a proof into its title, on which a reader unfolds it."""
    for number, proof in enumerate(doctree.findall(proof_node), start=1):
        box = proof.next_node(nodes.admonition)
        text = box.next_node(nodes.Text)
        text.parent.replace(text, nodes.Text(text.removeprefix("Proof. ")))
        box["ids"] = [f"proof-{number}"]
        box["classes"].append("proof-argument")  # to tell it from what it proves, a proof box too
        box.insert(0, nodes.title("", "Proof"))


def _skip_what_others_wrote(app: Sphinx, what: str, name: str, obj: Any, *_: Any) -> bool | None:
    """Leave out members that a library adds to our classes: their docstrings are not ours."""
    module = getattr(obj, "__module__", None)
    return True if callable(obj) and module and not module.startswith("conceptnb") else None


def _escape_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: Any) -> None:
    """Let |x| in a docstring be an absolute value: reStructuredText would substitute it."""
    for number, line in enumerate(lines):
        parts = re.split(r"(``.+?``)", line)
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "".join(parts)


def _copy_assets(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    packaged = distribution("sphinx-mathjax-offline")
    mathjax = Path(str(packaged.locate_file("sphinx-mathjax-offline/static/mathjax")))
    copy_asset(mathjax / _MATHJAX, static / "mathjax")
    copy_asset(mathjax / _FONTS, static / "mathjax" / _FONTS)
    with as_file(files("plotly") / "package_data" / "plotly.min.js") as plotly:
        copy_asset(plotly, static)


def _link_source_and_slides(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let the links to a chapter's source open its ``.md``, and add one to its slides."""
    if not pagename.startswith("notebooks/"):
        return
    groups = context.get("header_buttons", [])
    for button in (button for group in groups for button in group.get("buttons", [])):
        if button.get("label") in {"source-file-button", "source-edit-button"}:
            button["url"] = button["url"].replace(".ipynb", ".md")
    if is_chapter(pagename):
        link = {"url": f"../{deck_of(pagename)}.html", "tooltip": "Slides of this chapter"}
        icon = {"icon": "fas fa-person-chalkboard", "label": "slides-button"}
        groups.insert(0, {"type": "link", **link, **icon})
