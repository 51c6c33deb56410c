"""Files that are never half written."""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in one step, making its folder where needed.

    A reader of `path` finds the old content or the new one, even after a crash.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def tracked_files(folder: Path) -> list[Path]:
    """Return the files under `folder` that matter: no caches, nothing hidden."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(
            part.startswith(".") or part == "__pycache__" or part.endswith(".egg-info")
            for part in path.relative_to(folder).parts
        )
    ]


def refuse_output(path: Path, replace: bool, option: str = "--out") -> None:
    """Refuse a file that could not be written, or that exists and is not to be replaced."""
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder: name a file in it")
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        atexit.register(_remove_empty, folder)  # where the command is refused later
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.") as probe:
            probe.write(bytes(1 << 16))
    except OSError as error:
        raise ValueError(f"{option} {path}: {error.strerror}; name another place") from None
    if path.exists() and not replace:
        raise FileExistsError(f"{path} exists: name another one with --out, or use --force")


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
