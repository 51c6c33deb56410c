"""The build of a book that is small enough to be built here: what runs again, and what fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

from tools.book import __main__ as command
from tools.book import execution, fingerprints, pairs, pdf, site, slides
from tools.book.pages import api_pages, times_page
from tools.book.project import Project

ROOT = Path(__file__).resolve().parents[2]

CHAPTER = """\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# {title}

(label-{name})=
## A place

{text}

```{{code-cell}} ipython3
{code}
```
"""


def write_chapter(root, name, text="Words.", code="1 + 1"):
    source = CHAPTER.format(name=name, title=f"Chapter {name}", text=text, code=code)
    (root / "notebooks" / f"{name}.md").write_text(source, encoding="utf-8")


@pytest.fixture
def project(tmp_path):
    """Two chapters, a page, a package of one module: a whole book."""
    for folder in ("notebooks", "book", "conceptnb", "results"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project.urls]\nRepository = "https://github.com/an-owner/a-book"\n', encoding="utf-8"
    )
    (tmp_path / "requirements.lock").write_text("numpy==2.0\n", encoding="utf-8")
    shutil.copyfile(ROOT / "_config.yml", tmp_path / "_config.yml")
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "book" / "_static")
    shutil.copyfile(ROOT / "book" / "references.bib", tmp_path / "book" / "references.bib")
    files = [{"file": name} for name in ("notebooks/a", "notebooks/b", "book/api/index")]
    toc = {"format": "jb-book", "root": "book/index", "parts": [{"chapters": files}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    (tmp_path / "book" / "index.md").write_text("# Welcome\n", encoding="utf-8")
    (tmp_path / "conceptnb" / "steering").mkdir()
    for module in ("__init__", "steering/__init__"):  # Sphinx documents the installed ones
        text = '"""A module."""\n'
        (tmp_path / "conceptnb" / f"{module}.py").write_text(text, encoding="utf-8")
    write_chapter(tmp_path, "a")
    write_chapter(tmp_path, "b")
    book = Project(tmp_path)
    pairs.pair(book)
    return book


def pretend_executed(project):
    """Write for every stale chapter what a successful execution leaves behind."""
    for job in execution.stale(project):
        keeper = execution._Keeper(project, project.root / "notebooks", {job.chapter.stem: job})
        copy = job.chapter.with_suffix(".ipynb").read_bytes()
        keeper.pytest_runtest_logreport(report(job.chapter.stem, "passed"))
        job.chapter.with_suffix(".ipynb").write_bytes(copy)


def report(stem, outcome, longrepr=None):
    return pytest.TestReport(
        nodeid=f"{stem}.ipynb::",
        location=(f"{stem}.ipynb", 0, ""),
        keywords={},
        outcome=outcome,
        longrepr=longrepr,
        when="call",
        duration=1.5,
    )


def stale(project):
    return sorted(job.chapter.stem for job in execution.stale(project))


def append(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


# What runs again ------------------------------------------------------------------------


def test_a_chapter_is_stale_until_it_has_run(project):
    assert stale(project) == ["a", "b"]
    pretend_executed(project)
    assert stale(project) == []


def test_a_word_in_one_chapter_makes_that_chapter_stale(project):
    pretend_executed(project)
    append(project.root / "notebooks" / "b.md", "\nOne more word.\n")
    assert stale(project) == ["b"]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: append(root / "conceptnb" / "__init__.py", '\n"""A docstring."""\n'),
        lambda root: (root / "conceptnb" / "table.json").write_text("{}", encoding="utf-8"),
        lambda root: (root / "results" / "rows.json").write_text("{}", encoding="utf-8"),
        lambda root: append(root / "requirements.lock", "scipy==1.13\n"),
    ],
    ids=["package", "its data", "results", "lock"],
)
def test_what_all_chapters_share_makes_all_of_them_stale(project, change):
    pretend_executed(project)
    change(project.root)
    assert stale(project) == ["a", "b"]


def test_nothing_else_makes_a_chapter_stale(project):
    pretend_executed(project)
    append(project.root / "book" / "index.md", "\nMore.\n")
    (project.root / "conceptnb" / "__pycache__").mkdir()
    (project.root / "conceptnb" / "__pycache__" / "x.pyc").write_bytes(b"0")
    (project.root / "README.md").write_text("read me", encoding="utf-8")
    (project.root / "notebooks" / "a.md").touch()
    assert stale(project) == []


def test_taking_a_change_back_needs_no_new_run(project):
    pretend_executed(project)
    source = project.root / "notebooks" / "a.md"
    before = source.read_bytes()
    append(source, "\nA word.\n")
    source.write_bytes(before)
    assert stale(project) == []


def test_a_lost_copy_is_executed_again(project):
    pretend_executed(project)
    execution.executed(project, project.chapters[0]).unlink()
    assert stale(project) == ["a"]


def test_a_failed_chapter_is_not_kept_and_a_finished_one_is(project):
    jobs = {job.chapter.stem: job for job in execution.stale(project)}
    keeper = execution._Keeper(project, project.root / "notebooks", jobs)
    keeper.pytest_runtest_logreport(report("a", "passed"))
    trace = "in line 1\n\x1b[31mValueError\x1b[39m: no\n    ^^^^"
    keeper.pytest_runtest_logreport(report("b", "failed", trace))
    assert stale(project) == ["b"]
    assert keeper.errors == {"b": "ValueError: no"}


def test_the_longest_chapter_of_the_last_run_starts_first(project):
    pretend_executed(project)
    stamp = project.executed / "stamps" / "b.json"
    stamp.write_text(json.dumps({"fingerprint": "old", "seconds": 60}), encoding="utf-8")
    append(project.root / "notebooks" / "a.md", "\nA word.\n")
    assert [job.chapter.stem for job in execution.stale(project)] == ["b", "a"]


def test_the_name_of_a_file_counts_and_not_only_what_it_holds(project):
    module = project.root / "conceptnb" / "one.py"
    module.write_text("x = 1\n", encoding="utf-8")
    before = fingerprints.surroundings(project)
    module.rename(module.with_name("two.py"))
    assert fingerprints.surroundings(project) != before


# Pairs ----------------------------------------------------------------------------------


def test_a_pair_has_the_cells_of_its_source_and_one_more(project):
    notebook = json.loads((project.root / "notebooks" / "a.ipynb").read_text(encoding="utf-8"))
    setup, *cells = notebook["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"]
    assert "".join(cells[1]["source"]) == "1 + 1"
    assert "https://github.com/an-owner/a-book" in "".join(setup["source"])
    assert "remove-cell" in setup["metadata"]["tags"]
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    assert "jupytext" not in notebook["metadata"]


def test_pairing_gives_the_same_bytes_every_time(project):
    source = (project.root / "notebooks" / "a.md").read_text(encoding="utf-8")
    assert pairs.to_ipynb(source, project) == pairs.to_ipynb(source, project)
    assert pairs.pair(project) == []


def test_cells_keep_their_ids_when_one_is_put_before_them(project):
    source = (project.root / "notebooks" / "a.md").read_text(encoding="utf-8")
    longer = source + "\n```{code-cell} ipython3\n1 + 1\n```\n"
    first = [cell["id"] for cell in json.loads(pairs.to_ipynb(source, project))["cells"]]
    second = [cell["id"] for cell in json.loads(pairs.to_ipynb(longer, project))["cells"]]
    assert second[:-1] == first
    assert len(set(second)) == len(second), "two equal cells need two ids"


def test_drift_is_named(project, capsys):
    append(project.root / "notebooks" / "b.ipynb", " ")
    assert command.main(["--root", str(project.root), "check"]) == 1
    assert "notebooks/b.ipynb does not match b.md" in capsys.readouterr().out


def test_an_ipynb_without_a_source_is_drift_too(project):
    orphan = project.root / "notebooks" / "c.ipynb"
    orphan.write_text("{}", encoding="utf-8")
    assert pairs.drifted(project) == [orphan]
    pairs.pair(project)
    assert not orphan.exists()


def test_a_chapter_outside_the_contents_is_named(project, capsys):
    write_chapter(project.root, "c")
    pairs.pair(project)
    assert command.main(["--root", str(project.root), "check"]) == 1
    assert "notebooks/c.md is not in _toc.yml" in capsys.readouterr().out


def test_a_folder_that_is_no_checkout_is_refused(tmp_path, capsys):
    assert command.main(["--root", str(tmp_path), "check"]) == 1
    assert "holds no _toc.yml" in capsys.readouterr().err


# Pages ------------------------------------------------------------------------------------


def test_the_reference_has_a_page_per_room_and_a_section_per_module(tmp_path):
    package = tmp_path / "pack"
    files = {
        "__init__": '__all__ = ["zeta", "alpha"]',
        "kept_path": "",
        "zeta/__init__": "",
        "zeta/one": "",
        "zeta/_private": "",
        "zeta/two/__init__": '__all__ = ["inner"]',
        "zeta/two/inner": "",
        "alpha/__init__": "",
        "alpha/__main__": "",
        "more/__init__": "",
        "exercises/__init__": "",
        "exercises/answers": "",
    }
    for name, code in files.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""About {name}.\n\nMore."""\n{code}\n', encoding="utf-8")
    pages = api_pages(package)
    assert list(pages)[:3] == ["index.md", "zeta.md", "alpha.md"]
    assert set(pages) == {"index.md", "zeta.md", "alpha.md", "more.md", "exercises.md"}
    assert "About zeta/__init__." in pages["index.md"]
    headings = [line for line in pages["zeta.md"].splitlines() if line.startswith("#")]
    assert headings == [
        "# pack.zeta",
        "## pack.zeta.one",
        "## pack.zeta.two",
        "## pack.zeta.two.inner",
    ]
    assert "automodule:: pack.zeta.two.inner" in pages["zeta.md"]
    assert "answers" not in pages["exercises.md"], "they would be given away"


