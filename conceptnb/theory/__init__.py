r"""Identifiability, run: the proofs of Section 5 and Appendix A as programs.

The modules, in the order in which a reader needs them:

- `nonlinear_map`, `minima`, `observables`: an instance, and what a learner may see of it;
- `standard_form`, `theorem1`: Theorem 1's proof, one function per step;
- `theorem2`: the shorter proof with 2n + 1 environments;
- `read_off`: what the true log-odds of a single point determine;
- `legendre`: recovery without minima, from the poles of V(w) = w·G;
- `finite_samples`: log-odds of a linear mixing, fitted with standard errors;
- `two_sample`, `counterexamples`: what goes wrong without each assumption;
- `competitors`: for each design and atom, a second model with the same data.
"""

from conceptnb.theory.observables import Instance, Observables
from conceptnb.theory.standard_form import StandardForm, standard_form
from conceptnb.theory.theorem1 import evaluate_valuations, recover
from conceptnb.theory.theorem2 import recover_linear

__all__ = [
    "Instance",
    "Observables",
    "StandardForm",
    "evaluate_valuations",
    "recover",
    "recover_linear",
    "standard_form",
]
