"""The command line: ``conceptnb`` or ``python -m conceptnb``.

Each command stands in a module of its own, which is imported when the command is called or listed,
and imports what is heavy when it runs: ``conceptnb --help`` needs no torch.
"""

import contextlib
import errno
import importlib
import importlib.metadata
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from conceptnb import __version__

_DAMAGED = ("SafetensorError", "UnpicklingError", "BadZipFile", "EOFError")
"""What readers of weights and checkpoints raise, without naming the file."""
_FETCH = {"requests", "urllib3", "urllib", "httpx", "huggingface_hub"}
_FETCHING = ("Failed to download", "We couldn't connect to")
_INTERRUPTED, _CLOSED = 130, 141  # as a shell has it: 128 and the number of the signal


class LazyGroup(click.Group):
    """A group that imports a command when it is called or listed."""

    def __init__(self, name: str, places: Mapping[str, str], **settings: Any) -> None:
        """`places` names the variable of each command: ``"module:variable"``."""
        super().__init__(name, **settings)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names in their order."""
        return [*self.places, *self.commands]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, or None if there is none of this name."""
        if name not in self.places:
            return super().get_command(ctx, name)
        module, _, variable = self.places[name].partition(":")
        return getattr(importlib.import_module(module), variable)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its whole line of help."""
        names = self.list_commands(ctx)
        found = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl([(name, (one and one.help) or "") for name, one in found])


@click.pass_context
def _help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _say_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"conceptnb {__version__}")
        ctx.exit()


GROUP = LazyGroup(
    "conceptnb",
    {
        "learn": "conceptnb.commands.learn:learn",
        "directions": "conceptnb.commands.directions:directions",
        "steer": "conceptnb.commands.steer:steer",
        "train-clip": "conceptnb.commands.train_clip:train_clip",
        "train-language-model": "conceptnb.commands.train_language_model:train_language_model",
        "embed-sentences": "conceptnb.commands.embed_sentences:embed_sentences",
        "score": "conceptnb.commands.score:score",
        "results": "conceptnb.commands.results:results",
        "reproduce": "conceptnb.commands.reproduce:reproduce",
    },
    invoke_without_command=True,
    callback=_help,
    help="Concept-based representation learning: the package under the book.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            help="Show the version and exit.",
            callback=_say_version,
        )
    ],
)


def main(arguments: Sequence[str] | None = None, group: click.Group = GROUP) -> int:
    """Run one command, by default that of the process, and return its exit status.

    It is 0 for success, 2 where the command was refused with one line, 130 where interrupted, 141
    where whoever reads the output has left, and 1 for what was not foreseen.
    ``CONCEPTNB_DEBUG=1`` shows the traceback of any error.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with group.make_context("conceptnb", [*words]) as ctx:
            status = group.invoke(ctx)
        sys.stdout.flush()
        return status or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing left to flush
        return _CLOSED
    except KeyboardInterrupt:
        said, status = "interrupted; finished work is kept", _INTERRUPTED
    except click.ClickException as error:
        said, status = (
            f"{_in_one_line(error.format_message()).rstrip('.')}; --help lists what there is",
            2,
        )
    except Exception as error:
        if os.environ.get("CONCEPTNB_DEBUG"):
            raise
        said, status = _what_is_said(error, words)
    print(f"{_called(group, words)}: {said}", file=sys.stderr)
    return status


@contextlib.contextmanager
def program(usage: str) -> Iterator[str]:
    """Run what a report's ``apply.py`` does with its one argument, and refuse as a command does.

    `usage` is said where there is not one argument.
    """
    words = sys.argv[1:]
    try:
        if len(words) != 1:
            raise ValueError(usage)
        yield words[0]
    except Exception as error:
        if os.environ.get("CONCEPTNB_DEBUG"):
            raise
        said, status = _what_is_said(error, words)
        print(f"{Path(sys.argv[0]).name}: {said}", file=sys.stderr)
        raise SystemExit(status) from None


def _called(group: click.Group, words: Sequence[str]) -> str:
    """Return the command that was called, as it is typed."""
    found: click.Command | None = group
    called = ["conceptnb"]
    for word in words:
        if not isinstance(found, click.Group) or word not in found.list_commands(_NOWHERE):
            break
        called.append(word)
        try:
            found = found.get_command(_NOWHERE, word)
        except Exception:  # what is said already
            break
    return " ".join(called)


_NOWHERE = click.Context(GROUP)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _what_is_said(error: Exception, words: Sequence[str]) -> tuple[str, int]:
    """Return what is said of an error, and the exit status: 2 if it was to be expected, else 1."""
    said = _in_one_line(str(error)) or type(error).__name__
    files = [word for word in words if "/" in word or Path(word).exists()]
    given = " or ".join(files)
    raised = list(traceback.walk_tb(error.__traceback__))[-1:]
    foreign = not any("conceptnb" in Path(f.f_code.co_filename).parts for f, _ in raised)
    origins = {base.__module__.split(".")[0] for base in type(error).__mro__}
    fetching = bool(origins & _FETCH) or any(word in said for word in _FETCHING)
    named = any(re.search(rf"\b{re.escape(f)}\b", said) for f in files)
    if fetching:  # whatever exists here is not what was looked for
        given = " or ".join(word for word in files if not Path(word).exists())
    if foreign and given and not named:
        said = f"{given}: {said}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{said}: free some space, or name another disk with --out; finished work is kept", 2
    if fetching:
        return f"{said}: this needs a network; a file or folder of your own needs none", 2
    if isinstance(error, MemoryError) or type(error).__name__ == "TerminatedWorkerError":
        return f"{said}: memory ran out; give fewer --jobs, samples or images", 2
    reading = any("weights_only_unpickler" in f.f_code.co_filename for f, _ in raised)
    if type(error).__name__ in _DAMAGED or "PytorchStreamReader" in said or reading:
        written = "I/O error" in said  # by safetensors, which has one error for both
        way = f"{given or 'a file'} is damaged ({said}): fetch or make it again"
        return f"{said}: name another place with --out" if written else way, 2
    if isinstance(error, ModuleNotFoundError) and (extra := _extra_of(str(error.name))):
        said += f": it comes with the extra {extra} (pip install 'conceptnb[{extra}]')"
    if isinstance(error, ValueError | OSError | ImportError):
        return said, 2
    urls = importlib.metadata.metadata("conceptnb").get_all("Project-URL") or [""]
    return (
        f"this is a bug ({type(error).__name__}: {said}); please report it at "
        f"{urls[0].split(', ')[-1]}/issues with what CONCEPTNB_DEBUG=1 shows",
        1,
    )


def _extra_of(module: str) -> str:
    """Return the first extra that brings a module, or nothing."""
    name = module.partition(".")[0].lower()
    for line in importlib.metadata.requires("conceptnb") or []:
        if found := re.match(rf"{name}(\b|_).*extra == .(\w+)", line.lower().replace("-", "_")):
            return found[2]
    return ""
