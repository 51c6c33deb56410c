"""Slides of every chapter, made from the pages of the built site.

A section is a slide, with all that is in it but proofs and solutions: definitions and theorems,
equations, tables, lists, code with its output, figures with their captions. Of its paragraphs
the first is shown, and the others are notes; in the window, ``slides.js`` lets what does not fit
go on to another slide. The site's own stylesheet and MathJax are used, so that slides need no
network either. (nbconvert's slides show directives as source, and its reveal.js comes from
another host.)
"""

from __future__ import annotations

import html
import posixpath
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag

from conceptnb.core.files import write_text
from tools.book.pdf import NOT_PRINTED, read_page
from tools.book.project import Project

FOLDER = "slides"
_NOT_SHOWN = (
    f"{NOT_PRINTED}, .solution, .toctree-wrapper, .proof-argument, details:has(.proof-argument), "
    ".tag_remove-input, details.above-input, .cell:has(figure) > .cell_input"
)  # code that is folded away, or draws the picture that is shown

_HEADINGS = ("h1", "h2", "h3", "h4")
_PAGE = """<!doctype html>
<html lang="en" data-theme="light" data-mode="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
{head}
<link rel="stylesheet" href="../_static/slides.css">
<script defer src="../_static/slides.js"></script>
</head>
<body>
<main class="slides" tabindex="0">
{slides}
</main>
<nav class="slides-bar" aria-label="Slides">
<button type="button" data-step="-1" aria-label="Previous slide">←</button>
<span class="slides-place" role="status"></span>
<button type="button" data-step="1" aria-label="Next slide">→</button>
<button type="button" data-notes aria-pressed="false">Notes</button>
<a href="{chapter}">Chapter</a>
</nav>
</body>
</html>
"""


def build(project: Project) -> list[Path]:
    """Write the slides of every chapter of the built site, and the page that lists them.

    Returns
    -------
    list of Path
        ``_build/html/slides/NAME.html``, and ``index.html`` last.

    Raises
    ------
    FileNotFoundError
        If the site is not built.
    """
    written, rows = [], []
    for page in project.pages_in_toc:
        if not page.startswith("notebooks/"):
            continue
        soup = read_page(project.html / f"{page}.html")
        target = project.html / FOLDER / f"{posixpath.basename(page)}.html"
        heading = soup.select_one("article.bd-article h1")
        title = "" if heading is None else heading.get_text().rstrip("#").strip()
        write_text(target, deck(soup, title, f"../{page}.html"))
        rows.append(f'<li><a href="{target.name}">{html.escape(title)}</a></li>')
        written.append(target)
    listing = (
        "<h1>Slides</h1>\n<p>Arrow keys turn pages, N shows the text behind them.</p>\n"
        f"<ul>{''.join(rows)}</ul>"
    )
    index = _PAGE.format(
        title="All chapters",
        head="",
        slides=f'<section class="slide">{listing}</section>',
        chapter="../book/lecturers.html",
    )
    write_text(project.html / FOLDER / "index.html", index)
    return [*written, project.html / FOLDER / "index.html"]


def deck(soup: BeautifulSoup, title: str, chapter: str) -> str:
    """Return the slides of one page as HTML.

    Parameters
    ----------
    soup : BeautifulSoup
        The page of a chapter; it is changed.
    title : str
    chapter : str
        Address of that page, as seen from the slides.

    Raises
    ------
    ValueError
        If the page holds no article.
    """
    article = soup.select_one("article.bd-article")
    if article is None:
        raise ValueError(f"chapter={chapter!r} holds no article")
    for tag in article.select(_NOT_SHOWN):
        tag.decompose()
    for tag in article.find_all(["a", "img"]):
        _lead_back(tag, chapter)
    # As on the page of the chapter, from which slides lie equally deep.
    head = soup.select("head > link[rel=stylesheet], head > link[rel~=icon]")
    head += [tag for tag in soup.select("head > script") if "mathjax" in str(tag).lower()]
    return _PAGE.format(
        title=html.escape(title),
        head="\n".join(map(str, head)),
        slides="\n".join(filter(None, map(_slide, article.find_all("section")))),
        chapter=chapter,
    )


def _slide(section: Tag) -> str:
    """Return the slide of a section without those in it; nothing where there is none."""
    heading = section.find(_HEADINGS, recursive=False)
    others = section.find_all(
        lambda tag: tag.name not in {*_HEADINGS, "section", "span"}, recursive=False
    )
    for paragraph in section.find_all("p", recursive=False)[1:]:
        paragraph["class"] = "slide-note"
    if heading is None or (not others and heading.name != "h1"):
        return ""  # the text of a box; a heading over sections
    heading.name = "h1" if heading.name == "h1" else "h2"
    shown = "".join(map(str, [heading, *others]))
    return f'<section class="slide bd-article slide-{heading.name}">{shown}</section>'


def _lead_back(tag: Tag, chapter: str) -> None:
    """Let a reference of the chapter mean the same from the slides."""
    name = "href" if tag.name == "a" else "src"
    address = str(tag.get(name) or "")
    if not address or urlsplit(address).scheme:
        return
    if address.startswith("#"):
        tag[name] = chapter + address
    else:
        tag[name] = posixpath.normpath(posixpath.join(posixpath.dirname(chapter), address))
