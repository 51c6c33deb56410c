"""The command line: ``conceptnb`` or ``python -m conceptnb``.

A command is one line in `COMMANDS`. Its module offers ``run(parser, words) -> int`` and is imported
when the command is called, so that ``conceptnb --help`` needs no torch. The studies of
``conceptnb reproduce`` stand in `conceptnb.studies.STUDIES`, and one runner computes them all.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from conceptnb import __version__
from conceptnb.studies import STUDIES


@dataclass(frozen=True)
class _Command:
    """One command: the words one types, the module that runs, one line of help."""

    words: str
    module: str
    help: str

    def run(self, words: Sequence[str]) -> int:
        """Import the module and run it with what was typed after the command."""
        module = importlib.import_module(self.module)
        parser = argparse.ArgumentParser(prog=f"conceptnb {self.words}", description=self.help)
        return module.run(parser, words)


@dataclass(frozen=True)
class _Reproduce(_Command):
    """``conceptnb reproduce NAME``: a study, which the runner computes."""

    def run(self, words: Sequence[str]) -> int:
        """Let the runner compute the study."""
        runner = importlib.import_module(self.module)
        return runner.reproduce(self.words.split()[-1], words)


DESCRIPTION = "Concept-based representation learning: the package under the book."

COMMANDS: tuple[_Command, ...] = (
    _Command(
        "train-clip",
        "conceptnb.studies.commands.train_clip",
        "train one of the two small CLIP models on rendered images",
    ),
    _Command(
        "train-language-model",
        "conceptnb.studies.commands.train_language_model",
        "train the small language models of the steering chapters",
    ),
    _Command(
        "embed-sentences",
        "conceptnb.studies.commands.embed_sentences",
        "embed the book's sentences with all-MiniLM-L6-v2",
    ),
    _Command(
        "score",
        "conceptnb.studies.commands.score_answers",
        "score a language model on multiple-choice questions such as TruthfulQA's",
    ),
    _Command(
        "results",
        "conceptnb.studies.catalogue",
        "the computed tables: where they come from, and whether they are current",
    ),
    *(
        _Reproduce(f"reproduce {name}", "conceptnb.studies.runner", line)
        for name, (_, line) in STUDIES.items()
    ),
)


def main(arguments: Sequence[str] | None = None, commands: Sequence[_Command] = COMMANDS) -> int:
    """Run one command, by default that of the process, and return its exit status.

    It is 0 for success, 2 where the command was refused with a message, 130 where interrupted.
    """
    # First the words alone; what follows them belongs to the command's own parser.
    chosen, rest = _parser_of_words(commands).parse_known_args(arguments)
    command: _Command | None = chosen.command
    if command is None:
        if rest:
            chosen.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        chosen.parser.print_help()
        return 0
    try:
        return command.run(rest)
    except (ValueError, OSError, ImportError) as error:
        print(f"conceptnb {command.words}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"conceptnb {command.words}: interrupted; finished work is kept", file=sys.stderr)
        return 130


def _parser_of_words(commands: Sequence[_Command]) -> argparse.ArgumentParser:
    """Return the parser that recognises commands by their words and loads none of them."""
    top = argparse.ArgumentParser(prog="conceptnb", description=DESCRIPTION)
    top.add_argument("--version", action="version", version=f"conceptnb {__version__}")
    top.set_defaults(command=None, parser=top)
    levels = {"": top.add_subparsers(title="commands", metavar="COMMAND")}
    for command in commands:
        *group, last = command.words.split()
        name = " ".join(group)
        if name not in levels:
            inner = levels[""].add_parser(name, help=f"`conceptnb {name} --help` lists them")
            inner.set_defaults(parser=inner)
            levels[name] = inner.add_subparsers(title="commands", metavar="COMMAND")
        leaf = levels[name].add_parser(last, help=command.help, add_help=False)
        leaf.set_defaults(command=command)
    return top
