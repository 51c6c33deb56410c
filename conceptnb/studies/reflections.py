r"""Sign ambiguity: what the contrastive loss cannot tell where the base falls into islands.

An atom that one environment alone conditions on enters (86) only as
:math:`(\langle a, z\rangle - b)^2`. On a base of several components that lie apart, reflecting the
learned valuation about its plane on one component alone leaves every log-odds, and so every loss,
exactly as it was. Assumption 4 excludes such atoms; the authors' environments for Tables 1 and 7
have them. Here the truth chooses the signs: a control, and no estimator.
"""

from __future__ import annotations

import itertools

import numpy as np

from conceptnb.core.problems import Problem
from conceptnb.core.validation import Array
from conceptnb.learning.fitting import ConceptFit

__all__ = ["with_true_signs"]


def with_true_signs(
    problem: Problem, fit: ConceptFit, index: int, Z: Array, learned: Array
) -> Array:
    """Reflect learned valuations on base components, where that brings them nearer to the truth.

    Parameters
    ----------
    problem : Problem
    fit : ConceptFit
        Of several problems with known targets.
    index : int
        Which of them `problem` is.
    Z : array of shape (samples, d_z)
        Base latents.
    learned : array of shape (samples, n)
        Their learned valuations.

    Returns
    -------
    array of shape (samples, n)
        As `learned`, with the same log-odds, but for atoms that a single environment conditions
        on: these are reflected about their plane on the components of the base for which the
        correlation with the true valuation is highest.
    """
    beta, gamma = (c[index].detach().cpu().numpy() for c in fit.model.head.coefficients())
    truth = problem.valuations(Z)
    component = problem.base.component_log_density(Z).argmax(axis=1)
    turns = list(itertools.product([1.0, -1.0], repeat=component.max()))
    turned = learned.copy()
    for k, environments in enumerate(problem.design.M.T > 0):
        if environments.sum() != 1:
            continue
        e = int(environments.argmax())
        plane = gamma[k, e] / (2 * beta[k, e])
        # All components turned at once change no correlation: the first one stays.
        gap = learned[:, k] - plane
        ways = [plane + np.array([1.0, *turn])[component] * gap for turn in turns]
        turned[:, k] = max(ways, key=lambda h: abs(np.corrcoef(h, truth[:, k])[0, 1]))
    return turned
