"""Tells the notebooks that a program wrote from those that a person has changed, by their content.

Each cell that `tools.book` writes has an identity that is a hash of what it holds. A notebook whose
cells still have theirs, without outputs, can be written again; any other is somebody's work.
Only the standard library is needed, so that `make clean` can ask without an environment.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path


def cell_id(content: str, seen: Counter[str]) -> str:
    """Return an identity that survives the insertion of cells before this one."""
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def is_untouched(path: Path) -> bool:
    """Tell whether a file is a notebook that a program wrote and that nobody has changed or run."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        seen: Counter[str] = Counter()
        return bool(cells) and all(_is_untouched(cell, seen) for cell in cells)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_untouched(cell: dict, seen: Counter[str]) -> bool:
    content = cell["cell_type"] + "".join(cell["source"])
    ran = cell.get("outputs") or cell.get("execution_count") or cell.get("attachments")
    return cell["id"] == cell_id(content, seen) and not ran
