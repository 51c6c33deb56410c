"""Encoders of transformers: CLIP, SigLIP, SigLIP 2, DINOv2 and others, by folder or hub name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoTokenizer
from transformers.utils import logging

from conceptnb.embeddings.encoders.encoder import Encoder, Pictures, as_pillow
from conceptnb.embeddings.encoders.hub import asked_once

_UNUSED = ("logit_scale", "logit_bias", "position_ids", "mask_token")
"""Weights that embeddings do not depend on, which files may lack."""


class TransformersEncoder(Encoder):
    """A model of transformers: its image and text features, or the pooled output of its image."""

    def image_features(self, inputs: Any) -> torch.Tensor:
        """Vectors (n, dimension) of what the image processor returns."""
        if hasattr(self.model, "get_image_features"):
            return _vector(self.model.get_image_features(**inputs))
        return _vector(self.model(**inputs))

    def text_features(self, inputs: Any) -> torch.Tensor:
        """Vectors (n, dimension) of what the tokenizer returns."""
        return _vector(self.model.get_text_features(**inputs))


def _vector(output: Any) -> torch.Tensor:
    """Return the one vector per input in what a model returns, (n, dimension)."""
    for name in ("image_embeds", "pooler_output"):
        if not isinstance(output, torch.Tensor) and hasattr(output, name):
            output = getattr(output, name)
    return output.flatten(1)


@dataclass(frozen=True)
class _Preparation:
    """A model's own image processor; images that are not RGB are made so where it does not."""

    processor: Any

    def __call__(self, images: Pictures) -> Any:
        pictures = as_pillow(images)
        if not getattr(self.processor, "do_convert_rgb", False):
            pictures = [picture.convert("RGB") for picture in pictures]
        return self.processor(images=pictures, return_tensors="pt")


@dataclass
class _Tokenizer:
    """A model's own tokenizer, loaded when the first text asks for it."""

    of: str
    family: str
    longest: int
    _loaded: Any = None

    def __call__(self, texts: Sequence[str]) -> Any:
        if self._loaded is None:
            try:
                self._loaded = AutoTokenizer.from_pretrained(self.of)
            except (OSError, ValueError, KeyError, TypeError) as error:
                said = " ".join(str(error).split())[:160]
                raise ValueError(f"{self.of} has no tokenizer that can be read ({said})") from None
        # SigLIP was trained on texts padded to the full length, without a mask.
        padding: Any = "max_length" if "siglip" in self.family else True
        return self._loaded(
            list(texts), padding=padding, truncation=True, max_length=self.longest,
            return_tensors="pt",
        )  # fmt: skip


def from_transformers(name: str, source: str) -> Encoder:
    """Return the encoder of a folder that transformers saved, or of a name on its hub.

    Parameters
    ----------
    name : str
        A folder with ``config.json``, ``preprocessor_config.json`` and weights, or ``owner/name``.
    source : str
        Where the weights are from.

    Raises
    ------
    ValueError
        If the model gives no one vector per image, lacks weights or the configuration of its
        images, needs code of its own, or a file is damaged.
    """
    hub = contextlib.nullcontext() if Path(name).is_dir() else asked_once(name)
    with hub, _quiet():
        with _in_one_line(name, "config.json"):
            config = AutoConfig.from_pretrained(name)
        with _in_one_line(name, "preprocessor_config.json"):
            processor = AutoImageProcessor.from_pretrained(name)
        with _in_one_line(name, "model.safetensors"):
            model, loading = _class_of(config).from_pretrained(
                name, dtype=torch.float32, output_loading_info=True
            )
    _check_loaded(name, loading)
    images_alone = not hasattr(model, "get_image_features")
    if images_alone and getattr(model, "main_input_name", "") != "pixel_values":
        raise ValueError(f"{name} is {config.model_type}, which embeds no images")
    text = getattr(config, "text_config", config)
    longest = int(getattr(text, "max_position_embeddings", 77))
    tokenize = None
    if hasattr(model, "get_text_features"):
        tokenize = _Tokenizer(name, config.model_type, longest)
    found = TransformersEncoder(
        name, source, model.eval(), _Preparation(processor), tokenize,
        _about(config, processor, None if tokenize is None else longest),
    )  # fmt: skip
    try:
        found.dimension  # noqa: B018 - computed once, on a grey image
    except (AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} is {config.model_type}, which gives no one vector per image ({error}): take a "
            "model with pooled image features, such as CLIP, SigLIP or DINOv2"
        ) from None
    return found


def _class_of(config: Any) -> Any:
    """Return the class to load: one whose projection `AutoModel` would leave out, or that one."""
    named = (config.architectures or [""])[0]
    return getattr(transformers, named) if named.endswith("WithProjection") else AutoModel


def _check_loaded(name: str, loading: Mapping[str, Any]) -> None:
    """Refuse a model some of whose weights would be random."""
    missing = sorted(key for key in loading["missing_keys"] if not key.endswith(_UNUSED))
    if missing:
        raise ValueError(
            f"{name} has no weights for {missing[0]}"
            f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}, which would be random:"
            " is it a checkpoint of this model?"
        )
    if loading.get("mismatched_keys"):
        raise ValueError(f"{name}: weights and config.json differ in {loading['mismatched_keys']}")


def _about(config: Any, processor: Any, context: int | None) -> dict[str, Any]:
    """Return what a report says of an encoder's configuration."""
    vision = getattr(config, "vision_config", config)
    size = getattr(processor, "crop_size", None) or getattr(processor, "size", None)
    return {
        "activation": getattr(vision, "hidden_act", "as the model's"),
        "pixels": dict(size) if isinstance(size, Mapping) else str(size),
        "mean": tuple(getattr(processor, "image_mean", None) or ()),
        "std": tuple(getattr(processor, "image_std", None) or ()),
        "interpolation": str(getattr(processor, "resample", "")),
        "resizing": "crop" if getattr(processor, "do_center_crop", False) else "squash",
        "context": context,
        "tokenizer": "its own" if context is not None else "none",
    }


@contextlib.contextmanager
def _in_one_line(name: str, file: str) -> Iterator[None]:
    """Turn what transformers raises into one line that names folder and file."""
    try:
        yield
    except (ValueError, SafetensorError, KeyError, TypeError, RuntimeError, ImportError) as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{name}: {file} is damaged, of another layout, or needs code of its own ({said})"
        ) from None
    except OSError as error:
        if not Path(name).is_dir():
            raise
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{name} cannot be read ({said}): does it have {file}?") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from reporting what is checked here."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
