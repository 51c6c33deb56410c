"""Whether two embeddings see the same samples alike, as wholes: CKA and mutual neighbours."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conceptnb.common.validation import Array, as_count, as_points
from conceptnb.embeddings.arithmetic import unit


def linear_cka(X: ArrayLike, Y: ArrayLike) -> float:
    """Return the linear centred kernel alignment (CKA) of two embeddings of the same samples.

    ‖Yᵀ X‖² / (‖Xᵀ X‖ ‖Yᵀ Y‖) of centred columns, in Frobenius norms (Kornblith et al. 2019, Section
    3). 1 if Y is X up to a rotation, a shift and a scale. X (n, d1) and Y (n, d2) have their rows
    in the same order; ValueError if n differs or all rows of one are the same. Independent white
    embeddings have about √(d1 d2) / n.
    """
    moved = [Z - Z[0] for Z in _checked(X, Y)]
    scaled = [Z / np.abs(Z).max() for Z in moved]  # products neither overflow nor vanish
    A, B = (Z - Z.mean(axis=0) for Z in scaled)
    within = np.linalg.norm(A.T @ A) * np.linalg.norm(B.T @ B)
    return min(float(np.linalg.norm(B.T @ A) ** 2 / within), 1.0)


def mutual_neighbours(X: ArrayLike, Y: ArrayLike, k: int = 10) -> float:
    """Return the mean share of a sample's k nearest neighbours that two embeddings have in common.

    Nearest by cosine similarity, the sample itself left out (Huh et al. 2024, "The platonic
    representation hypothesis"). About k / (n - 1) by chance; ties are broken arbitrarily. X (n, d1)
    and Y (n, d2) have their rows in the same order; ValueError if n differs or is not above k, if
    all rows of one are the same, or one is zero.
    """
    pair = _checked(X, Y)
    if as_count(k, "k") >= len(pair[0]):
        raise ValueError(f"k={k} has to be below the number of rows, {len(pair[0])}")
    for name, Z in zip("XY", pair, strict=True):
        if not Z.any(axis=1).all():
            raise ValueError(f"{name} has a row of zeros, which has no cosine: remove that sample")
    first, second = (_near(unit(Z / np.abs(Z).max(axis=1, keepdims=True)), k) for Z in pair)
    return float((first & second).sum() / first.sum())


def _checked(X: ArrayLike, Y: ArrayLike) -> list[Array]:
    pair = [as_points(X, "X"), as_points(Y, "Y")]
    if len(pair[0]) != len(pair[1]):
        raise ValueError(f"X has {len(pair[0])} rows and Y {len(pair[1])}; embed the same samples")
    for name, Z in zip("XY", pair, strict=True):
        if len(np.unique(Z, axis=0)) < 2:
            raise ValueError(f"{name} is constant: its {len(Z)} rows are all the same")
    return pair


def _near(Z: NDArray[np.floating], k: int) -> NDArray[np.bool_]:
    """Mark the k nearest others (n, n) of each unit vector (n, dimensions)."""
    similarity = Z @ Z.T
    np.fill_diagonal(similarity, -np.inf)
    found = np.zeros(similarity.shape, dtype=bool)
    np.put_along_axis(found, np.argpartition(-similarity, k - 1, axis=1)[:, :k], True, axis=1)
    return found
