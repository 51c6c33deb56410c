"""Remove what is generated, with the standard library only; keep what a person has worked on."""

import shutil
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT))

from tools.book.generated import is_untouched  # noqa: E402
from tools.setup import name_what_was_added  # noqa: E402

_CACHES = (".executing", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")


def main(root: Path = _ROOT) -> None:
    """Remove caches, the environment and ``_build``, but no edition that was worked on."""
    name_what_was_added(root / ".venv")
    for path in (
        *(root / name for name in _CACHES),
        *root.glob("*.egg-info"),
        *root.glob(".venv*"),
    ):
        _remove(path)
    mine = [
        path
        for path in (root / "_build" / "editions").rglob("*")
        if path.is_file() and ".ipynb_checkpoints" not in path.parts and not is_untouched(path)
    ]
    for path in sorted((root / "_build").glob("*")):
        if path.name != "editions" or not mine:
            _remove(path)
    if mine:
        names = "\n".join(f"  {path.relative_to(root)}" for path in mine)
        print(f"_build/editions stays, because you have worked on\n{names}")
    elif (root / "_build").is_dir():
        (root / "_build").rmdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
