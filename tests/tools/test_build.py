"""The build of a book that is small enough to be built here: what runs again, and what fails."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tools.book import __main__ as command
from tools.book import execution, fingerprints, pairs, site
from tools.book.pages import api_pages, times_page
from tools.book.project import Project

ROOT = Path(__file__).resolve().parents[2]


def ipynb(source, project):
    return pairs.to_text(pairs.to_notebook(source, project))


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
    stamp = project.built / "executed" / "stamps" / "b.json"
    stamp.write_text(json.dumps({"fingerprint": "old", "seconds": 60}), encoding="utf-8")
    append(project.root / "notebooks" / "a.md", "\nA word.\n")
    assert [job.chapter.stem for job in execution.stale(project)] == ["b", "a"]


def test_the_name_of_a_file_counts_and_not_only_what_it_holds(project):
    module = project.root / "conceptnb" / "one.py"
    module.write_text("x = 1\n", encoding="utf-8")
    before = fingerprints.of_chapters(project)
    module.rename(module.with_name("two.py"))
    after = fingerprints.of_chapters(project)
    assert [chapter.stem for chapter in before if before[chapter] != after[chapter]] == ["a", "b"]


def test_the_site_depends_on_its_pages_and_on_what_builds_it(project, monkeypatch, tmp_path):
    before = fingerprints.of_site(project)
    append(project.root / "book" / "index.md", "\nMore.\n")
    assert (after := fingerprints.of_site(project)) != before
    builder = tmp_path / "builder"
    builder.mkdir()
    (builder / "slides.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(fingerprints, "_BUILDER", builder)
    assert fingerprints.of_site(project) != after


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
    assert ipynb(source, project) == ipynb(source, project)
    assert pairs.pair(project) == []


@pytest.mark.parametrize("chapter", Project(ROOT).chapters, ids=lambda chapter: chapter.stem)
def test_a_chapter_that_jupyter_saves_is_unchanged(chapter):
    source = chapter.read_text(encoding="utf-8")
    assert pairs.normal(source, Project(ROOT)) == source, "`make pair` writes the form it has then"


def test_pairing_writes_sources_as_jupyter_saves_them(project):
    chapter = project.root / "notebooks" / "a.md"
    source = chapter.read_text(encoding="utf-8")
    loose = source.replace("```{code-cell}", "\n\n\n```{code-cell}", 1)
    chapter.write_text(loose, encoding="utf-8")
    pairs.pair(project)
    assert chapter.read_text(encoding="utf-8") == pairs.normal(loose, project) != loose
    assert ipynb(loose, project) == ipynb(pairs.normal(loose, project), project)


def test_cells_keep_their_ids_when_one_is_put_before_them(project):
    source = (project.root / "notebooks" / "a.md").read_text(encoding="utf-8")
    longer = source + "\n```{code-cell} ipython3\n1 + 1\n```\n"
    first = [cell["id"] for cell in json.loads(ipynb(source, project))["cells"]]
    second = [cell["id"] for cell in json.loads(ipynb(longer, project))["cells"]]
    assert second[:-1] == first
    assert len(set(second)) == len(second), "two equal cells need two ids"


def test_drift_is_named(project, capsys):
    append(project.root / "notebooks" / "b.ipynb", " ")
    assert command.main(["--root", str(project.root), "check"]) == 1
    assert "notebooks/b.ipynb does not match b.md" in capsys.readouterr().out


def test_an_ipynb_without_a_source_is_drift_where_git_knows_it(project, capsys):
    orphan = project.root / "notebooks" / "c.ipynb"
    orphan.write_bytes((project.root / "notebooks" / "a.ipynb").read_bytes())
    assert pairs.drifted(project) == {}, "a reader's own"
    for command_line in (["init", "-q"], ["add", "notebooks"]):
        subprocess.run(["git", *command_line], cwd=project.root, check=True)
    own = orphan.with_name("my_experiment.ipynb")
    own.write_bytes(orphan.read_bytes())
    assert pairs.drifted(project) == {orphan: None}
    assert command.main(["--root", str(project.root), "check"]) == 1
    assert "`git rm` it" in capsys.readouterr().out
    assert pairs.pair(project) == []
    assert orphan.read_bytes() == own.read_bytes()


def test_a_chapter_that_was_run_or_changed_is_left_as_it_is(project, capsys):
    path = project.root / "notebooks" / "a.ipynb"
    ran = json.loads(path.read_text(encoding="utf-8"))
    ran["cells"][-1]["execution_count"] = 1
    changed = json.loads(path.read_text(encoding="utf-8"))
    changed["cells"][-1]["source"] = ["answer = 42"]
    for theirs in (ran, changed):
        path.write_text(json.dumps(theirs), encoding="utf-8")
        project.write("a", text="New words.")
        project.write("b", text="New words.")
        assert command.main(["--root", str(project.root), "pair"]) == 1
        assert "notebooks/a.ipynb was changed or run" in capsys.readouterr().err
        assert json.loads(path.read_text(encoding="utf-8")) == theirs
        assert "New words." in path.with_name("b.ipynb").read_text(encoding="utf-8")
        assert stale(project) == ["a", "b"], "the book is made from the source"


def test_a_chapter_outside_the_contents_is_named(project, capsys):
    project.write("c")
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
        "__init__": '__all__ = ["__version__", "zeta", "alpha", "exercises"]',
        "kept_path": "",
        "zeta/__init__": "",
        "zeta/one": "",
        "zeta/_private": "",
        "zeta/two/__init__": '__all__ = ["inner"]',
        "zeta/two/inner": "",
        "alpha/__init__": "",
        "alpha/__main__": "",
        "exercises/__init__": "",
        "exercises/answers": "",
    }
    for name, code in files.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""About {name}.\n\nMore."""\n{code}\n', encoding="utf-8")
    pages = api_pages(package)
    assert list(pages) == ["index.md", "zeta.md", "alpha.md", "exercises.md"]
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


