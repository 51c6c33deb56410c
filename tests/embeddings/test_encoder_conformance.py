"""Encoders with random weights against the pipelines of open_clip and transformers themselves."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

pytest.importorskip("open_clip")
import open_clip
import transformers
from open_clip.constants import IMAGENET_MEAN, IMAGENET_STD, INCEPTION_MEAN, INCEPTION_STD

from conceptnb.embeddings.clip import load_encoder

WORDS = ("[PAD]", "</s>", "a", "red", "ball", "by", "the", "sea", "[UNK]", "tiny", "blue")
TEXTS = ["a red ball", "A tiny BLUE ball by the sea", "sea"]
OPENAI = {"mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]}
SIGLIP = {
    "mean": list(INCEPTION_MEAN), "std": list(INCEPTION_STD), "resize_mode": "squash",
    "interpolation": "bicubic",
}  # fmt: skip
TEXT = {"context_length": 12, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
VIT = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
WORDS_TEXT = TEXT | {"vocab_size": len(WORDS), "hf_tokenizer_name": "here"}


def timm(name, **given):
    return {"timm_model_name": name, "timm_model_pretrained": False, "image_size": 64} | given


OPEN_CLIP = {
    "ViT": (VIT, TEXT, OPENAI, {}),
    "ViT, QuickGELU": (VIT, TEXT, OPENAI, {"quick_gelu": True}),
    "ViT, longest side and filled": (
        VIT, TEXT, OPENAI | {"resize_mode": "longest", "fill_color": 7}, {},
    ),
    "ViT, not square": (VIT | {"image_size": [32, 48]}, TEXT, OPENAI, {}),
    "ResNet": (
        VIT | {"layers": [1, 1, 1, 1], "patch_size": None, "image_size": 64}, TEXT, OPENAI, {},
    ),
    "ResNet, QuickGELU": (
        VIT | {"layers": [1, 1, 1, 1], "patch_size": None, "image_size": 64}, TEXT, OPENAI,
        {"quick_gelu": True},
    ),
    "CLIPA": (
        VIT | {"no_ln_pre": True, "pool_type": "avg", "final_ln_after_pool": True},
        TEXT | {"pool_type": "last", "no_causal_mask": True}, OPENAI | {"resize_mode": "squash"},
        {},
    ),
    "CoCa": (
        VIT | {"attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True},
        TEXT | {"embed_cls": True, "output_tokens": True}, OPENAI,
        {"custom_text": True, "multimodal_cfg": TEXT | {"attn_pooler_heads": 2}},
    ),
    "SigLIP": (
        timm("vit_tiny_patch16_224", image_size=224, timm_pool="map", timm_proj="none"),
        WORDS_TEXT | {"width": 192, "no_causal_mask": True, "proj_bias": True, "pool_type": "last",
                      "tokenizer_kwargs": {"clean": "canonicalize"}},
        SIGLIP, {"embed_dim": 192, "custom_text": True, "init_logit_bias": -10},
    ),
    "SigLIP 2": (
        timm("vit_tiny_patch16_224", image_size=224, timm_pool="map", timm_proj="none"),
        WORDS_TEXT | {"width": 192, "no_causal_mask": True, "proj_bias": True, "pool_type": "last",
                      "tokenizer_kwargs": {"clean": "canonicalize"}, "norm_kwargs": {"eps": 1e-6},
                      "act_kwargs": {"approximate": "tanh"}},
        SIGLIP, {"embed_dim": 192, "custom_text": True, "init_logit_bias": -10},
    ),
    "MobileCLIP": (
        timm("fastvit_t8", timm_pool="avg", timm_proj=None), TEXT | {"no_causal_mask": True},
        {"mean": [0.0] * 3, "std": [1.0] * 3, "interpolation": "bilinear"},
        {"custom_text": True, "embed_dim": 768},
    ),
    "EVA": (
        timm("eva02_tiny_patch14_224", image_size=224, timm_pool="token", timm_proj="linear"),
        TEXT, OPENAI, {"custom_text": True},
    ),
    "ConvNeXt": (
        timm("convnext_atto", timm_pool="", timm_proj="linear"), TEXT,
        {"mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD)}, {},
    ),
}  # fmt: skip
"""By name: configuration of images, of texts, of preprocessing, and of the whole."""


def pictures():
    """Images of several sizes and modes."""
    rng = np.random.default_rng(0)
    found = []
    for mode, size in [
        ("RGB", (40, 70)), ("L", (90, 33)), ("RGBA", (64, 64)), ("P", (31, 50)), ("1", (20, 64)),
        ("CMYK", (150, 60)), ("LA", (5, 9)),
    ]:  # fmt: skip
        noise = rng.integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
        image = Image.fromarray(noise)
        if mode in ("RGBA", "LA"):
            image.putalpha(Image.fromarray(rng.integers(0, 256, size[::-1], dtype=np.uint8)))
        found.append(image.convert(mode))
    return found


def words_tokenizer(folder):
    tokens = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", eos_token="</s>"
    )
    fast.save_pretrained(folder)


def save_open_clip(folder, name, seed=1):
    """Write a folder with a small model of open_clip, random weights in no ordinary scale."""
    vision, text, preprocess, rest = OPEN_CLIP[name]
    config = {"embed_dim": 48, "vision_cfg": vision, "text_cfg": text} | rest
    content = {"model_cfg": config, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(content))
    if "hf_tokenizer_name" in text:
        words_tokenizer(folder)
    torch.manual_seed(seed)
    model = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    if name == "CoCa":  # open_clip leaves it as memory happens to be, NaN at times
        torch.nn.init.normal_(model.text_decoder.text_projection, std=0.05)
    state = {
        key: value.clone() if "num_batches" in key or "running_var" in key or value.ndim == 0
        else value + 0.05 * torch.randn_like(value)
        for key, value in model.state_dict().items()
        if value.is_floating_point()
    }  # fmt: skip
    state |= {k: v.clone() for k, v in model.state_dict().items() if k not in state}
    save_file(state, folder / "open_clip_model.safetensors")


def largest(ours, theirs):
    """Largest difference, relative to the length of the embedding."""
    theirs = np.asarray(theirs, dtype=float)
    gaps = np.linalg.norm(ours - theirs, axis=1) / np.linalg.norm(theirs, axis=1)
    return float(gaps.max())


@pytest.mark.parametrize("name", OPEN_CLIP)
def test_a_folder_of_open_clip_embeds_as_open_clip_does(name, tmp_path):
    save_open_clip(tmp_path, name)
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tmp_path}")
    tokenize = open_clip.get_tokenizer(f"local-dir:{tmp_path}")
    encoder, images = load_encoder(tmp_path), pictures()
    with torch.inference_mode():
        model.eval()
        seen = model.encode_image(torch.stack([transform(image) for image in images]))
        read = model.encode_text(tokenize(TEXTS))
    assert largest(encoder.embed_images(images), seen) < 1e-5
    assert largest(encoder.embed_texts(TEXTS), read) < 1e-5
    one_by_one = [encoder.embed_images([image])[0] for image in images]
    assert largest(np.stack(one_by_one), seen) < 1e-5


VISION = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
LANGUAGE = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "vocab_size": len(WORDS), "max_position_embeddings": 12, "bos_token_id": 1, "eos_token_id": 1,
    "pad_token_id": 0,
}  # fmt: skip
SMALL_CROP = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
SQUASHED = {"size": {"height": 32, "width": 32}}
BOTH = {"text_config": LANGUAGE, "vision_config": VISION}
TRANSFORMERS = {
    "CLIP": ("CLIPModel", BOTH | {"projection_dim": 24}, "CLIPImageProcessor", SMALL_CROP),
    "CLIP, images alone": (
        "CLIPVisionModelWithProjection", VISION | {"projection_dim": 24}, "CLIPImageProcessor",
        SMALL_CROP,
    ),
    "SigLIP": (
        "SiglipModel", BOTH | {"text_config": LANGUAGE | {"projection_size": 32}},
        "SiglipImageProcessor", SQUASHED,
    ),
    "SigLIP 2": (
        "Siglip2Model",
        {"text_config": LANGUAGE | {"projection_size": 32},
         "vision_config": {k: v for k, v in VISION.items() if k != "image_size"}
         | {"num_patches": 16}},
        "Siglip2ImageProcessor", {"patch_size": 8, "max_num_patches": 16},
    ),
    "DINOv2": ("Dinov2Model", VISION, "BitImageProcessor", SMALL_CROP),
    "DINOv2 with registers": (
        "Dinov2WithRegistersModel", VISION | {"num_register_tokens": 2}, "BitImageProcessor",
        SMALL_CROP,
    ),
    "DINOv3": ("DINOv3ViTModel", VISION, "DINOv3ViTImageProcessor", SQUASHED),
    "ViT": ("ViTModel", VISION, "ViTImageProcessor", SQUASHED),
    "ConvNeXt V2": (
        "ConvNextV2Model", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
        "ConvNextImageProcessor", {"size": {"shortest_edge": 64}},
    ),
}  # fmt: skip


def save_transformers(folder, name):
    """Write a folder with a small model of transformers, random weights and a tokenizer."""
    kind, config, processor, sizes = TRANSFORMERS[name]
    torch.manual_seed(0)
    of = getattr(transformers, kind)
    model = of(of.config_class(**config))
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.1 * torch.randn_like(value))
    model.save_pretrained(folder)
    getattr(transformers, processor)(**sizes).save_pretrained(folder)
    words_tokenizer(folder)
    return model.eval()


def vector(found):
    if isinstance(found, torch.Tensor):
        return found
    found = found.image_embeds if hasattr(found, "image_embeds") else found.pooler_output
    return found.flatten(1)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_folder_of_transformers_embeds_as_transformers_does(name, tmp_path):
    model = save_transformers(tmp_path, name)
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    encoder, images = load_encoder(tmp_path), pictures()
    with torch.inference_mode():
        seen = []
        for image in images:  # one by one, as a pipeline does
            as_it_is = getattr(processor, "do_convert_rgb", False)
            picture = image if as_it_is else image.convert("RGB")
            inputs = processor(images=picture, return_tensors="pt")
            embed = getattr(model, "get_image_features", model)
            seen.append(vector(embed(**inputs))[0])
    assert largest(encoder.embed_images(images), torch.stack(seen)) < 1e-5
    if not hasattr(model, "get_text_features"):
        with pytest.raises(ValueError, match="images alone"):
            encoder.embed_texts(TEXTS)
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    padding = {"padding": True}
    if "siglip" in model.config.model_type:  # as the pipeline for zero-shot classification
        padding = {"padding": "max_length", "max_length": 12}
    with torch.inference_mode():
        read = vector(model.get_text_features(**tokenizer(TEXTS, return_tensors="pt", **padding)))
    assert largest(encoder.embed_texts(TEXTS), read) < 1e-5
