"""What a computed table depends on: the import closure of its code, with the data it reads.

Every import of this package is followed, lazy ones included, through re-exports to the module that
defines a name. A module counts by its syntax tree without docstrings, a data file by its bytes. The
hash says what to check, and no more: whether a change moved a number is seen by computing it again,
see `conceptnb.results.verify`.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from conceptnb.common.files import tracked_files

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "conceptnb"
_SET_ASIDE = (
    "conceptnb.results",
    "conceptnb.plotting",
    "conceptnb.commands",
)
"""What stores, draws and schedules: it computes no number of a table."""


def closure(modules: Sequence[str], root: Path = _ROOT) -> dict[str, str]:
    """Return what `modules` depend on in this package, each with its hash.

    Keys are full names of modules, such as ``"conceptnb.core.scores"``, and paths of data files
    from `root`, which holds the package; values are the first 16 digits of a SHA-256. A module's
    data files are those in its folder, if it names ``__file__`` or `importlib.resources.files`.
    """
    if not modules:
        raise ValueError("modules is empty: name the modules that computed the numbers")
    for name in modules:
        if _file(name, root) is None:
            raise ValueError(f"modules: {name!r} is no module of {_PACKAGE}")
    return dict(_closure(tuple(modules), root, _state(root)))


def code_of(modules: Sequence[str], root: Path = _ROOT) -> str:
    """Return one hash of the closure of `modules`; empty where one of them is not there.

    Parameters
    ----------
    modules : sequence of str
        Full names, such as ``"conceptnb.core.scores"``.
    root : Path
        The folder that holds the package.
    """
    if not modules or any(_file(name, root) is None for name in modules):
        return ""
    return _short_hash(repr(sorted(closure(modules, root).items())).encode())


@lru_cache(maxsize=64)
def _closure(modules: tuple[str, ...], root: Path, state: int) -> dict[str, str]:
    trees: dict[str, ast.Module] = {}
    data: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in trees or name.startswith(_SET_ASIDE):
            continue
        file = _file(name, root)
        assert file is not None
        trees[name] = ast.parse(file.read_text(encoding="utf-8"))
        waiting += _imports(name, root)
        for path in _data_of(file):
            data[path.relative_to(root).as_posix()] = _short_hash(path.read_bytes())
    code = {name: _short_hash(repr(_what_counts(tree)).encode()) for name, tree in trees.items()}
    return dict(sorted((code | data).items()))


def _state(root: Path) -> int:
    """Return what differs once a file of the package has been written."""
    files = (path for path in (root / _PACKAGE).rglob("*") if path.suffix != ".pyc")
    return hash(tuple((str(path), path.stat().st_mtime_ns) for path in files if path.is_file()))


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _file(name: str, root: Path) -> Path | None:
    if name.split(".", maxsplit=1)[0] != _PACKAGE:
        return None
    path = root.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def _what_counts(value: object) -> object:
    """Return a syntax tree as nested tuples, the same in all versions of Python."""
    if isinstance(value, ast.AST):
        fields = ((k, _what_counts(v)) for k, v in ast.iter_fields(value))
        return type(value).__name__, *(field for field in fields if field[1] not in (None, ()))
    if isinstance(value, list):
        return tuple(_what_counts(v) for v in value if not _is_text(v))
    return None if value is None else repr(value)


def _is_text(node: object) -> bool:
    """Whether a node is a docstring, or another string that stands alone."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _data_of(file: Path) -> Iterator[Path]:
    """Yield the data files that belong to a module: those of its folder, if it looks there."""
    source = file.read_text(encoding="utf-8")
    if "__file__" not in source and "resources import files" not in source:
        return
    for path in tracked_files(file.parent):
        if path.suffix in (".py", ".pyc", ".md"):
            continue
        between = path.relative_to(file.parent).parents
        if not any((file.parent / inner / "__init__.py").is_file() for inner in list(between)[:-1]):
            yield path


@cache
def _exports(package: str, root: Path) -> dict[str, tuple[str, str]]:
    file = _file(package, root)
    if file is None or file.name != "__init__.py":
        return {}
    found = {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module or "", alias.name)
    return found


def _imports(name: str, root: Path) -> Iterator[str]:
    """Yield the modules of this package that a module imports or names in a string."""
    file = _file(name, root)
    assert file is not None
    tree = ast.parse(file.read_text(encoding="utf-8"))
    packages: dict[str, str] = {}  # local names of packages: what is used of them decides
    for node in _at_run_time(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _file(alias.name, root))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _PACKAGE:
            for alias in node.names:
                target = _resolved(node.module or "", alias.name, root)
                if target is not None and _exports(target, root):
                    packages[alias.asname or alias.name] = target
                elif target is not None:
                    yield target
        elif isinstance(node, ast.Constant):
            named = str(node.value)
            if named.startswith(f"{_PACKAGE}.") and _file(named, root):
                yield named
    if packages:
        yield from _used_of(packages, tree, root)


def _used_of(packages: dict[str, str], tree: ast.Module, root: Path) -> Iterator[str]:
    """Yield the modules behind ``package.name``, or all of a package that is used otherwise."""
    attributes = {
        id(node.value): node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in packages:
            package = packages[node.id]
            used = attributes.get(id(node))
            target = None if used is None else _resolved(package, used, root)
            if target is not None and target != package:
                yield target
            else:
                yield from (module for module, _ in _exports(package, root).values())


def _resolved(module: str, name: str, root: Path) -> str | None:
    """Return the module that ``from module import name`` reaches, through re-exports."""
    if _file(f"{module}.{name}", root):
        return f"{module}.{name}"
    exports = _exports(module, root)
    if name in exports and exports[name] != (module, name):
        return _resolved(*exports[name], root)
    return module if _file(module, root) else None


def _at_run_time(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        yield node
        waiting += ast.iter_child_nodes(node)
