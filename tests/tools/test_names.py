"""Names: the library keeps its own rules, and lint names what would break them."""

from __future__ import annotations

import pytest

from tools.names import broken_rules


@pytest.fixture
def write(tmp_path):
    """Write modules of a small library."""

    def write_module(name, text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return tmp_path

    write_module("conceptnb/tables/rows.py", "def _own():\n    return 1\n\n\ndef load(): ...\n")
    write_module("conceptnb/tables/_style.py", "class Card: ...\n")
    return write_module


def test_the_library_keeps_its_rules():
    assert broken_rules() == []


@pytest.mark.parametrize(
    "text",
    [
        "from conceptnb.tables.rows import _own",
        "from conceptnb.tables.rows import (\n    load,\n    _own as shown,\n)",
        "from .rows import _own",
        "def late():\n    from conceptnb.tables.rows import _own\n    return _own",
        "from conceptnb.tables import rows\nprint(rows._own())",
        "import conceptnb.tables.rows as r\nprint(r._own())",
        "import conceptnb.tables.rows\nprint(conceptnb.tables.rows._own())",
    ],
)
def test_a_private_name_of_another_module_is_named(write, text):
    [said] = broken_rules(write("conceptnb/tables/pages.py", text))
    assert said.startswith("conceptnb/tables/pages.py:")
    assert said.endswith("_own is private to conceptnb.tables.rows")


@pytest.mark.parametrize(
    "text",
    [
        "from conceptnb.tables import _style",
        "from conceptnb.tables._style import Card",
        "import conceptnb.tables._style",
    ],
)
def test_a_private_module_is_for_its_own_package(write, text):
    assert broken_rules(write("conceptnb/tables/pages.py", text)) == []
    [said] = broken_rules(write("conceptnb/commands/learn.py", text))
    assert said.startswith("conceptnb/commands/learn.py:1: ")
    assert said.endswith("private to conceptnb.tables")


def test_private_names_of_other_libraries_and_of_oneself_are_no_concern(write):
    text = "import os\nfrom threading import _shutdown\n\n\nclass A:\n    def b(self):\n"
    text += "        return self._c, os._exit, _shutdown\n"
    assert broken_rules(write("conceptnb/tables/pages.py", text)) == []


@pytest.mark.parametrize("kind", ["def {}(): ...", "class {}: ...", "async def {}(): ..."])
def test_a_public_name_defined_twice_is_named_with_both_places(write, kind):
    write("conceptnb/core/a.py", kind.format("shown"))
    [said] = broken_rules(write("conceptnb/theory/b.py", "x = 1\n\n\n" + kind.format("shown")))
    where = "conceptnb/core/a.py:1, conceptnb/theory/b.py:4"
    assert said == f"shown is defined 2 times: {where}"


def test_private_names_may_be_alike_and_every_study_has_plans(write):
    for name in ("a", "b"):
        root = write(f"conceptnb/studies/{name}.py", "def _rows(): ...\n\n\ndef plans(): ...\n")
    assert broken_rules(root) == []
