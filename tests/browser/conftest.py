"""The built site, served on this machine, and a headless Chromium that reads it."""

from __future__ import annotations

import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conceptnb.build.project import Project

BROWSERS = ("chromium", "google-chrome", "chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Site:
    """The folder of the built site, and its address while the tests run."""

    folder: Path
    address: str

    @property
    def pages(self) -> list[str]:
        pages = (page.relative_to(self.folder).as_posix() for page in self.folder.rglob("*.html"))
        return sorted(page for page in pages if not page.startswith("_static/"))


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site under /NAME/, as GitHub Pages does, with its 404 page."""

    folder: Path
    prefix: str

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(self.prefix))

    def send_error(self, code: int, *_: object) -> None:
        body = (self.folder / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def project() -> Project:
    return Project(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="session")
def site(project: Project) -> Iterator[Site]:
    if not (project.html / "index.html").is_file():
        pytest.fail("the site is not built: run `make book` first")
    prefix = f"/{project.name}"
    handler = type("Handler", (_Handler,), {"folder": project.html, "prefix": prefix})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *args: handler(*args, directory=str(project.html))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Site(project.html, f"http://127.0.0.1:{server.server_port}{prefix}/")
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        message = f"none of {', '.join(BROWSERS)} is installed: the site is not read in a browser"
        if os.environ.get("CONCEPTNB_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield running
        running.close()
