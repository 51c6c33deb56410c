"""The built site, served on this machine, and a headless Chromium that reads it."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tools.book.browser import NoBrowserError, chromium
from tools.book.project import Project
from tools.book.site import moved


@dataclass(frozen=True)
class Site:
    """The folder of the built site, its address while the tests run, and its old addresses."""

    folder: Path
    address: str
    moved: frozenset[str]

    @property
    def pages(self) -> list[str]:
        files = {page.relative_to(self.folder).as_posix() for page in self.folder.rglob("*.html")}
        # _print.html is there while another test prints the book.
        left_out = ("_static/", "_print.")
        return sorted(page for page in files - self.moved if not page.startswith(left_out))


class SiteHandler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder under ``/PREFIX/``, as GitHub Pages does, with its 404 page."""

    def __init__(self, *args: object, prefix: str, directory: str) -> None:
        self.prefix = prefix
        super().__init__(*args, directory=directory)

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(self.prefix))

    def send_error(self, code: int, *_: object) -> None:
        page = Path(self.directory) / "404.html"
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(page.read_bytes() if page.is_file() else b"not found")

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serve(folder: Path, prefix: str = "") -> Iterator[str]:
    """Serve `folder` on this machine alone; yield its address, which ends in a slash."""
    handler = partial(SiteHandler, directory=str(folder), prefix=prefix)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{prefix}/"
        finally:
            server.shutdown()


@pytest.fixture(scope="session")
def project() -> Project:
    return Project(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="session")
def site(project: Project) -> Iterator[Site]:
    if not (project.html / "index.html").is_file():
        pytest.fail("the site is not built: run `make book` first")
    with serve(project.html, prefix=f"/{project.name}") as address:
        yield Site(project.html, address, frozenset(f"{old}.html" for old in moved(project)))


@pytest.fixture(scope="session")
def browser():
    try:
        with chromium() as running:
            yield running
    except NoBrowserError as error:
        if os.environ.get("CONCEPTNB_REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))
