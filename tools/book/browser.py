"""A headless Chromium: prints the book, and reads the site in the tests."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "google-chrome", "chromium-browser")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class NoBrowserError(RuntimeError):
    """No Chromium is installed."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium that is installed on this machine; close it afterwards.

    Raises
    ------
    NoBrowserError
        If none is installed.
    """
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        raise NoBrowserError(
            f"none of {', '.join(_NAMES)} is on the PATH: install one (Debian: "
            "apt-get install chromium)"
        )
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - slow to import

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class SiteHandler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder under ``/NAME/``, as GitHub Pages does, with its 404 page."""

    def __init__(self, *args: object, folder: Path, prefix: str) -> None:
        self.folder, self.prefix = folder, prefix
        super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        """Return the file of an address."""
        return super().translate_path(path.removeprefix(self.prefix))

    def send_error(self, code: int, *_: object) -> None:
        """Answer an address that is not there with the book's own page."""
        page = self.folder / "404.html"
        body = page.read_bytes() if page.is_file() else b"not found"
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of single requests."""


@contextmanager
def serve(folder: Path, prefix: str = "") -> Iterator[str]:
    """Serve `folder` on this machine alone; yield its address, which ends in a slash."""
    handler = partial(SiteHandler, folder=folder, prefix=prefix)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{prefix}/"
        finally:
            server.shutdown()
