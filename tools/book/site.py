"""Build the site from exactly the notebooks that were executed.

The pages are gathered under ``_build/source``, each chapter as the executed ``.ipynb`` alone.
"""

import json
import shutil
import tomllib
from base64 import b64decode
from pathlib import Path

import yaml

from conceptnb.common.files import write_text
from tools.book import execution, fingerprints, slides
from tools.book.pages import api_pages, times_page
from tools.book.project import Project
from tools.book.values import Values

_REDIRECT = Path(__file__).with_name("redirect.html").read_text(encoding="utf-8")


def build(project: Project) -> bool:
    """Build the site unless it is up to date; return whether anything was built."""
    stamp, fingerprint = project.html / ".fingerprint", fingerprints.of_site(project)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == fingerprint:
        return False
    source = stage(project)
    # From nothing each time: an incremental build does not repeat the warnings of pages
    # that it does not read again, nor see that a label they refer to is gone.
    shutil.rmtree(project.html, ignore_errors=True)
    _run_sphinx(source, project.html)
    slides.build(project)
    for page, target in {"index": project.contents["root"], **moved(project)}.items():
        up = "../" * page.count("/")
        write_text(project.html / f"{page}.html", _REDIRECT.format(target=f"{up}{target}.html"))
    write_text(project.html / ".nojekyll", "")
    write_text(stamp, fingerprint)
    return True


def moved(project: Project) -> dict[str, str]:
    """Return where the page of each old address is now: by ``book/moved.toml``, and for slides."""
    file = project.root / "book" / "moved.toml"
    pages = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    decks = {
        slides.deck_of(old): slides.deck_of(new) if slides.is_chapter(new) else new
        for old, new in pages.items()
        if slides.is_chapter(old)
    }
    return pages | decks


def stage(project: Project) -> Path:
    """Gather the pages of the site in ``_build/source``; return that folder."""
    source = project.built / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(project.root / "book", source / "book", ignore=shutil.ignore_patterns(".*"))
    for chapter in project.chapters:
        executed = execution.executed(project, chapter)
        staged = source / f"{project.page(chapter)}.ipynb"
        staged.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(executed, staged)
        _copy_figures(executed, source / "book" / "figures")
    _fill_in_values(project, source / "book")
    reference = api_pages(project.root / "conceptnb")
    for name, text in reference.items():
        write_text(source / "book" / "api" / name, text)
    if "book/times" in project.pages_in_toc:
        write_text(source / "book" / "times.md", times_page(execution.seconds(project)))
    contents = project.contents
    rooms = [Path(name).stem for name in reference if name != "index.md"]
    for entry in (entry for part in contents["parts"] for entry in part["chapters"]):
        if entry["file"] == "book/api/index":
            entry["sections"] = [{"file": f"book/api/{room}"} for room in rooms]
    write_text(source / "_toc.yml", yaml.safe_dump(contents, sort_keys=False))
    config = yaml.safe_load((project.root / "_config.yml").read_text(encoding="utf-8"))
    config["repository"] = {"url": project.address, "branch": "main"}
    config["html"]["baseurl"] = project.site_address
    config["sphinx"]["config"]["notfound_urls_prefix"] = f"/{project.name}/"
    if (project.root / "CITATION.cff").is_file():
        shutil.copyfile(project.root / "CITATION.cff", source / "CITATION.cff")
    write_text(source / "_config.yml", yaml.safe_dump(config, sort_keys=False))
    return source


def check_links(project: Project) -> None:
    """Ask every address that the staged pages link to whether it still answers."""
    _run_sphinx(project.built / "source", project.built / "links", builder="linkcheck")


def _run_sphinx(source: Path, output: Path, builder: str = "html") -> None:
    """Run Sphinx on the staged book as Jupyter Book does, warnings as errors."""
    from jupyter_book.sphinx import build_sphinx  # noqa: PLC0415 - slow to import

    contents = {"external_toc_path": str(source / "_toc.yml"), "latex_individualpages": False}
    settings = {"noconfig": True, "path_config": source / "_config.yml", "confoverrides": contents}
    strict = {"warningiserror": True, "keep_going": True, "freshenv": True, "quiet": True}
    status = build_sphinx(source, output, builder=builder, **settings, **strict)
    if status != 0:
        raise RuntimeError(
            "the site was not built: Sphinx reported the warnings above, and a warning is an error "
            "here. Pages under _build/source are gathered from book/ and notebooks/."
        )


def _fill_in_values(project: Project, folder: Path) -> None:
    """Put values that chapters show into pages without code, where these name them."""
    values = Values(project)
    for page in sorted(folder.glob("*.md")):
        write_text(page, values.filled_in(page.name, page.read_text(encoding="utf-8")))


def _copy_figures(notebook: Path, folder: Path) -> None:
    """Write the named figures of an executed chapter as files, for pages without code.

    Each as a picture, and one that moves as a piece of a page, too.
    """
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            if name and "image/png" in shown:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}.png").write_bytes(b64decode(shown["image/png"]))
                if moving := "".join(shown.get("text/html", "")):
                    write_text(folder / f"{name}.html", moving)
