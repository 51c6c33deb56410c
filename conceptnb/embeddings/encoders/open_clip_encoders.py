"""Encoders of open_clip: by architecture and tag, from its hub, a folder, or a file of weights."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import open_clip
import torch
from open_clip.factory import (
    convert_state_dict,
    convert_to_custom_text_state_dict,
    load_checkpoint,
)
from open_clip.model import build_model_from_openai_state_dict
from open_clip.pretrained import (
    download_pretrained,
    download_pretrained_from_hf,
    get_pretrained_cfg,
    list_pretrained_tags_by_model,
)
from open_clip.transform import PreprocessCfg, image_transform_v2

from conceptnb.common.downloads import fetch
from conceptnb.embeddings.encoders.encoder import Encoder, Pictures, as_pillow
from conceptnb.embeddings.encoders.hub import asked_once
from conceptnb.embeddings.encoders.state_dicts import Weights, read_weights

CONFIG = "open_clip_config.json"
UNTRAINED = "untrained"
"""In place of a tag: the architecture with random weights, as a control."""

_PREPROCESSING = ("mean", "std", "interpolation", "resize_mode")
_NOT_EMBEDDING = ("logit_scale", "logit_bias", "position_ids")  # that embeddings do not depend on
_SUFFIXES = (".safetensors", ".bin", ".pth", ".pt")
_KNOWN_FILES = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "model.safetensors",
    "pytorch_model.bin",
)


class OpenClipEncoder(Encoder):
    """A model with the interface of open_clip: ``encode_image`` and ``encode_text``."""

    def image_features(self, inputs: Any) -> torch.Tensor:
        """Vectors (n, dimension) of pixels."""
        return self.model.encode_image(inputs)

    def text_features(self, inputs: Any) -> torch.Tensor:
        """Vectors (n, dimension) of tokens."""
        return self.model.encode_text(inputs)


@dataclass(frozen=True)
class _Preparation:
    """The transform of open_clip that a configuration describes, as a function of many images."""

    config: PreprocessCfg

    @cached_property
    def transform(self) -> Callable[[Any], torch.Tensor]:
        return image_transform_v2(self.config, is_train=False)

    def __call__(self, images: Pictures) -> torch.Tensor:
        return torch.stack([self.transform(image) for image in as_pillow(images)])


@dataclass
class _Tokenizer:
    """The tokenizer of an architecture or a folder, fetched when the first text asks for it."""

    of: str
    _loaded: Any = None

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        if self._loaded is None:
            with _quiet(), asked_once(f"the tokenizer of {self.of}"):
                self._loaded = open_clip.get_tokenizer(self.of)
        return self._loaded(list(texts))


def is_architecture(name: str) -> bool:
    """Whether open_clip knows an architecture of this name."""
    return name in open_clip.list_models()


def tags_of(architecture: str) -> list[str]:
    """Return the names of published weights of an architecture."""
    return list_pretrained_tags_by_model(architecture)


def by_tag(architecture: str, tag: str) -> Encoder:
    """Return an architecture with the published weights of a tag, fetched where missing.

    Activation and preprocessing are those of the tag: "ViT-B-32/openai" computes QuickGELU and
    "ViT-B-32/laion2b_s34b_b79k" GELU.

    Raises
    ------
    ValueError
        If open_clip has no such tag, or its weights cannot be fetched.
    """
    name = f"{architecture}/{tag}"
    if tag == UNTRAINED:
        model = _build(architecture, _configured(architecture), {}, seed=0)
        about = _about(model, _configured(architecture))
        return OpenClipEncoder(
            name, "random weights", model, _Preparation(_preprocess(model)),
            _Tokenizer(architecture), about,
        )  # fmt: skip
    tagged = get_pretrained_cfg(architecture, tag)
    if not tagged:
        raise ValueError(_no_tag(architecture, tag))
    config = _configured(architecture)
    config["quick_gelu"] = _quick(config) or bool(tagged.get("quick_gelu"))
    path = _weights_of(name, tagged)
    model = _build(architecture, config, tagged)
    weights = read_weights(path)
    if weights.by_openai or weights.activation:
        _fill(model, weights, name)
    else:  # as open_clip does for its own tags, which interpolates some position embeddings
        load_checkpoint(model, str(path))
    source = "OpenAI's weights" if tag == "openai" else f"open_clip's weights {tag}"
    return OpenClipEncoder(
        name, source, model, _Preparation(_preprocess(model)), _Tokenizer(architecture),
        _about(model, config),
    )  # fmt: skip


def _weights_of(name: str, tagged: Mapping[str, Any]) -> Path:
    """Fetch the weights of a tag: from an address that says their checksum, or from the hub.

    OpenAI's own addresses do, so that what is used is what was published.
    """
    checksum = re.search(r"/([0-9a-f]{64})/[^/]+$", tagged.get("url") or "")
    if checksum:
        file = f"{name.replace('/', '-')}.pt"
        try:
            return fetch(tagged["url"], checksum[1], name=file)
        except OSError as error:  # a file that differs is a ValueError
            if isinstance(error, PermissionError) or error.errno == errno.ENOSPC:
                raise
    with asked_once(name):
        return Path(download_pretrained(tagged))


def from_hub(repository: str) -> Encoder:
    """Return the encoder of a repository on the hub that has an ``open_clip_config.json``."""
    name = f"hf-hub:{repository}"
    with asked_once(name):
        config_file = Path(download_pretrained_from_hf(repository, filename=CONFIG))
        weights = Path(download_pretrained_from_hf(repository))
    return _from_config(config_file, weights, name, f"the hub's {repository}")


def from_folder(folder: Path) -> Encoder:
    """Return the encoder of a folder with an ``open_clip_config.json`` and a file of weights."""
    found = [folder / name for name in _KNOWN_FILES if (folder / name).is_file()]
    others = [
        p for p in sorted(folder.iterdir()) if p.suffix in (".safetensors", ".bin", ".pth", ".pt")
    ]
    if not found and len(others) != 1:
        named = ", ".join(path.name for path in others) or "none"
        raise ValueError(
            f"{folder} needs one file of weights, such as {_KNOWN_FILES[0]}; it has {named}"
        )
    name = f"local-dir:{folder}"
    return _from_config(folder / CONFIG, (found or others)[0], name, f"the folder {folder.name}")


def _from_config(config_file: Path, weights: Path, name: str, source: str) -> Encoder:
    try:
        content = json.loads(config_file.read_text(encoding="utf-8"))
        config, given = dict(content["model_cfg"]), dict(content.get("preprocess_cfg", {}))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ValueError(
            f"{config_file} is no configuration of open_clip ({type(error).__name__}: {error}): it "
            "needs model_cfg, and preprocess_cfg with mean and std"
        ) from None
    if missing := [key for key in ("mean", "std") if key not in given]:
        raise ValueError(
            f"{config_file} does not say how pixels are normalised: add {' and '.join(missing)} to "
            "its preprocess_cfg, as the model was trained"
        )
    model = _build(str(config_file), config, given)
    _fill(model, read_weights(weights), str(weights))
    return OpenClipEncoder(
        name.removeprefix("local-dir:"), source, model, _Preparation(_preprocess(model)),
        _Tokenizer(name), _about(model, config),
    )  # fmt: skip


def from_file(path: Path, architecture: str | None) -> Encoder:
    """Return the encoder of a file of weights.

    Parameters
    ----------
    architecture : str, optional
        "ARCHITECTURE", or "ARCHITECTURE/TAG" for weights trained as those of a tag were. OpenAI's
        own files need none: their shapes say it.

    Raises
    ------
    ValueError
        If the architecture is not given or unknown, or the weights are of another one.
    """
    weights = read_weights(path)
    source = f"the local checkpoint {path.name}"
    if architecture is None:
        if not weights.by_openai:
            raise ValueError(
                f"{path} does not say which architecture it is of: give architecture= "
                "(--architecture), such as ViT-B-32, ViT-B-32-quickgelu, ViT-B-32/openai or "
                "small-vit"
            )
        return _by_openai(weights, source)
    name, _, tag = architecture.partition("/")
    if not is_architecture(name):
        raise ValueError(f"architecture={architecture!r} {unknown(name)}")
    if tag and not get_pretrained_cfg(name, tag):
        raise ValueError(_no_tag(name, tag))
    config = _configured(name)
    tagged = get_pretrained_cfg(name, tag) if tag else _shared_by_tags(name)
    config["quick_gelu"] = _quick(config) or bool(tagged.get("quick_gelu") and tag)
    model = _build(name, config, tagged)
    about = _about(model, config)
    if weights.activation not in (None, about["activation"]) and "timm" not in about["activation"]:
        raise ValueError(
            f"{path} was trained with {weights.activation}, and architecture={architecture!r} "
            f"computes {about['activation']}: give {_other_activation(name)}"
        )
    _fill(model, weights, str(path), architecture)
    notes = []
    if not tag and not weights.activation:
        _ask_for_activation(name, path)
        notes = _unsaid(name, path)
    return OpenClipEncoder(
        path.stem, source, model, _Preparation(_preprocess(model)), _Tokenizer(name), about, notes
    )


def unknown(name: str) -> str:
    """Return what is said of a name that is no architecture, with those most like it."""
    import difflib  # noqa: PLC0415 - for a message alone

    like = difflib.get_close_matches(name, open_clip.list_models(), 4, 0.5)
    return f"is no architecture of open_clip{': did you mean ' + ', '.join(like) if like else ''}"


def _no_tag(architecture: str, tag: str) -> str:
    known = ", ".join(tags_of(architecture)) or "none"
    return f"open_clip has no weights {tag!r} of {architecture}; it has: {known}"


def _by_openai(weights: Weights, source: str) -> Encoder:
    """Build what OpenAI's own files hold, whose shapes say the architecture."""
    try:
        sizes = {
            key: torch.tensor(0) for key in ("input_resolution", "context_length", "vocab_size")
        }
        model = build_model_from_openai_state_dict(weights.state | sizes, cast_dtype=torch.float32)
    except (RuntimeError, KeyError, ValueError) as error:
        said = " ".join(str(error).split())[:120]
        raise ValueError(f"{weights.path} is not complete ({said}): fetch it again") from None
    _fill(model.float().eval(), weights, str(weights.path))  # it was built in half precision
    config = PreprocessCfg(size=model.visual.image_size)
    about = _about(model, {"quick_gelu": True}, config)
    tokenize = open_clip.SimpleTokenizer(context_length=model.context_length)
    return OpenClipEncoder(weights.path.stem, source, model, _Preparation(config), tokenize, about)


