"""Where the parts of the book lie, and its public address."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from sphinx_external_toc.parsing import parse_toc_yaml


@dataclass(frozen=True)
class Project:
    """A checkout of the book: `root` holds ``pyproject.toml``, ``_toc.yml``, ``notebooks/``."""

    root: Path

    def __post_init__(self) -> None:
        if not (self.root / "_toc.yml").is_file():
            raise ValueError(f"root={self.root} holds no _toc.yml: name a checkout by --root")

    @property
    def chapters(self) -> list[Path]:
        """Return the sources of the chapters (``notebooks/*.md``), then of the research notes."""
        return [path for folder in self.folders for path in sorted(folder.glob("*.md"))]

    @property
    def folders(self) -> tuple[Path, Path]:
        """Return the folders of notebooks: of the chapters, and of the research notes."""
        return self.root / "notebooks", self.root / "notebooks" / "notes"

    @property
    def built(self) -> Path:
        """Return the folder for everything generated."""
        return self.root / "_build"

    @property
    def html(self) -> Path:
        """Return the folder of the finished site."""
        return self.built / "html"

    @cached_property
    def address(self) -> str:
        """Return the repository's public address, which ``pyproject.toml`` alone names."""
        settings = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        return settings["project"]["urls"]["Repository"]

    @property
    def name(self) -> str:
        """Return the repository's name: the last part of its address."""
        return self.address.rstrip("/").rsplit("/", 1)[-1]

    @property
    def site_address(self) -> str:
        """Return where GitHub Pages serves the site of a repository with this address."""
        owner = urlsplit(self.address).path.strip("/").split("/")[0]
        return f"https://{owner}.github.io/{self.name}/"

    @property
    def contents(self) -> dict[str, Any]:
        """Return what ``_toc.yml`` says."""
        return yaml.safe_load((self.root / "_toc.yml").read_text(encoding="utf-8"))

    @cached_property
    def pages_in_toc(self) -> list[str]:
        """Return every page that ``_toc.yml`` names, in its order, without a file ending."""
        return list(parse_toc_yaml(self.root / "_toc.yml"))

    def page(self, chapter: Path) -> str:
        """Return the name of a chapter's page (``notebooks/01_concepts``), as in ``_toc.yml``."""
        return self.relative(chapter.with_suffix(""))

    def relative(self, path: Path) -> str:
        """Return `path` as people read it: from the root, with forward slashes."""
        return path.relative_to(self.root).as_posix()
