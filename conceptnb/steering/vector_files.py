"""Files of vectors of the residual stream: safetensors, llama.cpp's control vectors, and others'.

A control vector is a GGUF file of the architecture ``controlvector`` with the keys
``controlvector.model_hint`` and ``controlvector.layer_count`` and a float32 tensor ``direction.N``
for each layer N that is steered. llama.cpp adds it to what layer N, counted from 0, hands on; for
layer 0 it has none.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

_FORMAT = "steps of the residual stream, added to what leaves each layer at strength 1"
_ARCHITECTURE = "controlvector"
_EXTRA = "pip install gguf (the extra conceptnb[smollm])"

Found = tuple[dict[int, np.ndarray], np.ndarray]
"""Steps by layer, and the agreement of each layer, if the file has it."""


def write_safetensors(
    path: str | Path,
    steps: Mapping[int, np.ndarray],
    agreement: np.ndarray,
    metadata: Mapping[str, str],
) -> None:
    """Write steps by layer, and how well the direction of each layer holds on held-out pairs."""
    tensors = {f"step.{k}": torch.tensor(steps[k], dtype=torch.float32) for k in sorted(steps)}
    if agreement.size:
        tensors["agreement"] = torch.as_tensor(agreement)
    save_file(tensors, str(path), {"format": _FORMAT} | dict(metadata))


def write_gguf(path: str | Path, steps: Mapping[int, np.ndarray], model_hint: str) -> None:
    """Write steps by layer as a control vector.

    Raises
    ------
    ImportError
        If the package gguf is not installed.
    ValueError
        If layer 0 is steered.
    """
    if 0 in steps:
        raise ValueError("layer 0 is steered, and llama.cpp has no control vector for it")
    writer = _gguf().GGUFWriter(str(path), _ARCHITECTURE)
    writer.add_string(f"{_ARCHITECTURE}.model_hint", model_hint)
    writer.add_uint32(f"{_ARCHITECTURE}.layer_count", len(steps))
    for layer in sorted(steps):
        writer.add_tensor(f"direction.{layer}", np.asarray(steps[layer], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_vector(path: str | Path) -> Found:
    """Read any of these files, by what it holds; see `ResidualVector.load`."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file: give the path of a vector")
    with file.open("rb") as opened:
        start = opened.read(4)
    if start == b"GGUF":
        return _read_gguf(file), np.empty(0)
    if start[:2] == b"PK":  # torch.save writes a zip
        return _read_torch(file), np.empty(0)
    return _read_safetensors(file)


def _read_safetensors(file: Path) -> Found:
    try:
        with safe_open(str(file), framework="np") as opened:
            held = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{file} holds no vector: {error}") from None
    steps = _numbered(held, "step.")
    if not steps:
        raise ValueError(f"{file} holds no vector of the residual stream, but {sorted(held)}")
    return steps, held.get("agreement", np.empty(0))


def _read_gguf(file: Path) -> dict[int, np.ndarray]:
    gguf = _gguf()
    try:
        reader = gguf.GGUFReader(str(file))
        kind = reader.get_field("general.architecture").contents()
    except Exception as error:  # the reader's own, of many kinds
        raise ValueError(f"{file} cannot be read as GGUF: {error}") from None
    if kind != _ARCHITECTURE:
        raise ValueError(f"{file} is of the architecture {kind}, and no control vector")
    held = {tensor.name: np.array(tensor.data) for tensor in reader.tensors}
    steps = _numbered(held, "direction.")
    if not steps or 0 in steps:
        raise ValueError(f"{file} holds no direction.N with N from 1, but {sorted(held)}")
    return steps


def _read_torch(file: Path) -> dict[int, np.ndarray]:
    way = "save what steering-vectors learned by torch.save(vector.layer_activations, path)"
    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        said = str(error).split(". ")[0].splitlines()[0]
        raise ValueError(f"{file} is not read, as it could run code ({said}): {way}") from None
    if isinstance(held, torch.Tensor) and held.dim() == 2:  # as hidden-directions has it
        held = {k: row for k, row in enumerate(held) if row.any()}
    good = isinstance(held, dict) and all(
        type(k) is int and isinstance(v, torch.Tensor) for k, v in held.items()
    )
    if not good or not held:
        raise ValueError(f"{file} holds no vectors by layer: {way}")
    return {k: v.detach().float().reshape(-1).numpy() for k, v in held.items()}


def _numbered(held: Mapping[str, Any], prefix: str) -> dict[int, np.ndarray]:
    """Return float32 copies of the arrays whose names are a prefix and a layer."""
    names = {name: name.removeprefix(prefix) for name in held if name.startswith(prefix)}
    return {int(k): np.asarray(held[n], np.float32) for n, k in names.items() if k.isdecimal()}


def _gguf() -> Any:
    try:
        import gguf  # noqa: PLC0415 - an optional package
    except ImportError:
        raise ImportError(f"control vectors need the package gguf: {_EXTRA}") from None
    return gguf
