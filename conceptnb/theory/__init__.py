r"""Identifiability, run: the proofs of Section 5 and Appendix A as programs.

The modules, in the order in which a reader needs them:

- `embedding`, `observables`: a ground truth, and what a learner may see of it;
- `standard_form`, `optimise`, `theorem1`: Theorem 1's proof, one function a step;
- `theorem2`: the shorter proof with 2n + 1 environments;
- `instances`: random instances, and how well they are recovered;
- `estimated`: the same with log ratios estimated from samples;
- `counterexamples`, `two_sample`: what goes wrong without each assumption.
"""

from __future__ import annotations

from conceptnb.theory.observables import Observables, World
from conceptnb.theory.standard_form import StandardForm, standard_form
from conceptnb.theory.theorem1 import evaluate, recover
from conceptnb.theory.theorem2 import recover_linear

__all__ = [
    "Observables",
    "StandardForm",
    "World",
    "evaluate",
    "recover",
    "recover_linear",
    "standard_form",
]
