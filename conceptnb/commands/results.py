"""``conceptnb results``: the computed tables, where they come from, and whether they hold."""

import dataclasses
import shlex
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from conceptnb.commands.options import FINITE, Command, command, option
from conceptnb.commands.reproduce import reproduce

if TYPE_CHECKING:
    from conceptnb.results import Result

BUDGET = 600.0
"""CPU seconds that ``conceptnb results verify`` takes, if nothing else is asked for."""


def _tables() -> click.Argument:
    return click.Argument(["names"], nargs=-1, metavar="[NAME]...")


@command(
    "verify",
    "Compute single runs of tables by the last verified commit and by this tree, on this machine, "
    "compare them, and append what was seen to each table's ledger.",
    _tables(),
    option("--budget", type=FINITE, default=BUDGET, help="CPU seconds of both sides"),
    option("--against", metavar="COMMIT", help="by default the last verified commit"),
    option(
        "--all",
        "everything",
        is_flag=True,
        help="also current tables: a tenth of their strata, each week",
    ),
    option("--whole", is_flag=True, help="with --all: every stratum"),
)
def verify(
    names: tuple[str, ...], budget: float, against: str | None, everything: bool, whole: bool
) -> int:
    """Verify the tables that are named, or all; return 1 where one does not hold."""
    if not budget > 0:
        raise ValueError(f"--budget {budget:g}: give CPU seconds, such as {BUDGET:g}")
    from conceptnb import results as stored  # noqa: PLC0415 - what only a run needs
    from conceptnb.results.verify import verify as held  # noqa: PLC0415 - brings the studies

    return int(
        not held(
            list(names) or stored.names(),
            budget,
            lambda line: print(line, flush=True),
            against=against,
            everything=everything,
            whole=whole,
        )
    )


@command("renew", "Compute again the tables that have moved, each by its command.", _tables())
def renew(names: tuple[str, ...]) -> None:
    """Compute again the tables that have moved, each by the command that its file records."""
    from conceptnb import results as stored  # noqa: PLC0415 - what only a run needs

    for name in names or stored.names():
        table = stored.load(name)
        if table.state()[0] == "moved":
            study, *words = shlex.split(table.command)[2:]
            print(f"{name}: {shlex.join([study, *words])}", flush=True)
            with reproduce.commands[study].make_context(study, words) as ctx:
                ctx.command.invoke(ctx)


class _Results(Command):
    """The list of tables; ``verify`` and ``renew`` in place of a name are commands of their own."""

    def make_context(self, info_name: str | None, args: list[str], *given: Any, **more: Any) -> Any:
        inner = {"verify": verify, "renew": renew}.get(args[0] if args else "")
        if inner is not None:
            return inner.make_context(f"{info_name} {args[0]}", args[1:], *given, **more)
        return super().make_context(info_name, args, *given, **more)


def _list(names: tuple[str, ...], spread: bool) -> int:
    """List the tables, or measure their spread; return 1 where one does not hold."""
    from conceptnb import results as stored  # noqa: PLC0415 - what only a run needs

    chosen = names or stored.names()
    if spread:
        from conceptnb.results.spread import measure_spread  # noqa: PLC0415 - brings the studies

        for name in chosen:
            found = stored.load(name)
            kept = dataclasses.replace(found, spread=measure_spread(found))
            print(f"wrote {stored.save(kept, stored.folder() / f'{name}.json')}", flush=True)
        return 0
    tables = [stored.load(name) for name in chosen]
    for table in tables:
        print(_described(table))
    return int(any(table.state()[0] in ("unverified", "broken") for table in tables))


results = _Results(
    "results",
    callback=_list,
    help="the computed tables: where they come from, and whether they hold; `verify` [NAME]... "
    "computes single runs again, `renew` the tables that have moved",
    params=[
        _tables(),
        option(
            "--spread",
            is_flag=True,
            help="measure how far sampled runs move between seeds and processors, and keep it",
        ),
    ],
)


def _described(result: "Result") -> str:
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
    counted = (("seed", len(result.seeds)), ("run", len(result.runs)))
    sizes = "".join(f"{n:,} {what}{'s' * (n != 1)}, " for what, n in counted if n)
    return (
        f"{result.name}: {state}\n    {result.command}; {sizes}"
        f"{result.cpu_seconds:,.0f} CPU-s on {result.computed.cpu or 'an unrecorded processor'}, "
        f"{age}"
    )
