"""A book that is small enough to be built in a test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tools.book import pairs
from tools.book.project import Project

ROOT = Path(__file__).resolve().parents[2]

CHAPTER = """\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Chapter {name}

(label-{name})=
## A place

{text}

```{{code-cell}} ipython3
{code}
```
"""


class SmallBook(Project):
    """Two chapters, a page, a package of two modules: a whole book."""

    def write(self, name, text="Words.", code="1 + 1"):
        source = CHAPTER.format(name=Path(name).name, text=text, code=code)
        (self.root / "notebooks" / f"{name}.md").write_text(source, encoding="utf-8")


@pytest.fixture(scope="session")
def make_book():
    def make(root):
        for folder in ("notebooks", "book", "conceptnb/steering", "results"):
            (root / folder).mkdir(parents=True)
        (root / "pyproject.toml").write_text(
            '[project.urls]\nRepository = "https://github.com/an-owner/a-book"\n', encoding="utf-8"
        )
        (root / "requirements.lock").write_text("numpy==2.0\n", encoding="utf-8")
        for name in ("_config.yml", "jupytext.toml"):
            shutil.copyfile(ROOT / name, root / name)
        shutil.copytree(ROOT / "book" / "_static", root / "book" / "_static")
        shutil.copyfile(ROOT / "book" / "references.bib", root / "book" / "references.bib")
        files = [{"file": name} for name in ("notebooks/a", "notebooks/b", "book/api/index")]
        toc = {"format": "jb-book", "root": "book/index", "parts": [{"chapters": files}]}
        (root / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
        (root / "book" / "index.md").write_text("# Welcome\n", encoding="utf-8")
        for module in ("__init__", "steering/__init__"):  # Sphinx documents the installed ones
            text = '"""A module."""\n\n__all__ = ["steering"]\n'
            (root / "conceptnb" / f"{module}.py").write_text(text, encoding="utf-8")
        book = SmallBook(root)
        book.write("a")
        book.write("b")
        pairs.pair(book)
        return book

    return make


@pytest.fixture
def project(tmp_path, make_book):
    return make_book(tmp_path)
