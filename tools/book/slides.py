"""Slides of every chapter, cut from the pages of the built site.

A slide is a heading with what a lecturer points at: definitions and theorems, equations, tables,
lists, code with its output, figures with their captions. Running text stays, folded away as
notes, but for the paragraph that opens a section. Proofs and solutions are left out. The slides
use the site's own stylesheet and MathJax, so that they need no network either.
"""

from __future__ import annotations

import html
import posixpath
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag

from conceptnb.core.files import write_text
from tools.book.pdf import NOT_PRINTED, read_page
from tools.book.project import Project

FOLDER = "slides"
_HEADINGS = ("h1", "h2", "h3", "h4")
_NOT_SHOWN = f"{NOT_PRINTED}, .solution, .proof.proof, .toctree-wrapper, .tag_remove-input"
_FULL = 22  # lines that fit: what is beyond goes to the next slide
_CHARACTERS_A_LINE = 78

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
        title = _title(soup)
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
    """
    head = "\n".join(map(str, _head(soup)))
    article = soup.select_one("article.bd-article")
    if article is None:
        raise ValueError(f"chapter={chapter!r} holds no article")
    for tag in article.select(_NOT_SHOWN):
        tag.decompose()
    for tag in article.select(".cell:has(figure) > .cell_input"):
        tag.decompose()  # the picture, not the line that draws it
    for tag in article.find_all(["a", "img"]):
        _lead_back(tag, chapter)
    for tag in article.find_all(id=True):
        del tag["id"]
    slides = "\n".join(
        slide for section in article.find_all("section", recursive=False) for slide in _cut(section)
    )
    return _PAGE.format(title=html.escape(title), head=head, slides=slides, chapter=chapter)


def _cut(section: Tag) -> Iterator[str]:
    """Yield the slides of a section, then those of the sections in it."""
    heading = section.find(_HEADINGS, recursive=False)
    title = heading.decode_contents() if isinstance(heading, Tag) else ""
    level = heading.name if isinstance(heading, Tag) else "h2"
    shown: list[str] = []
    notes: list[str] = []
    lines, opened, made = 6.0 if level == "h1" else 0.0, False, 0  # a title is large
    inner = [child for child in section.children if isinstance(child, Tag) and child != heading]
    for block in inner:
        if block.name == "section":
            continue
        if block.name == "p" and opened:
            notes.append(str(block))
            continue
        opened = True
        size = _lines(block)
        if shown and lines + size > _FULL:
            yield _slide(level, title, made, shown, notes)
            shown, notes, lines, made = [], [], 0.0, made + 1
        shown.append(str(block))
        lines += size
    if shown or notes or level == "h1":
        yield _slide(level, title, made, shown, notes)
    for block in inner:
        if block.name == "section":
            yield from _cut(block)


def _slide(level: str, title: str, number: int, shown: list[str], notes: list[str]) -> str:
    """Return one slide: its heading, what is shown, and the text behind it."""
    name = "h1" if level == "h1" and not number else "h2"
    again = " <small>(continued)</small>" if number else ""
    text = f'<aside class="slide-notes">{"".join(notes)}</aside>' if notes else ""
    return (
        f'<section class="slide bd-article slide-{name}"><{name}>{title}{again}</{name}>\n'
        f"{''.join(shown)}{text}</section>"
    )


def _lines(block: Tag) -> float:
    """Return how many lines of a slide a block takes, roughly."""
    pictures = len(block.find_all(["img", "svg"])) + (block.name == "img")
    rows = len(block.find_all("tr"))
    formulas = len(block.select("div.math")) + ("math" in (block.get("class") or []))
    code = sum(pre.get_text().count("\n") + 1 for pre in block.find_all("pre"))
    prose = len(block.get_text(" ", strip=True)) / _CHARACTERS_A_LINE if not code else 0
    return 14 * pictures + 1.3 * rows + 3 * formulas + code + (0 if rows else prose) + 1


def _head(soup: BeautifulSoup) -> list[Tag]:
    """Return stylesheets and MathJax of a chapter; slides lie as deep as chapters do."""
    scripts = [tag for tag in soup.select("head > script") if "mathjax" in str(tag).lower()]
    links = soup.select("head > link[rel=stylesheet], head > link[rel~=icon]")
    return [*links, *scripts]


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


def _title(soup: BeautifulSoup) -> str:
    """Return the title of a page, without the mark that links to it."""
    heading = soup.select_one("article.bd-article h1")
    return "" if heading is None else heading.get_text().rstrip("#").strip()
