"""Slides of every chapter, made from the pages of the built site.

A section is a slide, without proofs and solutions. Its first paragraph is shown, and the others are
notes; ``slides.js`` lets what does not fit go on to another slide.
"""

import html
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from bs4 import Tag

from conceptnb.common.files import write_text
from tools.book.pdf import read_page
from tools.book.project import Project

_NOT_SHOWN = (
    ".solution, .toctree-wrapper, .proof-argument, details:has(.proof-argument), "
    "details.above-input, .cell:has(figure) > .cell_input"
)  # the last two: code that is folded away, or draws the picture that is shown
_HEADINGS = ("h1", "h2", "h3", "h4")
_PAGE = Path(__file__).with_name("slides.html").read_text(encoding="utf-8")


def build(project: Project) -> list[Path]:
    """Write the slides of every chapter of the built site, and the page that lists them, last."""
    written: list[Path] = []
    rows = []
    for page in project.pages_in_toc:
        if is_chapter(page):
            head, article = read_page(project, page)
            heading = article.h1.get_text() if article.h1 else page
            written.append(project.html / f"{deck_of(page)}.html")
            write_text(written[-1], _page(heading, deck(article, page), f"../{page}.html", head))
            rows.append(f'<li><a href="{written[-1].name}">{html.escape(heading)}</a></li>')
    listing = (
        '<section class="slide"><h1>Slides</h1>\n<p>Arrow keys turn pages, N shows the text behind '
        f"them.</p>\n<ul>{''.join(rows)}</ul></section>"
    )
    written.append(project.html / "slides" / "index.html")
    write_text(written[-1], _page("All chapters", [listing], "../book/lecturers.html"))
    return written


def is_chapter(page: str) -> bool:
    """Return whether a page has slides: chapters have, research notes do not."""
    return page.startswith("notebooks/") and page.count("/") == 1


def deck_of(page: str) -> str:
    """Return the page of a chapter's slides (``slides/01_concepts``)."""
    return f"slides/{Path(page).name}"


def deck(article: Tag, page: str) -> list[str]:
    """Return the slides of a page's article, which is changed, as HTML."""
    for tag in article.select(_NOT_SHOWN):
        tag.decompose()
    for name in ("href", "src"):  # slides lie in a folder beside that of the chapters
        for tag in article.select(f"[{name}]"):
            if not urlsplit(str(tag[name])).scheme:
                tag[name] = f"../{urljoin(f'{page}.html', str(tag[name]))}"
    return [slide for section in article.find_all("section") if (slide := _slide(section))]


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


def _page(title: str, slides: list[str], chapter: str, head: list[Tag] | None = None) -> str:
    return _PAGE.format(
        title=html.escape(title),
        head="\n".join(map(str, head or [])),
        slides="\n".join(slides),
        chapter=chapter,
    )
