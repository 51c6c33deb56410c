"""Data of many problems of one shape, stacked so that they can be fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from conceptnb.common.validation import as_points


@dataclass(frozen=True)
class Stack:
    """Observations of D problems whose environments have the same sizes (Problem 1).

    Parameters
    ----------
    x : tensor of shape (D, N, d_x)
        Observations; row i belongs to the same environment in every problem.
    environment : int64 tensor of shape (N,)
        0 for the base distribution, e for concept conditional environment e.
    partner : int64 tensor of shape (N,)
        The environment whose classifier a row trains in (88): its own, and for base
        rows one of the m environments in turn, as in the authors' code.
    log_prior : tensor of shape (m + 1,)
        Log share of each environment among all rows.
    log_ratio : tensor of shape (m,)
        Log of an environment's rows over its share of the base's rows.
    targets : bool tensor of shape (m, n), optional
        Which concepts each environment conditions on, the pattern of M in (7), if known.
    """

    x: Tensor
    environment: Tensor
    partner: Tensor
    log_prior: Tensor
    log_ratio: Tensor
    targets: Tensor | None = None

    @property
    def n_problems(self) -> int:
        """Number D of problems."""
        return self.x.shape[0]

    @property
    def n_environments(self) -> int:
        """Number m of concept conditional environments."""
        return len(self.log_ratio)

    @property
    def d_x(self) -> int:
        """Observed dimension."""
        return self.x.shape[2]

    def rows(self, index: Tensor | slice) -> Stack:
        """Return the rows named by `index` of every problem."""
        return replace(
            self,
            x=self.x[:, index],
            environment=self.environment[index],
            partner=self.partner[index],
        )

    def to(self, device: str | torch.device) -> Stack:
        """Move to a device."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        moved = {name: t.to(device) for name, t in tensors.items() if t is not None}
        return replace(self, **moved)

    def split(self, held_out: float = 0.2) -> tuple[Stack, Stack]:
        """Split into training and held-out rows, see :meth:`split_rows`."""
        kept, held = self.split_rows(held_out)
        return self.rows(kept), self.rows(held)

    def split_rows(self, held_out: float = 0.2) -> tuple[Tensor, Tensor]:
        """Return which rows to train on and which to hold out: the last of every environment.

        Within an environment rows are in random order. `held_out` is in (0, 1), the authors' 0.2.
        """
        if not 0 < held_out < 1:
            raise ValueError(f"held_out must lie in (0, 1), got {held_out}")
        kept, held = [], []
        for e in range(self.n_environments + 1):
            rows = torch.nonzero(self.environment == e)[:, 0]
            count = round(len(rows) * held_out)
            if not 0 < count < len(rows):
                raise ValueError(
                    f"environment {e} has {len(rows)} samples: too few to hold out {held_out:.0%}"
                )
            kept.append(rows[: len(rows) - count])
            held.append(rows[len(rows) - count :])
        return torch.cat(kept), torch.cat(held)


def stack(
    observations: Sequence[ArrayLike],
    environment: ArrayLike,
    targets: ArrayLike | None = None,
    *,
    dtype: torch.dtype = torch.float32,
) -> Stack:
    """Stack the observations of several problems with the same environments.

    Rows are sorted by environment and otherwise keep the given order.

    Parameters
    ----------
    observations : sequence of D arrays of shape (N, d_x)
    environment : int array of shape (N,)
        0 for the base, 1 to m for the concept conditional environments, each at least once.
    targets : bool array of shape (m, n), optional
        Which concepts each environment conditions on, if that is known; each concept occurs.
    dtype : torch.dtype
    """
    if len(observations) == 0:
        raise ValueError("observations is empty: give at least one problem")
    labels = check_environment(environment)
    arrays = [as_points(X, f"observations[{i}]") for i, X in enumerate(observations)]
    for i, X in enumerate(arrays):
        if X.shape != (len(labels), arrays[0].shape[1]):
            raise ValueError(
                f"observations[{i}] has shape {X.shape}; all problems of a stack have "
                f"{len(labels)} rows, one per entry of environment, and "
                f"{arrays[0].shape[1]} columns"
            )
    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    base = int((labels == 0).sum())
    partner = labels.copy()
    partner[:base] = np.arange(base) % labels.max() + 1
    counts = np.bincount(labels)
    shares = np.bincount(partner[:base], minlength=len(counts))[1:]
    if shares.min() == 0:
        raise ValueError(
            f"the base distribution has {base} samples for {len(counts) - 1} environments: "
            "give at least one each"
        )
    known = None if targets is None else torch.as_tensor(_check_targets(targets, len(counts) - 1))
    return Stack(
        torch.as_tensor(np.stack(arrays)[:, order], dtype=dtype),
        torch.as_tensor(labels),
        torch.as_tensor(partner),
        torch.as_tensor(np.log(counts / len(labels)), dtype=dtype),
        torch.as_tensor(np.log(counts[1:] / shares), dtype=dtype),
        known,
    )


def check_environment(environment: ArrayLike) -> np.ndarray:
    """Return environment labels as int64, numbered 0 to m without gaps, or say what is wrong."""
    labels = np.asarray(environment)
    if labels.dtype.kind not in "iu":
        raise TypeError(
            f"environment must hold integers, got dtype {labels.dtype}: number the environments, "
            "or name the base by ConceptLearner(base=...)"
        )
    if labels.ndim != 1:
        raise ValueError(f"environment must have one axis, got shape {labels.shape}")
    found = np.unique(labels)
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise ValueError(
            "environment must hold 0 for the base distribution and 1, ..., m for the concept "
            f"conditional environments, each at least once; got the values {found.tolist()}"
        )
    return labels.astype(np.int64)


def _check_targets(targets: ArrayLike, m: int) -> np.ndarray:
    """Return targets as a bool array of shape (m, n) in which every concept occurs."""
    if not np.isin(np.asarray(targets), (0, 1)).all():
        raise ValueError("targets must hold True and False, or 1 and 0, and nothing else")
    mask = np.asarray(targets).astype(bool)
    if mask.ndim != 2 or len(mask) != m:
        raise ValueError(
            f"targets must have shape ({m}, n), one row per environment; got {mask.shape}"
        )
    if not mask.any(axis=0).all():
        raise ValueError(
            "targets has a column without True: no environment conditions on that concept"
        )
    if not mask.any(axis=1).all():
        raise ValueError(
            "targets has a row without True: leave out an environment that conditions on no concept"
        )
    return mask
