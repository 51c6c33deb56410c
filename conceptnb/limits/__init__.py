"""What limits identifiability: studies of one cause at a time, with their bounds (Section 5)."""

from conceptnb.limits.bounds import read_valuations
from conceptnb.limits.cells import Cell, draw, measure, sized_design
from conceptnb.limits.laws import LAWS, sample_law
from conceptnb.limits.report import study_rows, study_table
from conceptnb.limits.studies import SEEDS, STUDIES, Study, run_cell, run_study

__all__ = [
    "LAWS",
    "SEEDS",
    "STUDIES",
    "Cell",
    "Study",
    "draw",
    "measure",
    "read_valuations",
    "run_cell",
    "run_study",
    "sample_law",
    "sized_design",
    "study_rows",
    "study_table",
]