def _configured(architecture: str) -> dict[str, Any]:
    return deepcopy(open_clip.get_model_config(architecture))


def _quick(config: Mapping[str, Any]) -> bool:
    return bool(config.get("quick_gelu", False))


def _shared_by_tags(architecture: str) -> Mapping[str, Any]:
    """Return the preprocessing that all published weights of an architecture share."""
    found = [get_pretrained_cfg(architecture, tag) for tag in tags_of(architecture)]
    kinds = {tuple(map(str, (one.get(key) for key in _PREPROCESSING))) for one in found}
    if len(kinds) > 1:
        raise ValueError(
            f"architecture={architecture!r} does not say how images are prepared, for published "
            f"weights differ: give {architecture}/TAG, with TAG one of "
            f"{', '.join(tags_of(architecture))}"
        )
    return found[0] if found else {}


def _ask_for_activation(architecture: str, path: Path) -> None:
    """Refuse an architecture whose published weights have both activations."""
    tags: dict[bool, list[str]] = {True: [], False: []}
    for tag in tags_of(architecture):
        tags[bool(get_pretrained_cfg(architecture, tag).get("quick_gelu"))].append(tag)
    if all(tags.values()):
        raise ValueError(
            f"{path} does not say its activation, and published weights of {architecture} have "
            f"both: give architecture={architecture}/{tags[False][0]} if it was trained with GELU, "
            f"and {architecture}/{tags[True][0]} if with QuickGELU, as OpenAI's were"
        )


