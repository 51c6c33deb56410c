"""The whole book as one PDF, printed from the pages of the built site.

The articles are joined into one page in the order of the contents, so that links between
chapters stay inside the document, and a headless Chromium prints it. The reference of the
package is left out: it is for looking things up while writing code.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

from bs4 import BeautifulSoup, Tag

from conceptnb.core.files import write_text
from tools.book.browser import serve
from tools.book.project import Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

_LEFT_OUT = "book/api/"
_REFERENCES = {"href": "a", "src": "img"}
# Buttons, anchors and margins that mean nothing on paper.
NOT_PRINTED = "script, .headerlink, .sd-stretched-link, .toggle-button, button, .copybtn"
# What a single page needs on paper stands in book/_static/custom.css.
_STYLE = """
  @page { size: A4; margin: 18mm 17mm 20mm; }
  html { font-size: 14px; }
  body { background: #fff; }
  article.bd-article { max-width: none; padding: 0; display: block; break-before: page; }
  article.bd-article:first-of-type { break-before: auto; }
  .bd-article h1 { font-size: 1.65rem; }
  .bd-article figure img, .bd-article .cell_output img { max-height: 20cm; width: auto; }
  .bd-article table { font-size: .8rem !important; }
  .tag_hide-input .cell_input, details > summary > .sd-summary-state-marker { display: none; }
"""
_PAPER: ViewportSize = {
    "width": 665,
    "height": 940,
}  # what the margins above leave of A4, in CSS pixels
# Unfolds everything, waits until mathematics and pictures are there, and makes what is wider
# than the paper smaller: Chromium would otherwise shrink the whole book.
_READY = """async () => {
  document.querySelectorAll("details").forEach(d => { d.open = true; });
  await MathJax.startup.promise;
  await Promise.all([...document.images].map(image => {
    image.loading = "eager";
    return image.complete ? image : new Promise(done => { image.onload = image.onerror = done; });
  }));
  await document.fonts.ready;
  const paper = document.querySelector("article").getBoundingClientRect();
  for (const wide of document.querySelectorAll("table, mjx-container[display=true]")) {
    const box = wide.getBoundingClientRect();
    if (box.right > paper.right) wide.style.zoom = (paper.right - box.left) / box.width;
  }
  return [...document.images].filter(i => i.naturalWidth === 0).map(i => i.alt);
}"""


class PrintError(RuntimeError):
    """The book could not be printed whole."""


def build(project: Project, browser: Browser) -> Path:
    """Print the built site into ``_build/html/NAME.pdf`` and return its path.

    Raises
    ------
    PrintError
        If the site is not built, or a picture of it does not load.
    """
    if not (project.html / "index.html").is_file():
        raise PrintError("the site is not built: run `make book` first")
    target = project.html / f"{project.name}.pdf"
    joined = project.html / "_print.html"
    write_text(joined, join(project))
    try:
        with serve(project.html) as address:
            page = browser.new_page(color_scheme="light", viewport=_PAPER)
            page.emulate_media(media="print")
            page.goto(address + joined.name, wait_until="load", timeout=120_000)
            missing = page.evaluate(_READY)
            if missing:
                raise PrintError(f"pictures that do not load: {', '.join(missing)}")
            page.pdf(
                path=str(target),
                prefer_css_page_size=True,
                print_background=True,
                outline=True,
                tagged=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=(
                    '<div style="width:100%;text-align:center;font-size:8px">'
                    '<span class="pageNumber"></span></div>'
                ),
            )
    finally:
        joined.unlink()
    return target


def join(project: Project) -> str:
    """Return one HTML page with the articles of the built site, in the order of the contents.

    Every id carries the name of its page, and links between pages become links within.
    """
    pages = [page for page in project.pages_in_toc if not page.startswith(_LEFT_OUT)]
    soups = {page: read_page(project.html / f"{page}.html") for page in pages}
    head = _head(soups[pages[0]], posixpath.dirname(pages[0]))
    articles = [_article(page, soup, soups, project.site_address) for page, soup in soups.items()]
    body = "\n".join(map(str, articles))
    return (
        f'<!doctype html>\n<html lang="en" data-theme="light" data-mode="light">\n'
        f"<head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def read_page(path: Path) -> BeautifulSoup:
    """Return a page of the built site, parsed."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def _head(soup: BeautifulSoup, folder: str) -> str:
    """Return title, stylesheets and MathJax as the first page has them."""
    kept = soup.select("head > title, head > link[rel=stylesheet]")
    kept += [tag for tag in soup.select("head > script") if "mathjax" in str(tag).lower()]
    for tag in kept:
        for name in ("href", "src"):
            if tag.get(name):
                tag[name] = posixpath.normpath(posixpath.join(folder, str(tag[name])))
    return '<meta charset="utf-8">' + "".join(map(str, kept))


def _article(page: str, soup: BeautifulSoup, pages: dict[str, BeautifulSoup], site: str) -> Tag:
    """Return the article of one page, its ids and references rewritten for the joined page."""
    article = soup.select_one("article.bd-article")
    if article is None:
        raise PrintError(f"{page}.html holds no article")
    for tag in article.select(NOT_PRINTED):
        tag.decompose()
    article["id"] = page
    for tag in article.find_all(id=True):
        tag["id"] = f"{page}--{tag['id']}"
    for attribute, name in _REFERENCES.items():
        for tag in article.find_all(name, attrs={attribute: True}):
            tag[attribute] = _within(attribute, str(tag[attribute]), page, pages, site)
    return article


def _within(
    attribute: str, address: str, page: str, pages: dict[str, BeautifulSoup], site: str
) -> str:
    """Return what an address of a page becomes in the joined page."""
    if urlsplit(address).scheme:
        return address
    target, anchor = urldefrag(unquote(address))
    beside = posixpath.join(posixpath.dirname(page), target)
    path = posixpath.normpath(beside) if target else f"{page}.html"
    name = path.removesuffix(".html")
    if name in pages:
        return f"#{name}--{anchor}" if anchor else f"#{name}"
    if attribute == "src":
        return path  # a picture lies beside the joined page
    return f"{site}{path}" + (f"#{anchor}" if anchor else "")  # all else is on the site alone
