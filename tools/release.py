"""What a release needs, with the standard library only: `check` TAG, `try` FILE, `notes`."""

import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPES = """\
from conceptnb.core.concepts import Concept

reveal_type(Concept(A=[[1.0]], b=[0.0]).dim)
"""


def main(arguments: list[str]) -> None:
    """Run one of the steps."""
    steps: dict[str, Callable[..., None]] = {"check": check, "try": try_file, "notes": notes}
    if not arguments or arguments[0] not in steps:
        sys.exit(f"usage: python tools/release.py {{{','.join(steps)}}} ...")
    steps[arguments[0]](*arguments[1:])


def version() -> str:
    """Return the version, which ``conceptnb/__init__.py`` alone says."""
    return _found(r'^__version__ = "(.+)"$', "conceptnb/__init__.py")


def check(tag: str = "") -> None:
    """Exit with a message unless tag, changelog and citation agree with the version."""
    now = version()
    released = _found(r"^date-released: (.+)$", "CITATION.cff")
    latest = (
        _found(r"^## \[(\d.*)\]", "CHANGELOG.md"),
        _found(r"^## \[\d.*\] - (.+)$", "CHANGELOG.md"),
    )
    wrong = [
        f"{where} says {said}, {expected} was expected"
        for where, said, expected in (
            ("the tag", tag or f"v{now}", f"v{now}"),
            ("CITATION.cff", _found(r"^version: (.+)$", "CITATION.cff"), now),
            ("CHANGELOG.md", latest[0], now),
            ("CHANGELOG.md", latest[1], released),
        )
        if said != expected
    ]
    if wrong:
        sys.exit("\n".join(wrong))


def notes() -> None:
    """Print what the changelog says about the version."""
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, part = text.split(f"## [{version()}]", 1)
    print(part.split("\n", 1)[1].split("\n## ", 1)[0].strip())


def try_file(file: str) -> None:
    """Install a wheel or an sdist in an empty environment, and use it as its reader would."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        _run(folder, python, "-m", "pip", "install", "--quiet", str(Path(file).resolve()), "mypy")
        _run(folder, environment / "bin" / "conceptnb", "--version")
        _run(folder, environment / "bin" / "conceptnb", "results")
        readme = (_ROOT / "README.md").read_text(encoding="utf-8")
        for code in _PYTHON.findall(readme):
            _run(folder, python, "-c", code)
        (Path(folder) / "typed.py").write_text(_TYPES, encoding="utf-8")
        said = _run(folder, python, "-m", "mypy", "typed.py")
        assert 'Revealed type is "int"' in said.replace("builtins.", ""), said
        licences = list(environment.glob("lib/*/site-packages/conceptnb-*/licenses/LICENSE*"))
        assert sorted(path.name for path in licences) == ["LICENSE", "LICENSE-text.md"], licences
    print(f"{Path(file).name} works on Python {sys.version.split()[0]}")


def _found(pattern: str, name: str) -> str:
    found = re.search(pattern, (_ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "nothing"


def _run(folder: str, *command: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