# The public address ------------------------------------------------------------------------


def test_the_page_of_execution_times_lists_and_adds_them():
    page = times_page({"02_b": 2.25, "01_a": 1.0})
    assert page.index("{doc}`/notebooks/01_a`\n  - 1.0") < page.index("{doc}`/notebooks/02_b`")
    assert "**3.2**" in page
    assert "torch" in page


def test_named_figures_are_there_for_pages_without_code(project):
    notebook = json.loads((project.root / "notebooks" / "a.ipynb").read_text(encoding="utf-8"))
    picture = {"output_type": "display_data", "data": {"image/png": "UE5H"}, "metadata": {}}
    notebook["cells"][-1]["metadata"]["mystnb"] = {"figure": {"name": "fig-a"}}
    notebook["cells"][-1]["outputs"] = [picture]
    for stem in ("a", "b"):
        copy = execution.executed(project, project.root / "notebooks" / f"{stem}.md")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(notebook if stem == "a" else {"cells": []}), encoding="utf-8")
    source = site.stage(project)
    figures = list((source / "book" / "figures").iterdir())
    assert [figure.name for figure in figures] == ["fig-a.png"]
    assert figures[0].read_bytes() == b"PNG"


# The book on paper ---------------------------------------------------------------------------


def test_pages_are_joined_with_links_that_stay_inside(project):
    page = (
        '<html><head><title>T</title><link rel="stylesheet" href="../_static/x.css"></head><body>'
        '<article class="bd-article"><h1 id="top">{title}</h1>'
        '<a class="one" href="{other}.html#top">x</a><a class="two" href="#top">y</a>'
        '<a class="three" href="../genindex.html">z</a><a href="../data.csv">v</a>'
        '<a class="four" href="https://example.org/">w</a><img src="../_images/p.png"></article>'
        "</body></html>"
    )
    for name, other in (("a", "b"), ("b", "a")):
        path = project.html / "notebooks" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.format(title=name, other=other), encoding="utf-8")
    shutil.copytree(project.html / "notebooks", project.html / "book")
    (project.html / "book" / "a.html").rename(project.html / "book" / "index.html")
    joined = BeautifulSoup(pdf.join(project), "html.parser")
    first = joined.find("article", id="notebooks/a")
    assert [a["href"] for a in first.find_all("a")] == [
        "#notebooks/b--top",
        "#notebooks/a--top",
        "https://an-owner.github.io/a-book/genindex.html",
        "https://an-owner.github.io/a-book/data.csv",
        "https://example.org/",
    ]
    for anchor in first.find_all("a", href=lambda href: href.startswith("#")):
        assert joined.find(id=anchor["href"][1:]) is not None
    assert first.img["src"] == "_images/p.png"
    assert joined.find("link")["href"] == "_static/x.css"


