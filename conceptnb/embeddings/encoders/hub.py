"""The hub of Hugging Face, which is asked once and not five times where there is no network."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from huggingface_hub import constants

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@contextlib.contextmanager
def asked_once(what: str) -> Iterator[None]:
    """Fetch from the hub, or take what was fetched before where the hub cannot be reached.

    Raises
    ------
    OSError
        In one line, where something can be had neither from the hub nor from its cache.
    """
    loggers = [logging.getLogger(name) for name in ("huggingface_hub", "root")]
    levels, before = [logger.level for logger in loggers], constants.HF_HUB_OFFLINE
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    constants.HF_HUB_OFFLINE = before or not _reachable()
    try:
        yield
    except (OSError, RuntimeError) as error:
        said = " ".join(str(error).split())[:120]
        raise OSError(
            f"{what}: We couldn't connect to the hub, or it has nothing of this name ({said})"
        ) from None
    finally:
        constants.HF_HUB_OFFLINE = before
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reachable() -> bool:
    if any(os.environ.get(name) for name in _PROXIES):
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True
