"""Sphinx extension: what those see who link to a page, and where its launch buttons lead.

Each page says what it is about, with a picture, to chats and search engines, and to Google Scholar
how it is cited; the buttons of Colab and Binder open the chapter's plain notebook.
"""

import html
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml
from bs4 import BeautifulSoup
from sphinx.application import Sphinx

LAUNCH = "launch"  # the branch with the chapters as plain notebooks, which CI pushes
_LONGEST = 200  # characters of a description
_PICTURE = re.compile(r'src="(?:\.\./)*(_images/[^"]+\.png)"')
_META = '<meta {kind}="{name}" content="{content}" />'


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.add_config_value("citation_file", None, "env", types=[str])
    app.connect("html-page-context", _describe, priority=950)
    app.connect("html-page-context", _launch_plain_notebooks, priority=950)
    app.connect("html-page-context", _link_the_printed_book, priority=950)
    app.connect("build-finished", _write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the meta tags of a page that was written by people."""
    body = context.get("body", "")
    if doctree is None or not app.config.html_baseurl:
        return
    site, book = app.config.html_baseurl, app.config.html_title
    title = BeautifulSoup(context.get("title", ""), "html.parser").get_text()
    found = _PICTURE.search(body)
    picture = site + (found[1] if found else "_static/grid.png")
    said = description(body) or f"A page of {book}."
    shared = {"og:type": "article", "og:site_name": book, "og:title": title, "og:description": said,
              "og:url": f"{site}{page}.html", "og:image": picture}  # fmt: skip
    named = {"description": said, "twitter:card": "summary_large_image"}
    if page.startswith("notebooks/"):
        named |= _citation(app, title) | {"citation_public_url": f"{site}{page}.html"}
    tags = [_tag("property", *pair) for pair in shared.items()]
    tags += [_tag("name", *pair) for pair in named.items()]
    context["metatags"] = context.get("metatags", "") + "\n    ".join(["", *tags])


def description(body: str) -> str:
    """Return the first sentences of a page, as plain text of at most 200 characters."""
    soup = BeautifulSoup(body, "html.parser")
    for paragraph in soup.select("section > p"):
        for formula in paragraph.select(".math"):
            formula.string = re.sub(r"\\[()]", "", formula.get_text())
        words = " ".join(paragraph.get_text().split())
        if len(words) > _LONGEST:
            words = words[:_LONGEST].rsplit(" ", 1)[0] + " …"
        if words:
            return words
    return ""


def _citation(app: Sphinx, title: str) -> dict[str, str]:
    """Return what Google Scholar reads, from CITATION.cff."""
    path = Path(app.srcdir) / str(app.config.citation_file)
    cited = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        "citation_title": title,
        "citation_inbook_title": str(app.config.html_title),
        "citation_author": str(app.config.author),
        "citation_publication_date": str(cited.get("date-released", "")).replace("-", "/"),
        "citation_language": "en",
    }


def _tag(kind: str, name: str, content: str) -> str:
    return _META.format(kind=kind, name=name, content=html.escape(content, quote=True))


def _launch_plain_notebooks(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            address = str(button.get("url", ""))
            if address.startswith("https://colab.research.google.com/"):
                button["url"] = address.replace("/blob/main/", f"/blob/{LAUNCH}/")
            elif "mybinder.org" in address:
                button["url"] = address.replace("/main?", f"/{LAUNCH}?")


def _link_the_printed_book(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add the printed book to the downloads, by its whole address: not every build has it."""
    site = app.config.html_baseurl
    name = site.rstrip("/").rsplit("/", 1)[-1]
    book = {"type": "link", "url": f"{site}{name}.pdf", "text": "The book on paper",
            "tooltip": "The whole book as a PDF", "icon": "fas fa-book",
            "label": "printed-book-button"}  # fmt: skip
    for group in context.get("header_buttons", []):
        if group.get("label") == "download-buttons":
            group["buttons"].append(book)
            return
    if "header_buttons" in context and site:
        context["header_buttons"].append(book)


def _write_sitemap(app: Sphinx, error: Exception | None) -> None:
    """Write the addresses of all pages that people wrote."""
    site = app.config.html_baseurl
    if error is not None or app.builder.format != "html" or not site:
        return
    entries = "\n".join(
        f"  <url><loc>{escape(site)}{escape(page)}.html</loc></url>"
        for page in sorted(app.env.found_docs)
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{entries}\n</urlset>\n"
    )
    (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf-8")
