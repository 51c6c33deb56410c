"""Stand-ins: toy corpora and the small language models trained on them."""
