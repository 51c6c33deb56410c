"""CLIP: small stand-ins trained here, OpenAI's models by name, embeddings at scale (Appendix D)."""

from conceptnb.embeddings.arithmetic import move, nearest, unit, value_means
from conceptnb.embeddings.clip.clip_models import SMALL_NAMES
from conceptnb.embeddings.clip.clip_training import ClipTraining, Cycle, TrainingPlan
from conceptnb.embeddings.clip.image_embedding import embed_images, embed_rendered
from conceptnb.embeddings.clip.images_and_captions import (
    TOLERANCE,
    accuracies,
    best_captions,
    caption_environment,
    environments_from_captions,
    text_agreement,
    vague_caption,
    zero_shot,
)
from conceptnb.embeddings.clip.loading import load_encoder
from conceptnb.embeddings.clip.small_clip import (
    SMALL_KINDS,
    SMALL_SIZE,
    WEIGHTS,
    CaptionTokenizer,
    create_small_model,
)
