"""Fingerprints: what a result depends on, as one hash.

A chapter's outputs depend on its source, on the package with its data, on the computed
tables under ``results/`` and on the lock. A cache that looks at code cells alone (as
jupyter-cache does) would go on showing outputs that the package no longer produces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from conceptnb.core.files import tracked_files
from tools.book.project import Project


def surroundings(project: Project) -> str:
    """Return the hash of what all chapters share: package, results and lock."""
    root = project.root
    files = tracked_files(root / "conceptnb") + sorted((root / "results").glob("*.json"))
    return _digest(root, [*files, *_existing(root / "requirements.lock")])


def of_chapter(project: Project, chapter: Path, shared: str | None = None) -> str:
    """Return the fingerprint of one chapter.

    Parameters
    ----------
    project : Project
    chapter : Path
        ``notebooks/NAME.md``.
    shared : str, optional
        What `surroundings` returned, to hash the package once for many chapters.
    """
    own = _digest(project.root, [chapter])
    return _join(own, shared if shared is not None else surroundings(project), project.address)


def of_site(project: Project, chapters: list[str]) -> str:
    """Return the fingerprint of the whole site, given those of its chapters."""
    root = project.root
    files = tracked_files(root / "book")
    settings = _existing(root / "_config.yml", root / "_toc.yml", root / "pyproject.toml")
    return _join(_digest(root, files + settings), surroundings(project), *chapters)


def _digest(root: Path, files: Iterable[Path]) -> str:
    """Return one SHA-256 over the names (from `root`) and the contents of `files`."""
    total = hashlib.sha256()
    for path in sorted(files):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()


def _existing(*paths: Path) -> list[Path]:
    return [path for path in paths if path.is_file()]


def _join(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
