"""``conceptnb results``: the computed tables, where they come from, and whether they hold."""

import argparse
import dataclasses
import shlex
from collections.abc import Sequence
from datetime import date

from conceptnb import results

BUDGET = 600.0
"""CPU seconds that ``conceptnb results verify`` takes, if nothing else is asked for."""


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """List the tables, verify them, or measure their spread; return 1 where one does not hold."""
    if list(words[:1]) == ["verify"]:
        return _verify(_verify_parser(parser).parse_args(words[1:]))
    if list(words[:1]) == ["renew"]:
        return _renew(words[1:] or results.names())
    args = parser.parse_args(words)
    names = args.names or results.names()
    if args.spread:
        from conceptnb.results.spread import _measure_spread  # noqa: PLC0415 - brings the studies

        for name in names:
            found = results.load(name)
            kept = dataclasses.replace(found, spread=_measure_spread(found))
            print(f"wrote {results.save(kept, results.folder() / f'{name}.json')}", flush=True)
        return 0
    tables = [results.load(name) for name in names]
    for table in tables:
        print(_described(table))
    return int(any(table.state()[0] in ("unverified", "broken") for table in tables))


def _verify_parser(outer: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="conceptnb results verify",
        description="Compute single runs of tables by the last verified commit and by this tree, "
        "on this machine, compare them, and append what was seen to each table's ledger.",
        allow_abbrev=False,
    )
    parser.error = outer.error  # type: ignore[method-assign] # the one line of the command line
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables; by default all")
    parser.add_argument("--budget", type=float, default=BUDGET, help="CPU seconds of both sides")
    parser.add_argument("--against", metavar="COMMIT", help="by default the last verified commit")
    parser.add_argument(
        "--all", action="store_true", help="also current tables: a tenth of their strata, each week"
    )
    parser.add_argument("--whole", action="store_true", help="with --all: every stratum")
    return parser


def _verify(args: argparse.Namespace) -> int:
    from conceptnb.results.verify import verify  # noqa: PLC0415 - brings the studies

    if not args.budget > 0:
        raise ValueError(f"--budget {args.budget:g}: give CPU seconds, such as {BUDGET:g}")
    held = verify(
        args.names or results.names(),
        args.budget,
        lambda line: print(line, flush=True),
        against=args.against,
        everything=args.all,
        whole=args.whole,
    )
    return int(not held)


def _renew(names: Sequence[str]) -> int:
    """Compute again the tables that have moved, each by the command that its file records."""
    from conceptnb.results.runner import reproduce  # noqa: PLC0415 - brings the studies

    for name in names:
        if results.load(name).state()[0] == "moved":
            words = shlex.split(results.load(name).command)[2:]
            print(f"{name}: {shlex.join(words)}", flush=True)
            reproduce(words[0], words[1:])
    return 0


def _described(result: results.Result) -> str:
    """Return two lines on a table: its state and why, and its command, seeds, processor and age.

    A table that a study has computed is compared on other processors only once its spread is known.
    """
    state = ": ".join(result.state())
    if not result.spread and result.command.startswith("conceptnb reproduce"):
        state += f", spread not measured: `conceptnb results --spread {result.name}`"
    try:
        days = (date.today() - date.fromisoformat(result.computed.date)).days
        age = f"{days} day{'s' * (days != 1)} ago"
    except ValueError:
        age = "on an unrecorded day"
    seeds = f"{len(result.seeds)} seed" + ("s" if len(result.seeds) != 1 else "")
    return (
        f"{result.name}: {state}\n    {result.command}; {seeds}, {len(result.runs)} runs, "
        f"{result.cpu_seconds:,.0f} CPU-s on {result.computed.cpu or 'an unrecorded processor'}, "
        f"{age}"
    )
