"""The whole book as one PDF, printed from the pages of the built site.

The articles are joined into one page, so that links between chapters stay inside. (Sphinx's own
``singlehtml`` stops at the first definition: sphinx_proof has no box for that builder.)
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urljoin

from bs4 import BeautifulSoup, Tag

from conceptnb.common.files import write_text
from tools.book.front import add_front
from tools.book.project import Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

_LEFT_OUT = "book/api/"
_FOR_A_SCREEN = "script, .headerlink, .sd-stretched-link, .toggle-button, button, .copybtn"
_PAPER: "ViewportSize" = {"width": 665, "height": 940}  # pixels that the margins leave of A4
_READY = Path(__file__).with_name("print.js").read_text(encoding="utf-8")
_OPTIONS = json.loads(Path(__file__).with_name("print.json").read_text(encoding="utf-8"))
_PAGE = Path(__file__).with_name("print.html").read_text(encoding="utf-8")


def build(project: Project, browser: "Browser") -> Path:
    """Print the built site into ``_build/html/NAME.pdf`` and return its path."""
    if not (project.html / "index.html").is_file():
        raise RuntimeError("the site is not built: run `make book` first")
    target = project.html / f"{project.name}.pdf"
    joined = project.html / "_print.html"
    write_text(joined, join(project))
    try:
        page = browser.new_page(color_scheme="light", viewport=_PAPER)
        page.emulate_media(media="print")
        page.goto(joined.as_uri(), wait_until="load", timeout=120_000)
        if missing := page.evaluate(_READY):
            raise RuntimeError(f"pictures that do not load: {', '.join(missing)}")
        page.pdf(path=target, **_OPTIONS)
    finally:
        joined.unlink()
    headings = [read_page(project, page)[1].h1 for page in printed_pages(project)]
    add_front(project, browser, target, [h1.get_text() if h1 else "" for h1 in headings])
    return target


def printed_pages(project: Project) -> list[str]:
    """Return the pages of the contents that are printed: all but the reference of the code."""
    return [page for page in project.pages_in_toc if not page.startswith(_LEFT_OUT)]


def join(project: Project) -> str:
    """Return the articles of the built site as one HTML page, with ids by page and links within."""
    pages = printed_pages(project)
    read = {page: read_page(project, page) for page in pages}
    head = read[pages[0]][0]
    for tag in head:
        for name in {"href", "src"} & set(tag.attrs):
            tag[name] = urljoin(pages[0], str(tag[name]))
    for page, (_, article) in read.items():
        _move_within(article, page, pages, project.site_address)
    body = "".join(str(article) for _, article in read.values())
    return _PAGE.format(title=project.name, head="".join(map(str, head)), body=body)


def read_page(project: Project, page: str) -> tuple[list[Tag], Tag]:
    """Return a page's stylesheets and MathJax, and its article without what is for a screen."""
    text = (project.html / f"{page}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(text, "html.parser")
    head = soup.select("head > link[rel=stylesheet]")
    head += [tag for tag in soup.select("head > script") if "mathjax" in str(tag).lower()]
    article = soup.select_one("article.bd-article")
    if article is None:
        raise RuntimeError(f"{page}.html holds no article")
    for tag in article.select(_FOR_A_SCREEN):
        tag.decompose()
    return head, article


def _move_within(article: Tag, page: str, pages: list[str], site: str) -> None:
    """Rewrite ids and references of a page's article for the page that all are joined in."""
    article["id"] = page
    for tag in article.find_all(id=True):
        tag["id"] = f"{page}--{tag['id']}"
    for image in article.select("img[src]"):
        image["src"] = urljoin(page, str(image["src"]))
    for link in article.select("a[href]"):
        address = urljoin(f"{site}{page}.html", str(link["href"]))
        target, anchor = urldefrag(unquote(address))
        name = target.removeprefix(site).removesuffix(".html")
        within = f"#{name}--{anchor}" if anchor else f"#{name}"
        link["href"] = within if name in pages else address
