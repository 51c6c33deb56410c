"""A small book from end to end: built once, its slides, its pages on paper, and what fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

from tools.book import front, pairs, pdf, slides

ROOT = Path(__file__).resolve().parents[2]

# Everything that a chapter may hold, as chapters write it.
LECTURE = r"""
Opening, see {ref}`label-b`, {prf:ref}`lem-a` and {eq}`eq-a`.

Second.

```{prf:definition} A concept
:label: def-a
Defined.
```

```{prf:assumption} Noise
:label: asm-a
Assumed.
```

````{prf:algorithm} Steps
:label: alg-a
1. Step.
````

$$ x = y $$ (eq-a)

### Deeper

First. <span>Below.</span>

```{prf:lemma} Small
:label: lem-a
Small.
```

````{dropdown} Proof
```{prf:proof}
Thus.
```
````

```{prf:theorem} Large
:label: thm-a
Large.
```

```{prf:proof}
:class: dropdown
Hence.
```

Third.

```{code-cell} ipython3
:tags: [hide-input]
import matplotlib.pyplot as plt
```

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: A curve.
    name: fig-a
  image:
    alt: A line that rises.
---
plt.plot([0, 1]);
```

```{code-cell} ipython3
:tags: [remove-input]
print("A table.")
```

```{exercise-start} Try
:label: ex-a
```
Asked.
```{exercise-end}
```

````{solution-start} ex-a
:class: dropdown
````
Answered.
````{solution-end}
````

## Last
"""


NOTE = "Ours.\n\n```{prf:lemma} Our own\n:label: lem-n\nSmall.\n```"


def build(root):
    command = [sys.executable, "-m", "tools.book", "--root", str(root), "book"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def built(tmp_path_factory, make_book):
    """A book of two chapters and a research note, executed and built by the command."""
    book = make_book(tmp_path_factory.mktemp("built"))
    book.write("a", text=LECTURE)
    (book.root / "notebooks" / "notes").mkdir()
    book.write("notes/n", text=NOTE)
    (book.root / "book" / "notes.md").write_text("# Notes\n", encoding="utf-8")
    contents = book.contents
    notes = {"file": "book/notes", "sections": [{"file": "notebooks/notes/n"}]}
    contents["parts"].append({"chapters": [notes]})
    (book.root / "_toc.yml").write_text(yaml.safe_dump(contents), encoding="utf-8")
    moved = '"notebooks/old" = "notebooks/a"\n"notebooks/older" = "notebooks/notes/n"\n'
    (book.root / "book" / "moved.toml").write_text(moved, encoding="utf-8")
    pairs.pair(book)
    first = build(book.root)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "3 of 3 chapters executed" in first.stdout
    return book


def parsed(path):
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="module")
def deck(built):
    return parsed(built.html / "slides" / "a.html")


@pytest.mark.slow
def test_a_page_shows_the_output_of_its_cells(built):
    page = parsed(built.html / "notebooks" / "b.html")
    assert page.h1.get_text() == "Chapter b"
    assert page.select_one(".cell_output").get_text().strip() == "2"


@pytest.mark.slow
def test_a_note_is_numbered_on_its_own_and_has_no_slides(built):
    page = parsed(built.html / "notebooks" / "notes" / "n.html")
    assert page.select_one("article h1").get_text().startswith("N1. Chapter n")
    assert page.select_one("#lem-n .caption-number").get_text().strip() == "Lemma N1.1"
    assert not page.select("a[href*=slides]")
    assert not (built.html / "slides" / "n.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("index", "book/index"),
        ("notebooks/old", "notebooks/a"),
        ("slides/old", "slides/a"),
        ("notebooks/older", "notebooks/notes/n"),
        ("slides/older", "notebooks/notes/n"),
    ],
)
def test_an_old_address_leads_to_the_page_of_today(built, old, new):
    link = parsed(built.html / f"{old}.html").a["href"]
    target = (built.html / old).parent / link
    assert target.resolve() == (built.html / f"{new}.html").resolve()
    assert target.is_file()


@pytest.mark.slow
def test_a_book_is_built_once_and_fails_where_a_chapter_or_a_link_is_broken(built, tmp_path):
    project = type(built)(shutil.copytree(built.root, tmp_path / "book"))
    again = build(project.root)
    assert again.returncode == 0
    assert "0 of 3 chapters executed" in again.stdout
    assert "up to date" in again.stdout

    project.write("b", code="raise ValueError('this cell is broken')")
    pairs.pair(project)
    for _ in range(2):  # a failure is not remembered as done
        broken = build(project.root)
        assert broken.returncode == 1
        assert "notebooks/b.md failed: ValueError: this cell is broken" in broken.stderr

    project.write("b", text="See {ref}`no-such-label`.")
    pairs.pair(project)
    for _ in range(2):
        unlinked = build(project.root)
        assert unlinked.returncode == 1
        assert "no-such-label" in unlinked.stderr
        assert "notebooks/b" in unlinked.stderr


@pytest.mark.slow
def test_every_box_and_every_figure_of_the_chapter_is_on_one_slide(built, deck):
    page = parsed(built.html / "notebooks" / "a.html")
    boxes = {box["id"] for box in page.select(".proof:not(.proof-argument), figure[id]")}
    assert boxes == {"def-a", "asm-a", "alg-a", "lem-a", "thm-a", "fig-a"}
    for box in boxes:
        here, there = page.find(id=box), deck.select(f".slide #{box}")
        assert len(there) == 1
        assert there[0].get_text().strip() == here.get_text().replace("#", "").strip()


@pytest.mark.slow
def test_a_section_is_a_slide_and_a_box_is_none(deck):
    headings = [slide.find(["h1", "h2"]).get_text() for slide in deck.select("section.slide")]
    assert headings == ["Chapter a", "A place", "Deeper", "Last"]


@pytest.mark.slow
def test_slides_show_the_first_paragraph_and_keep_the_others_as_notes(deck):
    _, first, second, _ = deck.select("section.slide")
    assert [note.get_text() for note in first.select(".slide-note")] == ["Second."]
    assert first.find("p").get_text().startswith("Opening")
    assert [note.get_text() for note in second.select(".slide-note")] == ["Third."]
    assert second.find("p").get_text() == "First. Below."
    assert first.select_one("div.math") is not None


@pytest.mark.slow
def test_slides_leave_out_proofs_solutions_and_the_lines_that_import_and_draw(deck):
    text = deck.select_one("main").get_text()
    assert not [word for word in ("Thus.", "Hence.", "Proof", "Answered.", "plt") if word in text]
    assert "#" not in text
    assert "Asked." in text
    assert "A table." in text
    assert "1 + 1" in text


@pytest.mark.slow
def test_slides_refer_to_the_chapter_and_load_from_the_site(built, deck):
    links = {a["href"] for a in deck.select(".slide a")}
    assert "../notebooks/b.html#label-b" in links
    assert "../notebooks/a.html#lem-a" in links
    loaded = [tag.get("src") or tag.get("href") for tag in deck.select("head [src], head link")]
    loaded += [image["src"] for image in deck.select("img")]
    assert any("mathjax" in address for address in loaded)
    for address in (*loaded, *(link for link in links if not link.startswith("http"))):
        path = built.html / "slides" / address.split("#")[0].split("?")[0]
        assert path.is_file(), address


@pytest.mark.slow
def test_every_chapter_of_the_contents_has_slides_and_is_listed(built):
    listed = parsed(built.html / "slides" / "index.html")
    assert [a["href"] for a in listed.select("li a")] == ["a.html", "b.html"]
    assert [a.get_text() for a in listed.select("li a")] == ["Chapter a", "Chapter b"]


def test_a_page_without_an_article_is_named(project):
    (project.html / "notebooks").mkdir(parents=True)
    (project.html / "notebooks" / "a.html").write_text("<html></html>", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"notebooks/a\.html holds no article"):
        slides.build(project)


# What others see of it ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_page_says_what_it_is_about(built):
    page = parsed(built.html / "notebooks" / "a.html")
    said = {
        tag.get("name") or tag.get("property"): tag.get("content") for tag in page.select("meta")
    }
    assert said["description"] == said["og:description"]
    assert said["description"].startswith("Opening, see A place, Lemma ")
    assert said["og:title"] == said["citation_title"] == "Chapter a"
    address = f"{built.site_address}notebooks/a.html"
    assert said["og:url"] == page.select_one("link[rel=canonical]")["href"] == address
    picture = said["og:image"].removeprefix(built.site_address)
    assert (built.html / picture).is_file()
    assert f"<loc>{address}</loc>" in (built.html / "sitemap.xml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_launch_buttons_open_the_plain_notebooks_and_one_leads_to_the_printed_book(built):
    links = {a["href"] for a in parsed(built.html / "notebooks" / "a.html").select("a[href]")}
    colab = "https://colab.research.google.com/github/an-owner/a-book/blob"
    assert f"{colab}/launch/notebooks/a.ipynb" in links
    binder = "https://mybinder.org/v2/gh/an-owner/a-book"
    assert f"{binder}/launch?urlpath=lab/tree/notebooks/a.ipynb" in links
    assert f"{built.site_address}a-book.pdf" in links


@pytest.mark.slow
def test_the_front_of_the_printed_book_names_what_it_is_and_where_chapters_begin(built):
    (built.root / "CITATION.cff").write_text("version: 1.2.3\ndate-released: 2031-02-03\n")
    page = front.front_page(built, [("Welcome", 1), ("Chapter a", 2), ("Chapter b", 7)])
    (built.root / "CITATION.cff").unlink()
    words = BeautifulSoup(page, "html.parser").body.get_text(" ", strip=True)
    assert "Version 1.2.3, 2031-02-03" in words
    assert "Welcome 1 Chapter a 2 Chapter b 7" in words
    assert built.site_address in words


# The book on paper ---------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_are_joined_with_links_that_stay_inside(built):
    joined = BeautifulSoup(pdf.join(built), "html.parser")
    articles = [article["id"] for article in joined.find_all("article")]
    pages = ["book/index", "notebooks/a", "notebooks/b", "book/notes", "notebooks/notes/n"]
    assert articles == pages
    ids = [tag["id"] for tag in joined.select("article, article [id]")]
    links = {a["href"] for a in joined.find(id="notebooks/a").find_all("a", href=True)}
    assert {"#notebooks/b--label-b", "#notebooks/a--lem-a"} <= links
    inside = {link[1:] for link in links if link.startswith("#")}
    assert [link for link in inside if ids.count(link) != 1] == []
    loaded = [tag.get("src") or tag.get("href") for tag in joined.select("img, link, [src]")]
    assert len(loaded) > 3
    for address in loaded:
        assert (built.html / address.split("?")[0]).is_file(), address


@pytest.mark.slow
def test_what_is_not_printed_is_linked_on_the_site(built):
    page = built.html / "book" / "index.html"
    text = page.read_text(encoding="utf-8")
    more = '<a href="../genindex.html#A">i</a><a href="https://example.org/">w</a></article>'
    try:
        page.write_text(text.replace("</article>", more, 1), encoding="utf-8")
        article = BeautifulSoup(pdf.join(built), "html.parser").find(id="book/index")
    finally:
        page.write_text(text, encoding="utf-8")
    assert [a["href"] for a in article.find_all("a")][-2:] == [
        "https://an-owner.github.io/a-book/genindex.html#A",
        "https://example.org/",
    ]


def test_printing_an_unbuilt_site_says_what_to_do(project):
    with pytest.raises(RuntimeError, match="make book"):
        pdf.build(project, browser=None)
