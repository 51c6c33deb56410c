"""Files from the network: resumed where they broke off, and used only with the right checksum."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def fetch(
    url: str, sha256: str, *, name: str, folder: str | os.PathLike[str] | None = None
) -> Path:
    """Fetch a file once, check it and return its path.

    A broken download goes on where it stopped, and a file that is there and right is not fetched
    again.

    Parameters
    ----------
    url, sha256 : str
        Where it lies, and the checksum that it must have.
    name : str
        Of the file here.
    folder : path, optional
        Where it is kept, by default the user's cache.

    Raises
    ------
    ValueError, OSError
        If what arrived does not have the checksum, and is then removed; if it cannot be fetched.
    """
    import pooch  # noqa: PLC0415 - only downloads need it

    fetched = pooch.retrieve(
        url,
        known_hash=f"sha256:{sha256}",
        fname=name,
        path=folder or pooch.os_cache("conceptnb"),
        downloader=Resuming(name),
    )
    return Path(fetched)


class Resuming:
    """Downloads for pooch, whose own downloader starts again; keeps what has arrived before."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        """Download a file, from where it broke off."""
        import requests  # noqa: PLC0415 - comes with pooch
        from tqdm.auto import tqdm  # noqa: PLC0415

        partial = Path(output_file).parent / f"{self.name}.part"
        have = partial.stat().st_size if partial.exists() else 0
        headers = {"Range": f"bytes={have}-"} if have else {}
        with requests.get(url, headers=headers, stream=True, timeout=30) as response:
            # A range that cannot be had means that nothing is missing; the checksum decides.
            if response.status_code != requests.codes.requested_range_not_satisfiable:
                response.raise_for_status()
                if response.status_code != requests.codes.partial_content:
                    have = 0  # the server ignored the range and sends everything
                total = have + int(response.headers.get("Content-Length", 0))
                bar = tqdm(total=total, initial=have, unit="B", unit_scale=True, disable=None)
                with partial.open("ab" if have else "wb") as file, bar:
                    for chunk in response.iter_content(1 << 16):
                        file.write(chunk)
                        bar.update(len(chunk))
        partial.replace(output_file)
