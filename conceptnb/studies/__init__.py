"""One file per computed table: what is drawn, fitted and scored, and one runner for all."""

import tomllib
from importlib.resources import files
from typing import Any, NoReturn


def refuse(message: str) -> NoReturn:
    """Raise ValueError: what a command's parser does where its own would print its usage."""
    raise ValueError(f"{message}; --help lists the options")


STUDIES: dict[str, dict[str, Any]] = tomllib.loads(
    (files("conceptnb") / "studies.toml").read_text(encoding="utf-8")
)
"""What ``conceptnb reproduce`` offers: name -> ``module``, ``help`` and, of options, ``bounds``,
``choices`` and ``paths``.
"""