def test_printing_an_unbuilt_site_says_what_to_do(project):
    with pytest.raises(pdf.PrintError, match="make book"):
        pdf.build(project, browser=None)


# Slides ------------------------------------------------------------------------------------


LECTURE = """<html><head><title>T</title><link rel="stylesheet" href="../_static/x.css">
<script src="../_static/mathjax/m.js"></script><script src="../_static/other.js"></script></head>
<body><article class="bd-article"><section id="top"><h1>A &amp; B<a class="headerlink">#</a></h1>
<p>Opening.</p><p>Second.</p>
<section id="one"><h2>One</h2><p>First <a href="#top">up</a>.</p>
<p>Told <a href="b.html#x">on</a>.</p>
<div class="math notranslate">\\(x\\)</div>
<div class="cell"><div class="cell_input"><pre>draw()</pre></div>
<div class="cell_output"><figure><img src="../_images/p.png" alt="A curve."></figure></div></div>
<div class="cell"><div class="cell_input"><pre>{code}</pre></div></div>
<div class="proof proof">Thus.</div><div class="solution admonition">Answer.</div></section>
</section></article></body></html>"""


@pytest.fixture
def lecture():
    soup = BeautifulSoup(LECTURE.format(code="line\n" * 15), "html.parser")
    return BeautifulSoup(slides.deck(soup, "A & B", "../notebooks/a.html"), "html.parser")


