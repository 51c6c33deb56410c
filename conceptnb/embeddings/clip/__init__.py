"""CLIP: small towers trained here, real ones by name, embeddings at scale (Appendix D).

The small towers are stand-ins trained on rendered images; they are not OpenAI's
models, which load by name (``ViT-B-32``, ``RN101``) where their weights can be had.
"""

from conceptnb.embeddings.clip.clip_training import PLANS, Cycle, Trainer, TrainingPlan
from conceptnb.embeddings.clip.image_embedding import embed
from conceptnb.embeddings.clip.image_encoders import REAL_NAMES, SMALL_NAMES, Tower, load_tower
from conceptnb.embeddings.clip.small import (
    SMALL_KINDS,
    SMALL_SIZE,
    create_small_model,
    save_weights,
    weights_path,
)
from conceptnb.embeddings.clip.text import (
    TextAgreement,
    caption_environment,
    environments_from_captions,
    move,
    nearest_images,
    text_agreement,
    vague_caption,
    value_means,
)
from conceptnb.embeddings.clip.tokenizer import CaptionTokenizer
from conceptnb.embeddings.clip.zeroshot import (
    TOLERANCE,
    accuracies,
    best_captions,
    class_embeddings,
    unit,
    zero_shot,
    zero_shot_all,
)

__all__ = [
    "PLANS",
    "REAL_NAMES",
    "SMALL_KINDS",
    "SMALL_NAMES",
    "SMALL_SIZE",
    "TOLERANCE",
    "CaptionTokenizer",
    "Cycle",
    "TextAgreement",
    "Tower",
    "Trainer",
    "TrainingPlan",
    "accuracies",
    "best_captions",
    "caption_environment",
    "class_embeddings",
    "create_small_model",
    "embed",
    "environments_from_captions",
    "load_tower",
    "move",
    "nearest_images",
    "save_weights",
    "text_agreement",
    "unit",
    "vague_caption",
    "value_means",
    "weights_path",
    "zero_shot",
    "zero_shot_all",
]
