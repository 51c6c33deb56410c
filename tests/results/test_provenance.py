"""What makes a table stale: code and data that it reaches, and nothing else."""

import ast

import pytest

from conceptnb.results.provenance import _what_counts, changes, closure

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
    before = closure(["conceptnb.direct"], root)
    path = root / "conceptnb" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = changes(["conceptnb.direct"], before, root)
    name = "conceptnb." + file.removesuffix(".py").replace("/", ".")
    assert found == ([name] if stale else [])


CHECK = "    if {}:\n        raise {}\n"


@pytest.mark.parametrize(
    ("check", "counts"),
    [
        (CHECK.format("r < 0 or not np.isfinite(r).all()", "ValueError(f'r is {r}')"), False),
        (CHECK.format("not isinstance(r, float)", "TypeError('r')"), False),
        (CHECK.format("r < 0", "RuntimeError('r')"), True),
        (CHECK.format("r < 0", "ValueError('r')") + "    else:\n        r = 1\n", True),
        (CHECK.format("(r := 2) < 0", "ValueError('r')"), True),
        (CHECK.format("rng.uniform() < 0", "ValueError('r')"), True),
        (CHECK.format("np.random.uniform() < 0", "ValueError('r')"), True),
        (CHECK.format("len(set(r)) < 2 or r.any()", "ValueError('r')"), False),
        (CHECK.format("r.set(2) or cache.type(r)", "ValueError('r')"), True),
        ("    if r < 0:\n        r = 1\n", True),
    ],
)
def test_a_check_without_side_effects_counts_only_where_its_error_is_caught(root, check, counts):
    text = FILES["core/shapes.py"].replace("    return", check + "    return")

    def now():
        return closure(["conceptnb.direct"], root)["conceptnb.core.shapes"]

    def write(name, content):
        (root / "conceptnb" / name).write_text(content, encoding="utf-8")

    before = now()
    write("core/shapes.py", text)
    assert (now() != before) == counts
    for caught in ("ValueError", "(KeyError, TypeError)", "Exception as e", ""):
        code = f"{FILES['direct.py']}\ndef g():\n    try:\n        f()\n    except {caught}:\n"
        write("core/shapes.py", FILES["core/shapes.py"])
        write("direct.py", f"{code}        return 0\n")
        before = now()
        write("core/shapes.py", text)
        assert now() != before
        write("direct.py", f"{code}        raise KeyError\n")
        after = now()
        write("core/shapes.py", FILES["core/shapes.py"])
        assert (now() != after) == counts


@pytest.mark.parametrize(
    ("user", "counts"),
    [
        ("area(2)", False),
        ("area(2) + volume(1)", True),
        ("area(2) + indirect(1)", True),
        ("[getattr(shapes, word) for word in ('volume',)]", True),
    ],
)
def test_a_function_counts_if_code_that_counts_names_it(root, user, counts):
    shapes, direct = root / "conceptnb/core/shapes.py", root / "conceptnb/direct.py"
    direct.write_text(f"import conceptnb.core.shapes\ndef f():\n    return {user}\n")
    more = "\ndef volume(r):\n    return volume(r - 1) if r else {}\n"
    more += "\ndef indirect(r):\n    return volume(r)\n"
    shapes.write_text(FILES["core/shapes.py"] + more.format(0))
    before = closure(["conceptnb.direct"], root)
    shapes.write_text(FILES["core/shapes.py"] + more.format(1))
    found = changes(["conceptnb.direct"], before, root)
    assert found == (["conceptnb.core.shapes"] if counts else [])
    # A module whose own functions computed a table counts whole.
    assert changes(["conceptnb.direct", "conceptnb.core.shapes"], before, root)


@pytest.mark.parametrize("line", ["@cached\n", "@cached(1)\n"])
def test_a_decorated_function_counts_without_a_name(root, line):
    path = root / "conceptnb/core/shapes.py"
    text = FILES["core/shapes.py"] + f"\n{line}def hidden():\n    return 1\n"
    path.write_text(text)
    before = closure(["conceptnb.direct"], root)
    path.write_text(text.replace("return 1", "return 2"))
    assert changes(["conceptnb.direct"], before, root) == ["conceptnb.core.shapes"]


def test_code_is_the_same_in_all_versions_of_python():
    call = ("Call", ("func", ("Name", ("id", "'f'"), ("ctx", ("Load",)))))
    assert _what_counts(ast.parse('def g():\n  """A text."""\n  f()\n'), True, ()) == (
        "Module",
        (
            "body",
            (
                (
                    "FunctionDef",
                    ("name", "'g'"),
                    ("args", ("arguments",)),
                    ("body", (("Expr", ("value", call)),)),
                ),
            ),
        ),
    )


def test_a_string_that_is_no_docstring_counts(root):
    path = root / "conceptnb/core/shapes.py"
    path.write_text("KIND = 'a'\n\n\ndef area(r):\n    return r if KIND else 0\n")
    before = closure(["conceptnb.direct"], root)
    path.write_text("KIND = 'b'\n\n\ndef area(r):\n    return r if KIND else 0\n")
    assert changes(["conceptnb.direct"], before, root) == ["conceptnb.core.shapes"]


def test_what_is_gone_or_was_never_recorded_is_stale(root):
    before = closure(["conceptnb.direct"], root)
    (root / "conceptnb/direct.py").unlink()
    assert changes(["conceptnb.direct"], before, root) == ["conceptnb.direct"]
    assert changes([], {}, root)


@pytest.mark.parametrize("modules", [[], ["conceptnb.nowhere"], ["numpy.linalg"]])
def test_what_is_no_module_is_refused(root, modules):
    with pytest.raises(ValueError, match="modules"):
        closure(modules, root)
