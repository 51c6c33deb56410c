"""The built site, served on this machine, and a headless Chromium that reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.book.browser import NoBrowserError, chromium, serve
from tools.book.project import Project


@dataclass(frozen=True)
class Site:
    """The folder of the built site, and its address while the tests run."""

    folder: Path
    address: str

    @property
    def pages(self) -> list[str]:
        pages = (page.relative_to(self.folder).as_posix() for page in self.folder.rglob("*.html"))
        # _print.html is there while another test prints the book.
        return sorted(page for page in pages if not page.startswith(("_static/", "_print.")))


@pytest.fixture(scope="session")
def project() -> Project:
    return Project(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="session")
def site(project: Project) -> Iterator[Site]:
    if not (project.html / "index.html").is_file():
        pytest.fail("the site is not built: run `make book` first")
    with serve(project.html, prefix=f"/{project.name}") as address:
        yield Site(project.html, address)


@pytest.fixture(scope="session")
def browser():
    try:
        with chromium() as running:
            yield running
    except NoBrowserError as error:
        if os.environ.get("CONCEPTNB_REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))
