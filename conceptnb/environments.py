"""Import path kept for other tools: environments live in `conceptnb.core.design`."""

from conceptnb.core.design import EnvironmentDesign, paper_design

__all__ = ["EnvironmentDesign", "paper_design"]