def _unsaid(architecture: str, path: Path) -> list[str]:
    """Return a note where neither the file nor published weights say how images are prepared."""
    if tags_of(architecture):
        return []
    return [
        f"{path.name} does not say how images are prepared, and no published weights of "
        f"{architecture} do: open_clip's defaults are taken."
    ]


def _other_activation(architecture: str) -> str:
    plain = architecture.removesuffix("-quickgelu")
    return plain if plain != architecture else f"{architecture}-quickgelu"


def _build(
    name: str, config: dict[str, Any], preprocess: Mapping[str, Any], seed: int = 0
) -> open_clip.CLIP:
    """Build the model of a configuration, with random weights, in evaluation mode."""
    given = {key: preprocess[key] for key in (*_PREPROCESSING, "fill_color") if key in preprocess}
    registered = f"conceptnb {name}"  # for open_clip builds by name alone
    from open_clip import factory  # noqa: PLC0415 - its register of configurations

    factory._MODEL_CONFIGS[registered.replace("/", "-")] = config
    try:
        with _quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = open_clip.create_model(
                registered, pretrained_text=False, force_preprocess_cfg=given
            )
    except (TypeError, KeyError, AssertionError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:160]
        raise ValueError(f"{name}: open_clip cannot build this configuration ({said})") from None
    finally:
        del factory._MODEL_CONFIGS[registered.replace("/", "-")]
    return model.eval()


