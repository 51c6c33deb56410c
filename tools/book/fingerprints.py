"""Fingerprints: what a result depends on, as one hash.

A cache of code cells alone (jupyter-cache) would show outputs that the package no longer produces.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from conceptnb.common.files import tracked_files
from tools.book.project import Project

_BUILDER = Path(__file__).parent


def of_chapters(project: Project) -> dict[Path, str]:
    """Return the fingerprint of each chapter, ``notebooks/NAME.md``."""
    root = project.root
    tables, lock = sorted((root / "results").glob("*.json")), root / "requirements.lock"
    shared = _digest(root, [*tracked_files(root / "conceptnb"), *tables, lock])
    return {
        chapter: _join(_digest(root, [chapter]), shared, project.address)
        for chapter in project.chapters
    }


def of_site(project: Project) -> str:
    """Return the fingerprint of the site: chapters, pages, settings, and what builds it."""
    root = project.root
    settings = [
        root / "_config.yml",
        root / "_toc.yml",
        root / "pyproject.toml",
        root / "CITATION.cff",
    ]
    pages = _digest(root, [*tracked_files(root / "book"), *settings])
    builder = _digest(_BUILDER, tracked_files(_BUILDER))
    return _join(*of_chapters(project).values(), pages, builder)


def _digest(root: Path, files: Iterable[Path]) -> str:
    """Return one hash over the names (from `root`) and the contents of `files` that exist."""
    there = {path.relative_to(root): path.read_bytes() for path in sorted(files) if path.is_file()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in there.items()}
    return _join(*(f"{name.as_posix()} {total}" for name, total in hashes.items()))


def _join(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
