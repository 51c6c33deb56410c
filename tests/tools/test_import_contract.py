"""The floors of the house: lint accepts the package as it is, and names what would break them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parents[2]
LINT = Path(sys.executable).with_name("lint-imports")


@pytest.fixture
def copy(tmp_path):
    """The package's modules and the contract, free to be broken."""
    for module in (ROOT / "conceptnb").rglob("*.py"):
        target = tmp_path / module.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, target)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def lint(folder):
    done = subprocess.run(
        [LINT, "--no-cache", "--no-logo"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_the_package_keeps_the_contract(copy):
    status, said = lint(copy)
    assert status == 0, said


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        (
            "core/concepts.py",
            "def _late():\n    from conceptnb.plotting import _style as style\n    return style",
            "conceptnb.core.concepts -> conceptnb.plotting._style",
        ),
        (
            "studies/__init__.py",
            "def _late():\n    import conceptnb.plotting._style",
            "conceptnb.studies -> conceptnb.plotting._style",
        ),
        (
            "learning/__init__.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import conceptnb.theory",
            "conceptnb.learning -> conceptnb.theory",
        ),
        (
            "results/__init__.py",
            "import conceptnb.steering",
            "conceptnb.results -> conceptnb.steering",
        ),
        ("core/__init__.py", "import conceptnb.metrics", "conceptnb.core -> conceptnb.metrics"),
    ],
    ids=["lazy", "plotting", "for types alone", "side by side", "kept path"],
)
def test_an_import_against_the_floors_is_named(copy, module, line, broken):
    with (copy / "conceptnb" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{line}\n")
    status, said = lint(copy)
    assert status != 0
    assert broken in said


def test_a_new_room_has_to_find_its_floor(copy):
    (copy / "conceptnb" / "attic").mkdir()
    (copy / "conceptnb" / "attic" / "__init__.py").touch()
    status, said = lint(copy)
    assert status != 0
    assert "attic" in said


def test_a_circle_is_named(copy):
    for one, other in (("one", "two"), ("two", "one")):
        text = f"def late():\n    import conceptnb.core.{other}\n"
        (copy / "conceptnb" / "core" / f"{one}.py").write_text(text, encoding="utf-8")
    status, said = lint(copy)
    assert status != 0
    assert ".one" in said


def test_no_module_imports_itself_by_a_detour(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    graph = grimp.build_graph("conceptnb", cache_dir=None)
    modules = sorted(graph.modules)
    places = {module: place for place, module in enumerate(modules)}
    imports = [
        (places[module], places[other])
        for module in modules
        for other in graph.find_modules_directly_imported_by(module)
    ]
    rows, columns = zip(*imports, strict=True)
    matrix = csr_array(([1] * len(rows), (rows, columns)), shape=(len(modules), len(modules)))
    number, labels = connected_components(matrix, directed=True, connection="strong")
    circles: dict[int, list[str]] = {}
    for module, label in zip(modules, labels, strict=True):
        circles.setdefault(label, []).append(module)
    assert [circle for circle in circles.values() if len(circle) > 1] == []
    assert number == len(modules) > 100
