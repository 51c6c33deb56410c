"""Rays o + t d against the four shapes of 3D Shapes, in closed form.

Every shape stands on the floor z = 0, centred on the z axis, at scale 1. Functions take (n, 3)
arrays, broadcast over rows, and return the distance t of the first hit in front of the origin
(infinite where there is none) and the outward unit normal there.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Hit = tuple[Float32s, Float32s]

CUBE_SIDE = 1.0
CYLINDER_RADIUS = 0.5
CYLINDER_HEIGHT = 1.1
BALL_RADIUS = 0.6
ELLIPSOID_RADII = (0.44, 0.44, 0.72)


def _ellipsoid_hit(origin: Float32s, direction: Float32s, radii: tuple[float, float, float]) -> Hit:
    """First hit with the ellipsoid of the given semi-axes that touches the floor."""
    origin, direction = np.broadcast_arrays(origin, direction)
    r = np.asarray(radii, dtype=np.float32)
    # Space divided by the semi-axes: the smaller root of a quadratic hits the unit sphere.
    o = (origin - np.array([0, 0, r[2]], dtype=np.float32)) / r
    d = direction / r
    a = np.einsum("ij,ij->i", d, d)
    b = np.einsum("ij,ij->i", o, d)
    c = np.einsum("ij,ij->i", o, o) - 1
    discriminant = b * b - a * c
    t = (-b - np.sqrt(np.maximum(discriminant, 0))) / a
    t = np.where((discriminant > 0) & (t > 0), t, np.inf).astype(np.float32)
    point = o + np.where(np.isfinite(t), t, 0)[:, None] * d
    normal = point / r
    return t, normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)


def _box_hit(origin: Float32s, direction: Float32s, side: float) -> Hit:
    """First hit with the cube of the given side, by the slab method."""
    origin, direction = np.broadcast_arrays(origin, direction)
    low = np.array([-side / 2, -side / 2, 0], dtype=np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        t_low = (low - origin) / direction
        t_high = (low + np.float32(side) - origin) / direction
    near = np.fmin(t_low, t_high)
    enter, leave = near.max(axis=1), np.fmax(t_low, t_high).min(axis=1)
    t = np.where((enter <= leave) & (enter > 0), enter, np.inf).astype(np.float32)
    axis = near.argmax(axis=1)
    rows = np.arange(len(axis))
    normal = np.zeros_like(near)
    normal[rows, axis] = -np.sign(direction[rows, axis])
    return t, normal


def _cylinder_hit(origin: Float32s, direction: Float32s, radius: float, height: float) -> Hit:
    """First hit with the upright cylinder: the side where it is met first, else the lid."""
    origin, direction = np.broadcast_arrays(origin, direction)
    o, d = origin[:, :2], direction[:, :2]
    a = np.maximum(np.einsum("ij,ij->i", d, d), 1e-12)
    b = np.einsum("ij,ij->i", o, d)
    c = np.einsum("ij,ij->i", o, o) - radius**2
    discriminant = b * b - a * c
    t_side = (-b - np.sqrt(np.maximum(discriminant, 0))) / a
    z = origin[:, 2] + t_side * direction[:, 2]
    on_side = (discriminant > 0) & (t_side > 0) & (z >= 0) & (z <= height)
    with np.errstate(divide="ignore", invalid="ignore"):
        t_lid = (height - origin[:, 2]) / direction[:, 2]
        xy = o + t_lid[:, None] * d
        on_lid = (t_lid > 0) & (np.einsum("ij,ij->i", xy, xy) <= radius**2)
    # A ray from above meets the lid before the side; one from below, from inside, after it.
    on_lid &= direction[:, 2] < 0
    t = np.where(on_lid, t_lid, np.where(on_side, t_side, np.inf)).astype(np.float32)
    normal = np.zeros(direction.shape, dtype=np.float32)
    safe = np.where(on_side, t_side, 0)[:, None]
    normal[:, :2] = np.where(on_lid[:, None], 0, (o + safe * d) / radius)
    normal[:, 2] = on_lid
    return t, normal


SHAPE_HITS: tuple[Callable[[Float32s, Float32s], Hit], ...] = (
    lambda o, d: _box_hit(o, d, CUBE_SIDE),
    lambda o, d: _cylinder_hit(o, d, CYLINDER_RADIUS, CYLINDER_HEIGHT),
    lambda o, d: _ellipsoid_hit(o, d, (BALL_RADIUS,) * 3),
    lambda o, d: _ellipsoid_hit(o, d, ELLIPSOID_RADII),
)
"""One function per shape, in the order of `SHAPE_NAMES`."""
