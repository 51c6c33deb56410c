"""``conceptnb results``: the computed tables, where they come from, and whether they hold."""

import argparse
import dataclasses
from collections.abc import Sequence
from datetime import date

from conceptnb import results
from conceptnb.results.provenance import changes

_NAMED = 6  # of the changed modules and files; the rest is counted


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """List the tables, or measure their spread; return 1 where one is stale."""
    args = parser.parse_args(words)
    names = args.names or results.names()
    if args.spread:
        from conceptnb.results.spread import _measure_spread  # noqa: PLC0415 - brings the studies

        for name in names:
            found = results.load(name)
            kept = dataclasses.replace(found, spread=_measure_spread(found))
            print(f"wrote {results.save(kept, results.folder() / f'{name}.json')}", flush=True)
        return 0
    stale = False
    for name in names:
        found = results.load(name)
        changed = changes(found.modules, found.code)
        stale = stale or bool(changed)
        print(_described(found, changed))
    return int(stale)


def _described(result: results.Result, changed: list[str]) -> str:
    """Return two lines on a table: what has changed, and its command, seeds, processor and age.

    A table that a study has computed is compared on other processors only once its spread is known.
    """
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    state = f"STALE: {', '.join(changed[:_NAMED])}{more}" if changed else "current"
    if not result.spread and result.command.startswith("conceptnb reproduce"):
        state += f", spread not measured: `conceptnb results --spread {result.name}`"
    try:
        age = f"{(date.today() - date.fromisoformat(result.computed)).days} days ago"
    except ValueError:
        age = "on an unrecorded day"
    seeds = f"{len(result.seeds)} seed" + ("s" if len(result.seeds) != 1 else "")
    return (
        f"{result.name}: {state}\n    {result.command}; {seeds}, {len(result.runs)} runs, "
        f"{result.cpu_seconds:,.0f} CPU-s on {result.cpu or 'an unrecorded processor'}, {age}"
    )
