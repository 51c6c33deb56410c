"""What the commands' options take, and a command whose options take several words."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from conceptnb.common.files import refuse_output

_LAST_SEED = (1 << 32) - 1
_A_PATH = re.compile(r"^[./~]|\.(csv|json|txt|h5|safetensors|pt|pth|bin)$")
_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")


class Several(click.Option):
    """An option that takes all words up to the next option, or may be given again.

    It gives a list, or its default, or None. With `may_be_empty` the option may stand alone, and
    then gives a list of one empty word.
    """

    def __init__(self, *names: str, may_be_empty: bool = False, **given: Any) -> None:
        super().__init__(list(names), multiple=True, callback=self._listed, **given)
        self.may_be_empty, self.otherwise = may_be_empty, given.get("default")

    def _listed(self, ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        return list(value) if value else self.otherwise

    def repeated(self, words: Sequence[str]) -> list[str]:
        """Return words that follow the option, each with the option before it."""
        flag = self.opts[0]
        if not words:
            return [f"{flag}="] if self.may_be_empty else [flag]
        return [f"{flag}={word}" for word in words]


class Command(click.Command):
    """A command that knows the words that were typed, and whose options may be `Several`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; ``ctx.meta["words"]`` keeps them as they are."""
        ctx.meta["words"] = [*args]
        return super().parse_args(ctx, [*self._one_by_one(args)])

    def _one_by_one(self, words: Sequence[str]) -> Iterable[str]:
        several = {p.opts[0]: p for p in self.params if isinstance(p, Several)}
        waiting = list(words)
        while waiting:
            word = waiting.pop(0)
            if word not in several:
                yield word
                continue
            follow = []
            while waiting and (not waiting[0].startswith("-") or _NEGATIVE.match(waiting[0])):
                follow.append(waiting.pop(0))
            yield from several[word].repeated(follow)


class _Type(click.ParamType):
    """A type that refuses by a ValueError of one line, which names the option."""

    name = "text"


class Whole(_Type):
    """Whole numbers within bounds: counts from 1, if nothing else is said."""

    name = "integer"

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        number = click.INT.convert(value, param, ctx)
        if number < self.least or (self.most is not None and number > self.most):
            limits = f"be at least {self.least}"
            if self.most is not None:
                limits = f"lie in [{self.least}, {self.most}]"
            raise ValueError(f"{_flag(param)} must {limits}, got {number}")
        return number


COUNT = Whole()
SEED = Whole(0, _LAST_SEED)


class _Finite(_Type):
    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            raise ValueError(f"{_flag(param)} {number}: give a finite number")
        return number


FINITE = _Finite()


class _UserPath(_Type):
    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not str(value):
            raise ValueError(f"{_flag(param)}: give a path")
        return Path(value).expanduser()


PATH = _UserPath()


class _Folder(_Type):
    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        refuse_output(Path(value) / "x", replace=True, option=_flag(param))
        return str(value)


FOLDER = _Folder()
"""A folder that is written to, and made where it is not there."""


class PathOr(_Type):
    """A path that exists, or one of a few words.

    With `names` any word will do that does not look like a file or folder: names on a hub.
    """

    def __init__(self, *words: str, names: bool = False) -> None:
        self.words, self.names = words, names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word as it was given."""
        given = str(value)
        path = Path(given).expanduser()
        if given in self.words or (given and path.exists()):
            return given
        if given and self.names and not _A_PATH.search(given):
            return given
        words = [*self.words, *(["a name"] if self.names else []), "a path that exists"]
        raise ValueError(f"{_flag(param)} {given} is not there: give {' or '.join(words)}")


class EncoderName(PathOr):
    """An image encoder as `load_encoder` takes it: a path that exists, or a name.

    A bare word is refused here, before torch is imported, unless it is one of a few.
    """

    def __init__(self, *words: str) -> None:
        super().__init__(*words, names=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word as it was given."""
        given = super().convert(value, param, ctx)
        if re.search(r"[/:]", given) or Path(given).exists():
            return given
        if given in self.words or given.removesuffix("-untrained") in self.words:
            return given
        raise ValueError(
            f"{_flag(param)} {given} does not say whose weights: give ARCHITECTURE/TAG such as "
            f"ViT-B-32/openai, OWNER/NAME or hf-hub:OWNER/NAME of the hub, a folder, a file of "
            f"weights, or {', '.join(self.words)}"
        )


class _Existing(_Type):
    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return Path(PathOr().convert(value, param, ctx)).expanduser()


EXISTING = _Existing()
"""A path that exists."""


class _Model(PathOr):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        given = super().convert(value, param, ctx)
        path = Path(given).expanduser()
        # transformers load a model, or an adapter of one (peft)
        held = any((path / name).is_file() for name in ("config.json", "adapter_config.json"))
        if path.is_dir() and not held:
            raise ValueError(f"{_flag(param)} {path} is no model: it has no config.json")
        return given


MODEL = _Model(names=True)
"""A language model: a folder, a file, or a name."""


def _flag(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else "value"


def option(*names: str, **given: Any) -> click.Option:
    """Return an option that takes one word, or is a flag."""
    return click.Option(list(names), **given)


def choice(*words: str) -> click.Choice:
    """Return the type of an option that takes one of a few words."""
    return click.Choice(words)


def force(what: str) -> click.Option:
    """Return the option that replaces what is there."""
    return option("--force", is_flag=True, help=f"replace {what}")


def command(
    name: str, help: str, *params: click.Parameter
) -> Callable[[Callable[..., int | None]], Command]:
    """Return the decorator that makes a command of a function of the options."""
    return lambda function: Command(name, callback=function, help=help, params=list(params))
