"""The text of the main path: its words, where its pictures begin, and how often it hedges.

``python -m tools.prose`` prints a line for each chapter: words of its source beside the most that
it may have, the word before which its first figure stands, sentences, and how many of them hedge
or tell how a result came about, by the patterns in ``prose.toml``. ``--sentences`` prints these.
"""

import re
import sys
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
LEEWAY = 0.15
"""By which share a chapter may be longer than planned."""
_PLAN = tomllib.loads(Path(__file__).with_name("prose.toml").read_text(encoding="utf-8"))
_HEDGES = re.compile("|".join(chain.from_iterable(_PLAN["hedges"].values())), re.IGNORECASE)
_FIGURE = re.compile(r"^ +name: fig-|^```\{figure\}", re.MULTILINE)
_FOLDED = r"^(:{3,}|`{3,})\{(?:admonition|dropdown)\}[^\n]*\n(?::class: dropdown\n)?.*?^\1$"
_NO_PROSE = [  # in this order
    (r"\A---\n.*?\n---\n", ""),
    (r"^```\{exercise-start\}.*?^```\{exercise-end\}\n```$", ""),
    (r"^(`{3,})\{code-cell\}.*?^\1$", "cell"),
    (r"^(`{3,})(?:\{(?:math|literalinclude|bibliography)\}|\w+).*?^\1$", ""),
    (r"\$\$.*?\$\$", ""),
    (r"\$[^$]+\$", "…"),
    (r"\{[\w:-]+\}`[^`]*`", "…"),
    (r"`[^`]*`", "…"),
    (r"\]\([^)]*\)", "]"),
    (r"<!--.*?-->", ""),
    (r"(Theorem|Figure|Definition|Equation|Exercise|Section) \d+\.\d+", "…"),
]


@dataclass(frozen=True)
class Chapter:
    """What is counted of a page of the main path.

    `words` are those of its source, code and exercises included; `most` is the plan.
    `figure` is the number of words before the first figure, or None without one; `hedging` holds
    the sentences, outside folded boxes, that match a pattern, of `sentences` in all.
    """

    page: str
    words: int
    most: int
    figure: int | None
    sentences: int
    hedging: tuple[str, ...]


def prose(text: str) -> str:
    """Return what a reader reads as sentences, in one line."""
    for pattern, left in _NO_PROSE:
        by = (lambda m: _caption(m[0])) if left == "cell" else left
        text = re.sub(pattern, by, text, flags=re.MULTILINE | re.DOTALL)
    return " ".join(text.replace("*", "").split())


def _caption(cell: str) -> str:
    header = re.search(r"^---\n(.*?)^---$", cell, re.MULTILINE | re.DOTALL)
    settings = yaml.safe_load(header[1]) if header else {}
    return f"\n{settings.get('mystnb', {}).get('figure', {}).get('caption', '')}\n"


def main_path(root: Path = ROOT) -> list[Chapter]:
    """Count every page of the main path, in the order of the book."""
    return [
        _counted(page, (root / _file(page)).read_text(encoding="utf-8"), most)
        for page, most in _PLAN["words"].items()
    ]


def _file(page: str) -> str:
    return f"{page}.md" if "/" in page else f"notebooks/{page}.md"


def _counted(page: str, text: str, most: int) -> Chapter:
    drawn = _FIGURE.search(text)
    before = len(text[: drawn.start()].split()) if drawn else None
    open_text = re.sub(_FOLDED, "", text, flags=re.MULTILINE | re.DOTALL)
    every = re.split(r"(?<=[.!?])\s+", prose(open_text))
    hedging = tuple(sentence for sentence in every if _HEDGES.search(sentence))
    return Chapter(page, len(text.split()), most, before, len(every), hedging)


def main() -> None:
    """Print a line for each chapter, and sums."""
    chapters = main_path()
    print(f"{'page':30}{'words':>7}{'plan':>6}{'figure at':>11}{'sentences':>11}{'hedging':>9}")
    for c in chapters:
        first = "none" if c.figure is None else str(c.figure)
        numbers = f"{c.words:7}{c.most:6}{first:>11}{c.sentences:11}{len(c.hedging):9}"
        print(f"{c.page:30}{numbers}")
        if "--sentences" in sys.argv[1:]:
            print("".join(f"    {sentence}\n" for sentence in c.hedging), end="")
    words, every = sum(c.words for c in chapters), sum(c.sentences for c in chapters)
    hedging = sum(len(c.hedging) for c in chapters)
    print(f"{'all':30}{words:7}{sum(c.most for c in chapters):6}{'':11}{every:11}{hedging:9}")
    print(f"share of sentences that hedge: {hedging / every:.1%}")


if __name__ == "__main__":
    main()