def test_the_package_offers_every_room():
    rooms = {path.parent.name for path in (ROOT / "conceptnb").glob("*/__init__.py")}
    assert {f"{room}.md" for room in rooms} == set(api_pages(ROOT / "conceptnb")) - {"index.md"}


def test_old_addresses_are_not_in_the_contents_and_lead_to_pages_that_are():
    book = Project(ROOT)
    addresses = site.moved(book)
    assert addresses["slides/14_causal"] == "slides/07_selecting_or_intervening"
    assert addresses["slides/80_nonlinear_rows"] == "notebooks/notes/nonlinear_rows"
    assert not set(addresses) & set(book.pages_in_toc)
    pages = {new for new in addresses.values() if not new.startswith("slides/")}
    assert pages <= set(book.pages_in_toc)


# The public address ------------------------------------------------------------------------


def test_the_page_of_execution_times_lists_and_adds_them():
    page = times_page({"notebooks/02_b": 2.25, "notebooks/01_a": 1.0})
    assert page.index("{doc}`/notebooks/01_a`\n  - 1.0") < page.index("{doc}`/notebooks/02_b`")
    assert "**3.2**" in page
    assert "torch" in page


def test_named_figures_are_there_for_pages_without_code(project):
    notebook = json.loads((project.root / "notebooks" / "a.ipynb").read_text(encoding="utf-8"))
    data = {"image/png": "UE5H", "text/html": "<b>moves</b>"}
    picture = {"output_type": "display_data", "data": data, "metadata": {}}
    notebook["cells"][-1]["metadata"]["mystnb"] = {"figure": {"name": "fig-a"}}
    notebook["cells"][-1]["outputs"] = [picture]
    for stem in ("a", "b"):
        copy = execution.executed(project, project.root / "notebooks" / f"{stem}.md")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(notebook if stem == "a" else {"cells": []}), encoding="utf-8")
    source = site.stage(project)
    figures = source / "book" / "figures"
    assert {figure.name for figure in figures.iterdir()} == {"fig-a.png", "fig-a.html"}
    assert (figures / "fig-a.png").read_bytes() == b"PNG"
    assert (figures / "fig-a.html").read_text(encoding="utf-8") == "<b>moves</b>"


def test_values_of_chapters_stand_on_pages_without_code_and_unknown_ones_are_refused(project):
    project.write("a", text="It is {glue:text}`gain` here.")
    pairs.pair(project)
    named = {"scrapbook": {"name": "gain"}}
    shown = {"data": {"text/plain": "'.12 [.10, .14]'"}, "metadata": named}
    cells = [{"cell_type": "code", "outputs": [{"output_type": "display_data", **shown}],
              "metadata": {}, "source": "", "execution_count": 1}]  # fmt: skip
    for stem in ("a", "b"):
        copy = execution.executed(project, project.root / "notebooks" / f"{stem}.md")
        copy.parent.mkdir(parents=True, exist_ok=True)
        held = {"cells": cells if stem == "a" else [], "metadata": {}}
        copy.write_text(json.dumps(held | {"nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    welcome = project.root / "book" / "index.md"
    welcome.write_text("We gain {glue:text}`gain`.\n", encoding="utf-8")
    staged = site.stage(project) / "book" / "index.md"
    assert staged.read_text(encoding="utf-8") == "We gain .12 [.10, .14].\n"
    welcome.write_text("We lose {glue:text}`loss`.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"index\.md: no chapter computes a value named loss"):
        site.stage(project)


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
    assert naming <= {"pyproject.toml", "CITATION.cff", "README.md"}


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
