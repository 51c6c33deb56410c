"""Weights from files, without running any code that a file may hold.

safetensors, checkpoints of torch, and archives of TorchScript such as OpenAI's own downloads. A
file is known by its content and not by its name.
"""

from __future__ import annotations

import collections
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

_NO_WEIGHTS = ("input_resolution", "context_length", "vocab_size", "attn_mask")
"""Buffers that OpenAI's own files have beside the weights."""
_STORAGES = {
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "BoolStorage": torch.bool,
}
_RUNS = "reading it would run code that it holds. Where you trust it, keep the weights alone"


@dataclass(frozen=True)
class Weights:
    """The tensors of a file by name, and what else it says of the model."""

    path: Path
    state: dict[str, torch.Tensor]
    activation: str | None = None
    """"QuickGELU" or "GELU" where the file says it, as the code in a TorchScript archive does."""
    by_openai: bool = False
    """Whether it is laid out as OpenAI's own files: a CLIP model, its sizes, QuickGELU."""


def read_weights(path: Path) -> Weights:
    """Read a file of weights.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file; if it is damaged, holds no weights, or would run code.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: give a file of weights, or another name")
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(b"version https://git-lfs"):
        raise ValueError(
            f"{path} is a pointer of Git LFS and no weights: `git lfs pull` fetches it"
        )
    if start[8:9] == b"{":
        return _described(path, _safetensors(path))
    if not zipfile.is_zipfile(path):
        if start[:2] == b"PK":
            raise ValueError(f"{path} is damaged (its end is missing): fetch or make it again")
        return _described(path, _checkpoint(path))
    with zipfile.ZipFile(path) as archive:
        if any("/code/" in name for name in archive.namelist()):
            return _torchscript(path, archive)
    return _described(path, _checkpoint(path))


def _described(
    path: Path, found: dict[str, torch.Tensor], activation: str | None = None
) -> Weights:
    """Return weights without what is no weight, and say whether they are laid out as OpenAI's."""
    if all(name.startswith("module.") for name in found):
        found = {name.removeprefix("module."): value for name, value in found.items()}
    by_openai = "input_resolution" in found and "visual.conv1.weight" in found
    state = {name: value for name, value in found.items() if name not in _NO_WEIGHTS}
    return Weights(path, state, "QuickGELU" if by_openai else activation, by_openai)


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged ({error}): fetch or make it again") from None


def _checkpoint(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of what `torch.save` wrote, which may be a whole training's state."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "GLOBAL" in str(error) or "Unsupported" in str(error):
            raise ValueError(_converting(path, "torch.load", "weights_only=False)")) from None
        raise ValueError(f"{path} holds no weights that torch can read: fetch it again") from None
    except (RuntimeError, EOFError, KeyError, ValueError, OSError) as error:
        said = " ".join(str(error).split())[:120]
        raise ValueError(f"{path} is damaged ({said}): fetch or make it again") from None
    for key in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{path} holds {type(content).__name__} and no weights by name")
    other = [name for name, value in content.items() if not isinstance(value, torch.Tensor)]
    if other:
        raise ValueError(f"{path}: {other[0]!r} is no tensor; save the model's state_dict alone")
    return content


def _converting(path: Path, read: str, rest: str) -> str:
    """Return why a file is refused, with the command that makes weights of it."""
    comma = ", " if rest.startswith("weights") else ""
    return (
        f'{path}: {_RUNS}: python -c "import torch; from safetensors.torch import save_file; '
        f"save_file({read}('{path}'{comma}{rest}, 'weights.safetensors')\""
    )


class _Held:
    """An object of a TorchScript archive: its attributes, and none of its code."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def tensors(self, prefix: str = "") -> dict[str, torch.Tensor]:
        """Return all tensors below, by the names that they have in a ``state_dict``."""
        found: dict[str, torch.Tensor] = {}
        for name, value in vars(self).items():
            if isinstance(value, _Held):
                found |= value.tensors(f"{prefix}{name}.")
            elif isinstance(value, torch.Tensor):
                found[prefix + name] = value
        return found


class _Attributes(pickle.Unpickler):
    """Reads the objects of a TorchScript archive as attributes; anything else is refused."""

    def __init__(self, archive: zipfile.ZipFile, root: str, path: Path) -> None:
        super().__init__(archive.open(f"{root}/data.pkl"))
        self._archive, self._root, self._path = archive, root, path

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a class or a function of the archive."""
        if module.startswith("__torch__"):
            return type(name, (_Held,), {})
        allowed: dict[tuple[str, str], Callable[..., Any]] = {
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch.jit._pickle", "restore_type_tag"): lambda value, _: value,
            ("torch", "device"): lambda *_: None,
        }
        allowed |= {
            ("torch.jit._pickle", f"build_{kind}list"): lambda value: value
            for kind in ("int", "double", "bool", "tensor")
        }
        if (module, name) in allowed:
            return allowed[module, name]
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> torch.Tensor:
        """Return a storage as a flat tensor."""
        _, dtype, key, _, count = pid
        raw = self._archive.read(f"{self._root}/data/{key}")
        if not raw:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(bytearray(raw), dtype=dtype)[:count]


def _tensor(
    storage: torch.Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> torch.Tensor:
    return torch.as_strided(storage, size, stride, offset).clone()


def _torchscript(path: Path, archive: zipfile.ZipFile) -> Weights:
    root = archive.namelist()[0].split("/")[0]
    try:
        module = _Attributes(archive, root, path).load()
        found = module.tensors()
        code = b"".join(
            archive.read(name) for name in archive.namelist() if name.endswith(".py")
        ).decode("utf-8", "replace")
    except (
        pickle.UnpicklingError,
        zipfile.BadZipFile,
        KeyError,
        AttributeError,
        TypeError,
    ) as error:
        said = _converting(path, "torch.jit.load", ").state_dict()")
        raise ValueError(f"{said} (it holds {error})") from None
    says = "QuickGELU" if "QuickGELU" in code else "GELU" if "torch.gelu(" in code else None
    return _described(path, found, says)
