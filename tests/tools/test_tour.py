"""The way in: what CONTRIBUTING and its pages name exists; the picture is the import contract."""

from __future__ import annotations

import ast
import itertools
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = tuple(f"docs/{name}.md" for name in ("tour", "writing", "library", "building"))
PATH = re.compile(r"\b(?:conceptnb|tools|benchmarks|tests|book|notebooks|results)/[\w/.-]*\w")
DOTTED = re.compile(r"\b(?:conceptnb|tools|benchmarks)(?:\.\w+)+")
MADE_BY_A_BUILD = re.compile(r"NAME|\.ipynb$|book/figures|book/times")


def named(page, pattern):
    text = (ROOT / page).read_text(encoding="utf-8")
    return sorted(set(pattern.findall(text)))


def exists(dotted):
    """Return whether a dotted name is a module or what one offers; nothing is imported."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:end])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                offered = names_of(ast.parse(file.read_text(encoding="utf-8")))
                return all(name in offered for name in parts[end:])
    return False


def names_of(tree):
    """Return what a module defines, imports or offers by name to be loaded on first use."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
            case ast.Constant(value=str(name)):
                found.add(name)
    return found


@pytest.mark.parametrize("page", ("CONTRIBUTING.md", *DOCS))
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\(([^):#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", DOCS)
def test_every_file_that_is_named_is_there(page):
    paths = [path for path in named(page, PATH) if not MADE_BY_A_BUILD.search(path)]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", [page for page in DOCS if "writing" not in page])
def test_every_name_of_the_package_that_is_given_is_there(page):
    dotted = [name for name in named(page, DOTTED) if not name.endswith((".py", ".json"))]
    assert dotted
    assert [name for name in dotted if not exists(name)] == []


def rooms():
    package = ROOT / "conceptnb"
    return {p.name for p in package.iterdir() if (p / "__init__.py").is_file()}


def test_the_tour_describes_every_room_once():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert sorted(described) == sorted(rooms())


def test_the_picture_is_the_import_contract():
    drawing = ElementTree.parse(ROOT / "book/_static/house.svg")
    names = drawing.findall(".//{*}text[@class='name']")
    height = {str(name.text): float(name.attrib["y"]) for name in names}
    assert set(height) == rooms()
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "rooms")
    named = [[name for name in re.findall(r"\w+", layer) if name in height] for layer in layers]
    floors = [floor for floor in named if floor]
    assert {name for floor in floors for name in floor} == rooms()
    for above, below in itertools.pairwise(floors):
        assert len({height[name] for name in above}) == 1
        assert max(height[name] for name in above) <= min(height[name] for name in below)
