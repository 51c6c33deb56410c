"""Bases of three clusters, for tests of coordinates in which clusters are alike."""

import numpy as np
import torch

from conceptnb.learning.data import stack

CENTRES = np.array([[0.0, 0.0], [4.0, 1.0], [-1.0, 5.0]])


def islands(maps, rng, rows=3000, spread=0.1):
    """Draw z from three clusters of one covariance; x is affine on each, with the given maps."""
    cluster = np.repeat([0, 1, 2], rows // 3)
    z = CENTRES[cluster] + spread * rng.normal(size=(len(cluster), 2))
    own = (z - CENTRES[cluster])[:, None] @ np.asarray(maps)[cluster].transpose(0, 2, 1)
    order = rng.permutation(len(z))
    return z[order], (3 * CENTRES[cluster] + own[:, 0])[order], cluster[order]


def as_stack(x):
    """Half of the rows again as an environment, for a stack must have one."""
    labels = np.repeat([0, 1], [len(x), len(x) // 2])
    return stack([np.concatenate([x, x[::2]])], labels, dtype=torch.float64)
