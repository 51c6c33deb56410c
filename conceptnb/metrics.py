"""Import path kept for other tools: scores live in `conceptnb.core.scores`."""

from conceptnb.core.scores import mcc, r2

__all__ = ["mcc", "r2"]