def test_a_section_is_a_slide_and_what_does_not_fit_goes_to_the_next(lecture):
    headings = [s.find(["h1", "h2"]).get_text() for s in lecture.select("section.slide")]
    assert headings == ["A & B", "One", "One (continued)"]
    assert lecture.select("section.slide")[1].img and "line" in lecture.select("pre")[-1].get_text()


def test_slides_show_the_first_paragraph_and_keep_the_others_as_notes(lecture):
    first, second, _ = lecture.select("section.slide")
    assert [note.get_text() for note in first.select(".slide-notes")] == ["Second."]
    assert first.find("p").get_text() == "Opening."
    assert [note.get_text() for note in second.select(".slide-notes p")] == ["Told on."]
    assert second.select_one("div.math").find_parent("aside") is None


def test_slides_leave_out_proofs_solutions_and_the_line_that_draws(lecture):
    text = lecture.get_text()
    assert not any(word in text for word in ("Thus.", "Answer.", "draw()", "#"))


def test_slides_refer_to_the_chapter_and_load_from_the_site(lecture):
    assert [a["href"] for a in lecture.select(".slide a")] == [
        "../notebooks/a.html#top",
        "../notebooks/b.html#x",
    ]
    assert lecture.find("img")["src"] == "../_images/p.png"
    loaded = [tag.get("src") or tag.get("href") for tag in lecture.select("head [src], head link")]
    assert loaded == [
        "../_static/x.css",
        "../_static/mathjax/m.js",
        "../_static/slides.css",
        "../_static/slides.js",
    ]
    assert len(lecture.find_all(id=True)) == 0


def test_every_chapter_of_the_contents_has_slides_and_is_listed(project):
    for name in ("a", "b"):
        path = project.html / "notebooks" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LECTURE.format(code=""), encoding="utf-8")
    written = slides.build(project)
    assert [path.name for path in written] == ["a.html", "b.html", "index.html"]
    listed = BeautifulSoup(written[-1].read_text(encoding="utf-8"), "html.parser")
    assert [a["href"] for a in listed.select("li a")] == ["a.html", "b.html"]
    assert listed.select_one("li").get_text() == "A & B"


def test_the_address_is_named_once_and_the_rest_agrees():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = settings["project"]["urls"]["Repository"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == address
    owner_and_name = address.removeprefix("https://github.com/")
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in _tracked()
        if path.suffix in {".md", ".yml", ".toml", ".py", ".cff", ".txt", ""}
        and owner_and_name in path.read_text(encoding="utf-8", errors="ignore")
    }
    assert naming <= {"pyproject.toml", "CITATION.cff"}


def test_nothing_of_another_host_is_in_the_lock():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert all("==" in line for line in lock.splitlines() if line and not line.startswith("#"))


def test_the_lock_pins_everything_that_is_required():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").lower()
    pinned = {line.split("==")[0].strip().replace("_", "-") for line in lock.splitlines()}
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        name = line.split("#")[0].split(">")[0].strip().lower().replace("_", "-")
        assert not name or name in pinned, f"{name} is required and not in the lock: `make lock`"


def _tracked():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


# From end to end -----------------------------------------------------------------------------


def build(project, step="book"):
    return subprocess.run(
        [sys.executable, "-m", "tools.book", "--root", str(project.root), step],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@pytest.mark.slow
def test_a_book_from_end_to_end(project):
    """Built once, skipped when nothing changed, failing where a chapter or a link is broken."""
    first = build(project)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "2 of 2 chapters executed" in first.stdout
    page = (project.html / "notebooks" / "a.html").read_text(encoding="utf-8")
    assert "Chapter a" in page
    assert ">2</" in page.replace("\n", ""), "the output of 1 + 1"

    again = build(project)
    assert again.returncode == 0
    assert "0 of 2 chapters executed" in again.stdout
    assert "up to date" in again.stdout

    write_chapter(project.root, "b", code="raise ValueError('this cell is broken')")
    pairs.pair(project)
    for _ in range(2):  # a failure is not remembered as done
        broken = build(project)
        assert broken.returncode == 1
        assert "notebooks/b.md failed: ValueError: this cell is broken" in broken.stderr

    write_chapter(project.root, "b", text="See {ref}`no-such-label`.")
    pairs.pair(project)
    for _ in range(2):
        unlinked = build(project)
        assert unlinked.returncode == 1
        assert "no-such-label" in unlinked.stderr
        assert "notebooks/b" in unlinked.stderr
