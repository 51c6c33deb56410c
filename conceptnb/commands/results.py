"""``conceptnb results``: the computed tables, where they come from, and whether they hold."""

import argparse

import click

from conceptnb.commands.options import Command


@click.command(
    "results",
    cls=Command,
    help="the computed tables: where they come from, and whether they are current",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def results(words: tuple[str, ...]) -> int:
    """Hand the words to the catalogue."""
    from conceptnb.results import catalogue  # noqa: PLC0415 - what only a run needs

    parser = argparse.ArgumentParser(prog="conceptnb results", description=results.help)
    parser.error = _refuse  # type: ignore[assignment]
    parser.add_argument("names", nargs="*", help="tables; all where none is named")
    parser.add_argument("--spread", action="store_true", help="measure how far sampled runs move "
        "between seeds and processors, and keep it")  # fmt: skip
    try:
        return catalogue.run(parser, words)
    except SystemExit as done:  # argparse, of --help
        return int(done.code or 0)


def _refuse(message: str) -> None:
    raise ValueError(f"{message}; --help lists the options")
