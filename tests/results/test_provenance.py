"""What a table depends on: code and data that it reaches, and nothing else."""

import pytest

from conceptnb.results.provenance import closure, code_of

FILES = {
    "core/shapes.py": '"""Areas."""\n\ndef area(r):\n    """Return it."""\n    return 3 * r**2\n',
    "core/other.py": "def unused():\n    return 1\n",
    "core/typed.py": "class Only: ...\n",
    "core/__init__.py": "",
    "facade/__init__.py": (
        "from conceptnb.core.shapes import area\nfrom conceptnb.core.other import unused\n"
    ),
    "__init__.py": "",
    "direct.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from conceptnb.core.typed import Only\n"
        "def f():\n    from conceptnb.core.shapes import area  # lazily\n    return area(2)\n"
    ),
    "by_name.py": "from conceptnb.facade import area\nprint(area(1))\n",
    "by_package.py": "from conceptnb import facade\nprint(facade.area(1))\n",
    "whole_package.py": "from conceptnb import facade\nprint(facade)\n",
    "by_string.py": 'WORK = "conceptnb.core.shapes"\n',
    "results/store.py": "x = 1\n",
    "reader/loads.py": "from pathlib import Path\nHERE = Path(__file__).parent\n",
    "reader/plain.py": "x = 1\n",
    "reader/weights/w.bin": "0\n",
    "reader/README.md": "text\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "conceptnb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("module", "reached"),
    [
        ("direct", ["core.shapes", "direct"]),
        ("by_name", ["by_name", "core.shapes"]),
        ("by_package", ["by_package", "core.shapes"]),
        ("whole_package", ["core.other", "core.shapes", "whole_package"]),
        ("by_string", ["by_string", "core.shapes"]),
    ],
)
def test_the_closure_follows_imports_and_only_what_is_used(root, module, reached):
    assert list(closure([f"conceptnb.{module}"], root)) == [f"conceptnb.{m}" for m in reached]


def test_data_count_for_the_module_that_reads_beside_itself(root):
    assert list(closure(["conceptnb.reader.loads"], root)) == [
        "conceptnb.reader.loads",
        "conceptnb/reader/weights/w.bin",
    ]
    assert list(closure(["conceptnb.reader.plain"], root)) == ["conceptnb.reader.plain"]


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("core/shapes.py", '"""Areas."""', '"""Areas, in square metres.\n\nMore."""', False),
        ("core/shapes.py", '"""Return it."""', '"""Return the area."""', False),
        ("core/shapes.py", "r**2\n", "r**2  # nearly\n", False),
        ("core/shapes.py", "    return", "    # a comment\n\n    return", False),
        ("core/shapes.py", "3 * r**2", "(3 *\n        r**2)", False),
        ("core/shapes.py", "3 * r**2", "3.14 * r**2", True),
        ("core/other.py", "return 1", "return 2", False),
        ("core/typed.py", "...", "x = 1", False),
        ("results/store.py", "x = 1", "x = 2", False),
        ("direct.py", "area(2)", "area(3)", True),
    ],
)
def test_comments_and_docstrings_change_nothing_and_code_does(root, file, old, new, stale):
    before, code = closure(["conceptnb.direct"], root), code_of(["conceptnb.direct"], root)
    path = root / "conceptnb" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    now = closure(["conceptnb.direct"], root)
    name = "conceptnb." + file.removesuffix(".py").replace("/", ".")
    assert [each for each in now if now[each] != before[each]] == ([name] if stale else [])
    assert (code_of(["conceptnb.direct"], root) != code) == stale


def test_a_string_that_is_no_docstring_counts(root):
    path = root / "conceptnb/core/shapes.py"
    path.write_text("KIND = 'a'\n\n\ndef area(r):\n    return r if KIND else 0\n")
    before = closure(["conceptnb.direct"], root)
    path.write_text("KIND = 'b'\n\n\ndef area(r):\n    return r if KIND else 0\n")
    assert closure(["conceptnb.direct"], root) != before


def test_what_is_gone_has_no_code(root):
    assert code_of(["conceptnb.direct"], root)
    (root / "conceptnb/direct.py").unlink()
    assert code_of(["conceptnb.direct"], root) == ""
    assert code_of([], root) == ""


@pytest.mark.parametrize("modules", [[], ["conceptnb.nowhere"], ["numpy.linalg"]])
def test_what_is_no_module_is_refused(root, modules):
    with pytest.raises(ValueError, match="modules"):
        closure(modules, root)
