"""What the printed book begins with: a title page, and contents with page numbers."""

import html
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import Destination

from tools.book.project import Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_PAGE = Path(__file__).with_name("front.html").read_text(encoding="utf-8")
_ABOUT = (
    "An executable book on <i>From Causal to Concept-Based Representation Learning</i> "
    "(Rajendran, Buchholz, Aragam, Schölkopf and Ravikumar, NeurIPS 2024)"
)


def add_front(project: Project, browser: "Browser", book: Path, titles: list[str]) -> None:
    """Put title page and contents before the pages of a printed book, and say who wrote it.

    `titles` are those of all chapters, in order; the outline of the PDF knows their pages.
    """
    chapters = list(zip(titles, pages_of_chapters(PdfReader(book)), strict=True))
    page = browser.new_page(color_scheme="light")
    page.goto("about:blank")
    page.set_content(front_page(project, chapters), wait_until="load")
    front = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
    writer = PdfWriter(clone_from=book)
    writer.merge(0, front, import_outline=False)
    first = len(front.pages)
    writer.set_page_label(0, first - 1, style=PageLabelStyle.LOWERCASE_ROMAN)
    writer.set_page_label(first, len(writer.pages) - 1, style=PageLabelStyle.DECIMAL, start=1)
    config = _config(project)
    writer.add_metadata({"/Title": config["title"], "/Author": config["author"]})
    writer.write(book)


def pages_of_chapters(reader: PdfReader) -> list[int]:
    """Return the page number, from 1, of every chapter in the outline of a PDF."""
    numbers = [
        reader.get_destination_page_number(item)
        for item in reader.outline
        if isinstance(item, Destination)
    ]
    return [number + 1 for number in numbers if number is not None]


def front_page(project: Project, chapters: list[tuple[str, int]]) -> str:
    """Return title page and contents as HTML: the parts of the contents, with their chapters."""
    config, cited = _config(project), _cited(project)
    rows = [
        f"<li><span>{html.escape(title)}</span><span class=dots></span><span>{page}</span></li>"
        for title, page in chapters
    ]
    parts, done = [], 0
    for caption, count in _parts(project):
        heading = f"<h3>{html.escape(caption)}</h3>" if caption else ""
        parts.append(f"{heading}<ul>{''.join(rows[done : done + count])}</ul>")
        done += count
    picture = project.html / "_static" / "grid.png"
    return _PAGE.format(
        title=html.escape(config["title"]),
        about=_ABOUT,
        picture=_data_address(picture) if picture.is_file() else "",
        author=html.escape(config["author"]),
        version=cited.get("version", ""),
        date=cited.get("date-released", ""),
        address=project.site_address,
        contents="\n".join([*parts, f"<ul>{''.join(rows[done:])}</ul>"]),
    )


def _parts(project: Project) -> list[tuple[str, int]]:
    """Return for each part of the contents its caption and how many pages of it are printed."""
    contents = project.contents
    counts = [("", 1)]  # the landing page
    for part in contents["parts"]:
        files = [entry["file"] for entry in part["chapters"]]
        files += [inner["file"] for e in part["chapters"] for inner in e.get("sections", [])]
        printed = [file for file in files if not file.startswith("book/api/")]
        counts.append((part.get("caption", ""), len(printed)))
    return counts


def _data_address(picture: Path) -> str:
    return f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"


def _config(project: Project) -> dict[str, str]:
    return yaml.safe_load((project.root / "_config.yml").read_text(encoding="utf-8"))


def _cited(project: Project) -> dict[str, str]:
    path = project.root / "CITATION.cff"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
