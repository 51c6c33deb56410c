"""One file per computed table: what is drawn, fitted and scored, and one runner for all."""

from typing import NoReturn


def refuse(message: str) -> NoReturn:
    """Raise ValueError: what a command's parser does where its own would print its usage."""
    raise ValueError(f"{message}; --help lists the options")


STUDIES: dict[str, tuple[str, str]] = {
    "theory": ("theory_tables", "the tables of the chapters on identifiability"),
    "theory-beyond": (
        "theory_beyond_paper",
        "finite samples against their prediction, and recovery from poles",
    ),
    "synthetic": (
        "synthetic_tables",
        "Tables 1 and 7: synthetic identifiability, ours beside the paper's",
    ),
    "limits": (
        "limits_studies",
        "what limits identifiability: studies of one cause at a time, with bounds",
    ),
    "variants": (
        "head_variants",
        "the head of (87) and its loss in several forms, and the number of concepts chosen",
    ),
    "baselines": (
        "baseline_comparison",
        "what a reader would try instead, on the problems of Table 1",
    ),
    "clip": ("clip", "Tables 2 to 5: concept directions in CLIP embeddings of 3D Shapes"),
    "clip-zeroshot": ("clip_zeroshot", "zero-shot accuracy of the two small CLIP models"),
    "neighbours": (
        "components_without_labels",
        "components without labels, and unmixing, on states of the small language models",
    ),
    "steering": (
        "steering_techniques",
        "Table 6 on toy corpora, or on a real language model with --model",
    ),
    "steering-real": (
        "steering_real",
        "Table 6 on SmolLM2-135M-Instruct and TruthfulQA",
    ),
    "real-heads": ("real_heads", "what SmolLM2's heads know of truth, and what it says, steered"),
}
"""What ``conceptnb reproduce`` offers: name -> module of this folder, and a line of help."""
