"""A headless Chromium: prints the book, and reads the site in the tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "google-chrome", "chromium-browser")
_FLAGS = (
    "--no-sandbox --allow-file-access-from-files --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


class NoBrowserError(RuntimeError):
    """No Chromium is installed."""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Start the Chromium that is installed on this machine; close it afterwards."""
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        raise NoBrowserError(f"none of {', '.join(_NAMES)} is on the PATH: install chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - slow to import

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_FLAGS.split())
        try:
            yield browser
        finally:
            browser.close()