def _fill(model: Any, weights: Weights, where: str, architecture: str | None = None) -> None:
    """Put weights into a model; ValueError unless names and shapes are exactly the model's."""
    state = convert_state_dict(model, dict(weights.state))
    if "positional_embedding" in state and not hasattr(model, "positional_embedding"):
        state = convert_to_custom_text_state_dict(state)
    own = model.state_dict()

    def matters(name: str) -> bool:
        return not name.endswith(_NOT_EMBEDDING)

    wrong = [f"no {name}" for name in own if name not in state and matters(name)]
    wrong += [
        f"{name}, which the model lacks" for name in state if name not in own and matters(name)
    ]
    wrong += [
        f"{name} of shape {tuple(state[name].shape)}, and the model's is {tuple(own[name].shape)}"
        for name in own
        if name in state and matters(name) and state[name].shape != own[name].shape
    ]
    if wrong:
        of = f"of architecture={architecture!r}" if architecture else "of this configuration"
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise ValueError(f"{where} holds no weights {of}: it has {wrong[0]}{more}")
    kept = {name: state[name] for name in own if name in state and matters(name)}
    if bad := [name for name, value in kept.items() if not torch.isfinite(value.float()).all()]:
        raise ValueError(
            f"{where} holds NaN or infinite weights, such as in {bad[0]}: fetch it again"
        )
    model.load_state_dict(kept, strict=False)


def _preprocess(model: Any) -> PreprocessCfg:
    return PreprocessCfg(**model.visual.preprocess_cfg)


def _about(
    model: Any, config: Mapping[str, Any], preprocess: PreprocessCfg | None = None
) -> dict[str, Any]:
    """Return what a report says of an encoder's configuration."""
    prepared = preprocess or _preprocess(model)
    timm = config.get("vision_cfg", {}).get("timm_model_name")
    text = config.get("text_cfg", {})
    return {
        "activation": f"as timm's {timm}" if timm else "QuickGELU" if _quick(config) else "GELU",
        "pixels": prepared.size,
        "mean": tuple(prepared.mean),
        "std": tuple(prepared.std),
        "interpolation": prepared.interpolation,
        "resizing": prepared.resize_mode,
        "context": text.get("context_length", getattr(model, "context_length", 77)),
        "tokenizer": text.get("hf_tokenizer_name", "CLIP's byte pairs"),
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep open_clip from saying what is checked here, such as that weights are random."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
