"""What the commands that write a report share: its options, and the HTML page."""

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from conceptnb import __version__
from conceptnb.commands.options import PATH, SEED, force, option
from conceptnb.common.files import refuse_output, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Part:
    """A part of a page that is there or not: a file beside this module, and what fills it."""

    template: str
    shown: "Mapping[str, pd.DataFrame]"


def report_options() -> list[click.Parameter]:
    """Return the options of all reports."""
    return [
        option("--out", type=PATH, required=True, metavar="DIR", help="folder to write"),
        option("--seed", type=SEED, default=0, help="of the split and the fits (default 0)"),
        force("the files in --out"),
    ]


def refuse_files(args: SimpleNamespace, files: Sequence[str]) -> None:
    """Refuse a folder in which the files of a report cannot be written."""
    for file in files:
        refuse_output(args.out / file, args.force)


def write_report(
    out: Path,
    files: Sequence[str],
    template: str,
    shown: Mapping[str, "pd.DataFrame | tuple[Figure, str] | Part | str"],
    *,
    warnings: Sequence[str],
    not_yet_said: Sequence[str] | None = None,
    none: str,
    **text: str,
) -> None:
    """Write a report as one HTML file that needs no other, and its code, and say so.

    `shown` fills the `template`: tables, figures with what these show in words, parts, and text;
    `none` is said where there are no warnings; `text` has ``title``, ``lead``, ``code`` and
    ``command``.
    """
    parts = {name: _as_html(what) for name, what in shown.items()}
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in warnings)
    said = f'<ul class="said">{lines}</ul>' if lines else f'<p class="said none">{none}</p>'
    escaped = {key: html.escape(value) for key, value in text.items()}
    body = fill(template, parts)
    page = fill("report.html", escaped, warnings=said, body=body, version=__version__)
    write_text(out / "report.html", page)
    write_text(out / "apply.py", text["code"])
    news = warnings if not_yet_said is None else not_yet_said
    print(*(f"warning: {line}\n" for line in news), sep="", end="")
    print(f"wrote {', '.join(str(out / name) for name in files)}")


def fill(template: str, *given: Mapping[str, str], **more: object) -> str:
    """Return a file beside this module with its $names filled in."""
    file = Path(__file__).with_name(template)
    return Template(file.read_text(encoding="utf-8")).substitute(*given, **more)


def _as_html(what: "pd.DataFrame | tuple[Figure, str] | Part | str") -> str:
    if isinstance(what, Part):
        return fill(what.template, {name: _as_html(one) for name, one in what.shown.items()})
    if isinstance(what, str):
        return html.escape(what)
    return _svg(*what) if isinstance(what, tuple) else _table(what)


def _table(frame: "pd.DataFrame") -> str:
    import pandas as pd  # noqa: PLC0415 - no report, no pandas

    with pd.option_context("display.max_colwidth", None):  # texts are shown whole
        return frame.to_html(
            index=False, border=0, na_rep="–", float_format=lambda x: f"{x + 0.0:.3g}"
        )


def _svg(figure: "Figure", alt: str) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    name = html.escape(alt, quote=True)
    drawn = out.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{name}"', 1)
