"""What a computed table depends on: the import closure of its code, with the data it reads.

Every import of this package is followed, lazy ones included, through re-exports to the module that
defines a name. A module counts by its syntax tree without docstrings, checks, and functions that no
code which counts names anywhere: it cannot have called them. A data file counts by its bytes.

A *check* is an ``if`` that does nothing but raise ValueError or TypeError, on a condition without
side effects. Runs that were stored have passed every check of then, so a check that is changed or
taken away cannot have changed a number, and one that is added can only stop a run, which the tests
that compute samples again would see. Where a module of the closure catches such errors and goes on,
that does not hold, and checks count.
"""

import ast
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
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
_FUNCTIONS = {
    *("abs", "all", "any", "enumerate", "float", "frozenset", "getattr", "hasattr", "int"),
    *("isinstance", "len", "max", "min", "set", "sorted", "str", "sum", "tuple", "type"),
}
"""Functions that a check may call, beside those of `np` and `math`."""
_METHODS = {"all", "any", "max", "min", "sum"}
"""Methods, of arrays, that a check may call."""


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


def changes(modules: Sequence[str], code: dict[str, str], root: Path = _ROOT) -> list[str]:
    """Return what differs now from the `code` that `closure` returned then, by name."""
    gone = [name for name in modules if _file(name, root) is None]
    if gone or not modules:
        return gone or ["no code is recorded"]
    now = closure(modules, root)
    return sorted(name for name in now.keys() | code.keys() if now.get(name) != code.get(name))


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
    unnamed = _never_named([tree for name, tree in trees.items() if name not in modules], trees)
    checks_count = any(_goes_on_after_a_check(tree) for tree in trees.values())
    code = {
        name: _short_hash(repr(_what_counts(tree, checks_count, unnamed)).encode())
        for name, tree in trees.items()
    }
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


def _what_counts(value: object, checks_count: bool, left_out: Collection[object]) -> object:
    """Return a syntax tree as nested tuples, the same in all versions of Python."""
    if isinstance(value, ast.AST):
        fields = ((k, _what_counts(v, checks_count, left_out)) for k, v in ast.iter_fields(value))
        return type(value).__name__, *(field for field in fields if field[1] not in (None, ()))
    if isinstance(value, list):
        kept = (v for v in value if not _is_text(v) and (checks_count or not _is_check(v)))
        return tuple(_what_counts(v, checks_count, left_out) for v in kept if v not in left_out)
    return None if value is None else repr(value)


def _never_named(called: Sequence[ast.Module], trees: Mapping[str, ast.Module]) -> set[ast.AST]:
    """Return the plain functions of `called` that no code which counts names, themselves apart."""
    unnamed = {
        node
        for tree in called
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }
    counts: list[ast.stmt] = [n for tree in trees.values() for n in tree.body if n not in unnamed]
    while counts:
        parts = [part for node in counts for part in ast.walk(node)]
        named = {value for part in parts for _, value in ast.iter_fields(part) if _is_name(value)}
        counts = [node for node in unnamed if node.name in named]
        unnamed -= set(counts)
    return set(unnamed)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _is_text(node: object) -> bool:
    """Whether a node is a docstring, or another string that stands alone."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _is_check(node: object) -> bool:
    match node:
        case ast.If(test=test, body=[ast.Raise(exc=ast.Call(func=ast.Name(id=error)))], orelse=[]):
            return error in ("ValueError", "TypeError") and all(map(_is_pure, ast.walk(test)))
    return False


def _is_pure(node: ast.AST) -> bool:
    match node:
        case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom():
            return False
        case ast.Call(func=ast.Name(id=function)):
            return function in _FUNCTIONS
        case ast.Call(func=function):
            called = ast.unparse(function)
            numeric = called.startswith(("np.", "math.")) and "random" not in called
            return numeric or (isinstance(function, ast.Attribute) and function.attr in _METHODS)
    return True


def _goes_on_after_a_check(tree: ast.Module) -> bool:
    """Whether code catches ValueError or TypeError, and raises nothing then."""
    wide = {"ValueError", "TypeError", "Exception", "BaseException"}
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(body=[*_, ast.Raise()]):
                continue
            case ast.ExceptHandler(type=None):
                return True
            case ast.ExceptHandler(type=ast.expr() as caught):
                inside = ast.walk(caught)
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress")):
                inside = ast.walk(node)
            case _:
                continue
        if wide & {part.id for part in inside if isinstance(part, ast.Name)}:
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
