"""The command line: ``conceptnb`` or ``python -m conceptnb``.

Commands are declared in ``commands.toml``, and the studies of ``conceptnb reproduce``, which one
runner computes, in ``studies.toml``. A module is imported when its command is called, so that
``conceptnb --help`` needs no torch.
"""

import argparse
import errno
import importlib
import importlib.metadata
import os
import re
import sys
import tomllib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from conceptnb import __version__
from conceptnb.results.registry import STUDIES, refuse, user_path


@dataclass(frozen=True)
class _Command:
    """One command: the words one types, the module that runs, one line of help, its options."""

    words: str
    module: str
    help: str
    options: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def run(self, words: Sequence[str]) -> int:
        module = importlib.import_module(self.module)
        parser = argparse.ArgumentParser(prog=f"conceptnb {self.words}", description=self.help)
        parser.error = refuse  # type: ignore[method-assign]
        for name, given in self.options.items():
            kind = {"type": _TYPES[given["type"]]} if "type" in given else {}
            parser.add_argument(name, **given | kind)
        return module.run(parser, words)


@dataclass(frozen=True)
class _Reproduce(_Command):
    """``conceptnb reproduce NAME``: a study, which the runner computes."""

    def run(self, words: Sequence[str]) -> int:
        runner = importlib.import_module(self.module)
        return runner.reproduce(self.words.split()[-1], words)


_TYPES = {"path": user_path, "int": int, "float": float}
_DAMAGED = ("SafetensorError", "UnpicklingError", "BadZipFile", "EOFError")
"""What readers of weights and checkpoints raise, without naming the file."""
_FETCH = {"requests", "urllib3", "urllib", "httpx", "huggingface_hub"}
_FETCHING = ("Failed to download", "We couldn't connect to")
_ABOUT = "Concept-based representation learning: the package under the book."
_DECLARED = tomllib.loads(
    (files("conceptnb.commands") / "commands.toml").read_text(encoding="utf-8")
)

COMMANDS: tuple[_Command, ...] = (
    *(_Command(name, **command) for name, command in _DECLARED.items()),
    *(
        _Reproduce(f"reproduce {name}", "conceptnb.results.runner", study["help"])
        for name, study in STUDIES.items()
    ),
)


def main(arguments: Sequence[str] | None = None, commands: Sequence[_Command] = COMMANDS) -> int:
    """Run one command, by default that of the process, and return its exit status.

    It is 0 for success, 2 where the command was refused with one line, 130 where interrupted, and
    1 for what was not foreseen. ``CONCEPTNB_DEBUG=1`` shows the traceback of any error.
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
    except KeyboardInterrupt:
        print(f"conceptnb {command.words}: interrupted; finished work is kept", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("CONCEPTNB_DEBUG"):
            raise
        said, status = _in_one_line(error, rest)
        print(f"conceptnb {command.words}: {said}", file=sys.stderr)
        return status


def _in_one_line(error: Exception, words: Sequence[str]) -> tuple[str, int]:
    """Return what is said of an error, and the exit status: 2 if it was to be expected, else 1."""
    said = " ".join(str(error).split()) or type(error).__name__
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


class _Parser(argparse.ArgumentParser):
    """A parser that refuses in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists what there is\n")


def _parser_of_words(commands: Sequence[_Command]) -> argparse.ArgumentParser:
    """Return the parser that recognises commands by their words and loads none of them."""
    top = _Parser(prog="conceptnb", description=_ABOUT)
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
