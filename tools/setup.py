"""Make the local environment of the book, with the standard library only.

Installs what ``requirements.lock`` pins and the package itself, editable: by uv in seconds, or
where that fails by pip. A new environment is made beside the old one and then takes its place, so
that an interrupted set-up leaves nothing half done; a lock lets two of them wait for each other.
A stamp, written last, holds what an environment was made from: one without it is not whole.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_LOCK = _ROOT / "requirements.lock"
_OLDEST, _HERE = (3, 11), platform.python_version()
_OF_CUDA = re.compile(r"(nvidia|cuda|triton)\b", re.IGNORECASE)
_SET_UPS_OWN = {"conceptnb", "pip", "setuptools", "uv"}
_TORCH = {"default": "6.3 GB on Linux, 4.0 of them CUDA", "cpu": "about 2.3 GB, no CUDA"}


def main(arguments: list[str] | None = None) -> None:
    """Set the environment up unless its stamp says that nothing has changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    said = "made in the checkout (default: .venv)"
    parser.add_argument("folder", nargs="?", default=".venv", help=said)
    folder = parser.parse_args(arguments).folder
    if sys.version_info < _OLDEST:
        sys.exit(f"Python 3.11 or newer is needed, not {_HERE}: try `make PYTHON=python3.12 ...`")
    asked = os.environ.get("TORCH", "")
    if asked and asked not in _TORCH:
        parser.error(f"TORCH={asked!r} is not known; there are {', '.join(_TORCH)}")
    environment = _ROOT / folder
    if _holds_something_else(environment):
        parser.error(f"folder {folder!r} holds something else, which would be lost: name a new one")
    if _stamp(environment) == _wanted(environment, asked):
        return
    try:
        with _alone(environment) as lock:
            _set_up(environment, asked, lock)
    except KeyboardInterrupt:
        print("\ninterrupted: `make setup` starts again", file=sys.stderr)
        sys.exit(130)


def _set_up(environment: Path, asked: str, lock: int) -> None:
    """Bring an environment up to date where that can be done in place, or make it again."""
    before, wanted = _stamp(environment), _wanted(environment, asked)
    if before == wanted:
        return  # another set-up has done it meanwhile
    torch = wanted["torch"]
    said = f"once, and again when requirements.lock changes; {_TORCH[torch]}"
    print(f"Setting up {environment.name} ({said}) ...", flush=True)
    if before and before | {"inputs": ""} == wanted | {"inputs": ""}:
        (environment / "made-from").unlink()  # until all is installed it is not whole
        if _install(environment, torch, lock):
            _write_stamp(environment, wanted)
            return
    name_what_was_added(environment)
    new = environment.with_name(f"{environment.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            f"Python {_HERE} comes without ensurepip, so it cannot make an environment: on Debian "
            "and Ubuntu `sudo apt install python3-venv`, then `make setup` again"
        )
    if not (
        _run([sys.executable, "-m", "venv", "--symlinks", str(new)], lock)
        and _install(new, torch, lock)
    ):
        shutil.rmtree(new, ignore_errors=True)
        sys.exit("set-up failed: the message above says at what")
    _take_the_place(new, environment)
    _write_stamp(environment, wanted)


def _install(environment: Path, torch: str, lock: int) -> bool:
    """Install what the lock pins, then the package, by uv or else by pip."""
    python = str(environment / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet"]
    uv = [str(environment / "bin" / "uv"), "pip", "install", "--quiet", "--python", python]
    pinned, package = ["-r", str(_LOCK)], ["--no-deps", "--no-build-isolation", "-e", str(_ROOT)]
    if torch == "cpu":
        pinned = ["--torch-backend", "cpu", "-r", str(_without_cuda(environment))]
    there = Path(uv[0]).is_file() or _run([*pip, "uv"], lock)
    if there and _run([*uv, *pinned], lock) and _run([*uv, *package], lock):
        return True
    if torch == "cpu":
        print(
            "TORCH=cpu takes PyTorch from the project's own index: see above whether it can be "
            "reached from here; `make setup TORCH=default` takes the build with CUDA",
            file=sys.stderr,
        )
        return False
    print("uv did not do it: pip does, which takes a few minutes", flush=True)
    return _run([*pip, *pinned], lock) and _run([*pip, *package], lock)


def _without_cuda(environment: Path) -> Path:
    """Write the lock without what only the build with CUDA needs; return where."""
    lines = _LOCK.read_text(encoding="utf-8").splitlines(keepends=True)
    path = environment / "requirements.txt"
    path.write_text("".join(line for line in lines if not _OF_CUDA.match(line)), encoding="utf-8")
    return path


def _take_the_place(new: Path, environment: Path) -> None:
    """Move an environment to where it is used from, and let its scripts know."""
    for script in [new / "pyvenv.cfg", *(new / "bin").iterdir()]:
        if script.is_file() and not script.is_symlink():
            content = script.read_bytes()
            moved = content.replace(os.fsencode(new), os.fsencode(environment))
            if b"\0" not in content and moved != content:
                script.write_bytes(moved)
    old = environment.with_name(f"{environment.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if environment.exists():
        environment.rename(old)
    new.rename(environment)
    shutil.rmtree(old, ignore_errors=True)


def name_what_was_added(environment: Path) -> None:
    """Say which packages of an environment that is made again are not the book's."""
    lines = _LOCK.read_text(encoding="utf-8").splitlines()
    ours = {_canonical(re.split(r"[=<>; ]", line)[0]) for line in lines} | _SET_UPS_OWN
    there = {
        _canonical(name): f"{name}=={version}"
        for info in environment.glob("lib/python*/site-packages/*.dist-info")
        for name, version in [info.stem.split("-")[:2]]
    }
    if added := sorted(there[name] for name in there.keys() - ours):
        print(
            f"{environment.name} goes, and with it what you added; to have that in the next one:\n"
            f"  {environment.name}/bin/uv pip install {' '.join(added)}",
            flush=True,
        )


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _wanted(environment: Path, asked: str = "") -> dict[str, str]:
    """Return what the stamp of a current environment says; what it is made from as one hash."""
    total = hashlib.sha256()
    for path in (_LOCK, _ROOT / "pyproject.toml", Path(__file__)):
        total.update(path.read_bytes())
    torch = asked or _stamp(environment).get("torch", "default")
    made = {"python": sys.version, "folder": str(environment), "torch": torch}
    return made | {"inputs": total.hexdigest()}


def _stamp(environment: Path) -> dict[str, Any]:
    """Return what an environment was made from; nothing where it is not whole."""
    try:
        stamp = json.loads((environment / "made-from").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and (environment / "bin" / "python").exists() else {}


def _write_stamp(environment: Path, wanted: dict[str, str]) -> None:
    unfinished = environment / "made-from.part"
    unfinished.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(environment / "made-from")


def _holds_something_else(path: Path) -> bool:
    if not path.exists() or (path / "pyvenv.cfg").is_file():
        return False
    return not path.is_dir() or any(path.iterdir())


@contextmanager
def _alone(environment: Path) -> Iterator[int]:
    """Wait until no other set-up is at work on the environment; yield the lock's descriptor."""
    with environment.with_name(f"{environment.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another set-up is at work on {environment.name}: waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _run(command: list[str], lock: int) -> bool:
    """Run a command, which holds the lock as long as it lives; end it where this is interrupted."""
    process = subprocess.Popen(command, cwd=_ROOT, pass_fds=[lock], start_new_session=True)
    try:
        return process.wait() == 0
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


if __name__ == "__main__":
    main()
