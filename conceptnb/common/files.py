"""Files that are never half written."""

from __future__ import annotations

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
