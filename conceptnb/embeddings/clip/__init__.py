"""CLIP: small models trained here, real ones by name, embeddings at scale (Appendix D).

The small models are stand-ins trained on rendered images; they are not OpenAI's
models, which load by name (``ViT-B-32``, ``RN101``) where their weights can be had.
"""

from conceptnb.embeddings.arithmetic import move, nearest, unit, value_means
from conceptnb.embeddings.clip.caption_environments import (
    caption_environment,
    environments_from_captions,
    text_agreement,
    vague_caption,
)
from conceptnb.embeddings.clip.clip_models import REAL_NAMES, SMALL_NAMES, ClipModel, load_clip
from conceptnb.embeddings.clip.clip_training import PLANS, ClipTraining, Cycle, TrainingPlan
from conceptnb.embeddings.clip.image_embedding import EmbeddedImages, embed_images, embed_rendered
from conceptnb.embeddings.clip.small_clip import (
    SMALL_KINDS,
    SMALL_SIZE,
    WEIGHTS,
    create_small_model,
    save_weights,
)
from conceptnb.embeddings.clip.tokenizer import CaptionTokenizer
from conceptnb.embeddings.clip.zeroshot import (
    TOLERANCE,
    accuracies,
    best_captions,
    class_embeddings,
    zero_shot,
)

__all__ = [
    "PLANS",
    "REAL_NAMES",
    "SMALL_KINDS",
    "SMALL_NAMES",
    "SMALL_SIZE",
    "TOLERANCE",
    "WEIGHTS",
    "CaptionTokenizer",
    "ClipModel",
    "ClipTraining",
    "Cycle",
    "EmbeddedImages",
    "TrainingPlan",
    "accuracies",
    "best_captions",
    "caption_environment",
    "class_embeddings",
    "create_small_model",
    "embed_images",
    "embed_rendered",
    "environments_from_captions",
    "load_clip",
    "move",
    "nearest",
    "save_weights",
    "text_agreement",
    "unit",
    "vague_caption",
    "value_means",
    "zero_shot",
]
