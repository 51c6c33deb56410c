"""Names of the library: none that is private is used elsewhere, no public one is defined twice.

``python -m tools.names`` prints what breaks one of these rules, and exits with 1 if anything does.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_CODE = ("conceptnb", "tools", "benchmarks")
_OF_EVERY_STUDY = {"plans", "main"}
"""What the runner asks of a study, and Python of a program."""


def broken_rules(root: Path = ROOT) -> list[str]:
    """Return what breaks the rules, a line each.

    Parameters
    ----------
    root : Path
        A folder with the packages ``conceptnb``, ``tools`` and ``benchmarks``, or some of them.

    Returns
    -------
    list of str
        ``"conceptnb/tables/a.py:3: _row is private to conceptnb.tables.b"``, or where a public
        function or class of one name is defined.
    """
    files = sorted(file for part in _CODE for file in (root / part).rglob("*.py"))
    trees = {file.relative_to(root): ast.parse(file.read_text(encoding="utf-8")) for file in files}
    found = [fault for file, tree in trees.items() for fault in _private_names(file, tree)]
    return found + list(_double_names(trees))


def _private_names(file: Path, tree: ast.Module) -> Iterator[str]:
    own = _module(file).split(".")
    package = ".".join(own if file.name == "__init__.py" else own[:-1])
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            source = _source(node, package)
            for name in node.names:
                module = f"{source}.{name.name}"
                if _is_own(source):
                    aliases[name.asname or name.name] = module
                # A module may be private to the package in which it is imported.
                if _is_private(name.name) and _is_own(source) and source != package:
                    yield f"{file}:{node.lineno}: {name.name} is private to {source}"
                elif (inside := _private_module(source)) and inside != package:
                    yield f"{file}:{node.lineno}: {source} is private to {inside}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name] = name.name
                inside = _private_module(name.name)
                if _is_own(name.name) and inside and inside != package:
                    yield f"{file}:{node.lineno}: {name.name} is private to {inside}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            source = aliases.get(ast.unparse(node.value), "")
            if _is_own(source):
                yield f"{file}:{node.lineno}: {node.attr} is private to {source}"


def _double_names(trees: dict[Path, ast.Module]) -> Iterator[str]:
    places = defaultdict(list)
    for file, tree in trees.items():
        if file.parts[:1] != ("conceptnb",) or file.parts[:2] == ("conceptnb", "commands"):
            continue  # a command is called as what it does
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                places[node.name].append(f"{file}:{node.lineno}")
    for name, where in sorted(places.items()):
        if len(where) > 1 and not name.startswith("_") and name not in _OF_EVERY_STUDY:
            yield f"{name} is defined {len(where)} times: {', '.join(where)}"


def _module(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _source(node: ast.ImportFrom, package: str) -> str:
    """Return the module from which something is imported, relative imports resolved."""
    parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    return ".".join([*parts, *([node.module] if node.module else [])])


def _private_module(module: str) -> str:
    """Return the package to which a module is private, or nothing."""
    parts = module.split(".")
    private = [i for i, part in enumerate(parts) if _is_private(part)]
    return ".".join(parts[: private[0]]) if private and _is_own(module) else ""


def _is_own(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in _CODE


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


if __name__ == "__main__":
    found = broken_rules()
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
