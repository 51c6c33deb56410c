"""Make the local environment of the book, with the standard library only.

Installs what ``requirements.lock`` pins and the package itself, editable: by uv in seconds, or
where that fails by pip. A stamp holds the hash of what the environment was made from.
"""

import argparse
import hashlib
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_LOCK = _ROOT / "requirements.lock"
_OLDEST, _HERE = (3, 11), platform.python_version()


def main(arguments: list[str] | None = None) -> None:
    """Set the environment up unless its stamp says that nothing has changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    said = "made in the checkout (default: .venv)"
    parser.add_argument("folder", nargs="?", default=".venv", help=said)
    folder = parser.parse_args(arguments).folder
    if sys.version_info < _OLDEST:
        sys.exit(f"Python 3.11 or newer is needed, not {_HERE}: try `make PYTHON=python3.12 ...`")
    environment = _ROOT / folder
    if _holds_something_else(environment):
        parser.error(f"folder {folder!r} holds something else, which would be lost: name a new one")
    stamp = environment / "made-from"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == _wanted():
        return
    print(f"Setting up {folder} (once, and again when requirements.lock changes) ...", flush=True)
    if not _belongs_here(environment):
        shutil.rmtree(environment, ignore_errors=True)
        venv.create(environment, with_pip=True, symlinks=True)
    python = str(environment / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet"]
    uv = [str(environment / "bin" / "uv"), "pip", "install", "--quiet", "--python", python]
    if not (_run([*pip, "uv"]) and _installed_by(uv)):
        print("uv did not do it: pip does, which takes a few minutes", flush=True)
        if not _installed_by(pip):
            sys.exit("set-up failed: the message above says at what")
    stamp.write_text(_wanted(), encoding="utf-8")


def _wanted() -> str:
    """Return the hash of what an environment is made from: the lock, the extras, this file."""
    total = hashlib.sha256(sys.version.encode())
    for path in (_LOCK, _ROOT / "pyproject.toml", Path(__file__)):
        total.update(path.read_bytes())
    return total.hexdigest()


def _holds_something_else(path: Path) -> bool:
    if not path.exists() or (path / "pyvenv.cfg").is_file():
        return False
    return not path.is_dir() or any(path.iterdir())


def _belongs_here(environment: Path) -> bool:
    settings = environment / "pyvenv.cfg"
    return settings.is_file() and f"version = {_HERE}" in settings.read_text(encoding="utf-8")


def _installed_by(command: list[str]) -> bool:
    """Install what the lock pins, then the package, by a command such as ``pip install``."""
    package = ["--no-deps", "--no-build-isolation", "-e", str(_ROOT)]
    return _run([*command, "-r", str(_LOCK)]) and _run([*command, *package])


def _run(command: list[str]) -> bool:
    return subprocess.run(command, cwd=_ROOT, check=False).returncode == 0


if __name__ == "__main__":
    main()
