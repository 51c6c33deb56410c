"""Which studies there are, and what is known of their options before one is imported."""

import argparse
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn


def refuse(message: str) -> NoReturn:
    """Raise ValueError: what a command's parser does where its own would print its usage."""
    raise ValueError(f"{message}; --help lists the options")


def user_path(text: str) -> Path:
    """Return the path that is meant by an argument."""
    if not text:
        raise argparse.ArgumentTypeError("give a path")
    return Path(text).expanduser()


STUDIES: dict[str, dict[str, Any]] = tomllib.loads(
    (files("conceptnb.results") / "studies.toml").read_text(encoding="utf-8")
)
"""What ``conceptnb reproduce`` offers: name -> ``module``, ``help`` and, of options, ``bounds``,
``choices``, ``paths`` and ``folders``.
"""
