"""An analytic renderer of scenes like those of 3D Shapes, whose camera and room are unknown.

Hues enter an image linearly, image = M_floor * floor + M_wall * wall + M_object * object +
highlight, with four masks that depend on scale, shape and orientation only. Their 480 combinations
are traced once (the bank); any of the 480,000 images is then one small matrix product.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import map_coordinates

from conceptnb.common.validation import as_count
from conceptnb.embeddings.shapes3d.factors import (
    ORIENTATIONS,
    SCALES,
    SIZES,
    check_factors,
    hue_to_rgb,
)
from conceptnb.embeddings.shapes3d.geometry import SHAPE_HITS, Float32s

ROOM_HALF_WIDTH = 2.7
CAMERA_DISTANCE = 5.2
CAMERA_HEIGHT = 2.2
LOOK_AT = (0.0, 0.0, 0.7)
FIELD_OF_VIEW = 35.0  # degrees
TO_LIGHT = (-0.65, -0.45, 1.0)
LIGHT_RADIUS = 0.16  # of the light's disc of directions, in radians
AMBIENT_ROOM, DIFFUSE_ROOM = 0.68, 0.32
AMBIENT_OBJECT, DIFFUSE_OBJECT = 0.47, 0.52
SHADOW_DEPTH = 0.48
HIGHLIGHT, SHININESS = 0.55, 28
BOUNDING_RADIUS = 0.9  # of every shape at scale 1, around (0, 0, .6)

_SHADOW_EXTENT = 2.6
_SHADOW_CELLS = 208
_LIGHT_SAMPLES = 48


def _unit(vector: ArrayLike) -> Float32s:
    array = np.asarray(vector, dtype=np.float32)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def _camera_rays(orientation: float, size: int, supersample: int) -> tuple[Float32s, Float32s]:
    """Camera position (3,) and unit directions (rays, 3), rows of the image first."""
    angle = np.deg2rad(orientation)
    x, y = CAMERA_DISTANCE * np.sin(angle), -CAMERA_DISTANCE * np.cos(angle)
    position = np.array([x, y, CAMERA_HEIGHT], dtype=np.float32)
    forward = _unit(np.array(LOOK_AT) - position)
    right = _unit(np.cross(forward, [0, 0, 1]))
    up = np.cross(right, forward)
    half = np.tan(np.deg2rad(FIELD_OF_VIEW / 2))
    n = size * supersample
    ticks = ((np.arange(n) + 0.5) / n * 2 - 1) * half
    directions = forward + ticks[None, :, None] * right - ticks[:, None, None] * up  # rows go down
    return position, _unit(directions.reshape(-1, 3))


@lru_cache(maxsize=1)
def _shadow_maps() -> NDArray[np.float32]:
    """Share of the light hidden from each floor point by each shape at scale 1, (4, n, n)."""
    # The light is a disc of directions, so the shadow of a scaled shape is the scaled shadow.
    ticks = np.linspace(-_SHADOW_EXTENT, _SHADOW_EXTENT, _SHADOW_CELLS, dtype=np.float32)
    x, y = np.meshgrid(ticks, ticks, indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), np.full(x.size, 1e-4)], axis=1).astype(np.float32)
    to_light = _unit(TO_LIGHT)
    across = _unit(np.cross(to_light, [0, 0, 1]))
    along = np.cross(to_light, across)
    k = np.arange(_LIGHT_SAMPLES) + 0.5  # a sunflower covers the disc evenly
    radius = LIGHT_RADIUS * np.sqrt(k / _LIGHT_SAMPLES)
    angle = np.pi * (3 - np.sqrt(5)) * k
    hidden = np.zeros((len(SHAPE_HITS), x.size), dtype=np.float32)
    for r, phi in zip(radius, angle, strict=True):
        direction = _unit(to_light + r * (np.cos(phi) * across + np.sin(phi) * along))
        for shape, hit in enumerate(SHAPE_HITS):
            hidden[shape] += np.isfinite(hit(points, direction[None])[0])
    return (hidden / np.float32(_LIGHT_SAMPLES)).reshape(len(SHAPE_HITS), *x.shape)


def _shadow(shape: int, scale: float, xy: Float32s) -> Float32s:
    """Share of the light hidden at floor points (n, 2) by a shape of the given scale."""
    cells = (xy / scale + _SHADOW_EXTENT) / (2 * _SHADOW_EXTENT) * (_SHADOW_CELLS - 1)
    return map_coordinates(_shadow_maps()[shape], cells.T, order=1, mode="constant", cval=0.0)


def _trace_room(
    position: Float32s, directions: Float32s
) -> tuple[NDArray[np.bool_], Float32s, Float32s]:
    """Where rays leave the room: on the floor or not, points (n, 3), unshadowed light (n,)."""
    bounds = np.where(directions >= 0, ROOM_HALF_WIDTH, -ROOM_HALF_WIDTH).astype(np.float32)
    with np.errstate(divide="ignore"):
        t = (bounds - position) / directions
        t[:, 2] = np.where(directions[:, 2] < 0, -position[2] / directions[:, 2], np.inf)
    axis = t.argmin(axis=1)
    rows = np.arange(len(axis))
    points = position + t[rows, axis, None] * directions
    inward = np.zeros_like(directions)
    inward[rows, axis] = -np.sign(directions[rows, axis])
    facing = np.maximum(inward @ _unit(TO_LIGHT), 0)
    return axis == 2, points, AMBIENT_ROOM + DIFFUSE_ROOM * facing


def _object_light(normal: Float32s, directions: Float32s) -> tuple[Float32s, Float32s]:
    """Diffuse light and highlight on the object (Blinn and Phong)."""
    to_light = _unit(TO_LIGHT)
    diffuse = AMBIENT_OBJECT + DIFFUSE_OBJECT * np.maximum(normal @ to_light, 0)
    halfway = _unit(to_light - directions)
    gleam = np.maximum(np.einsum("ij,ij->i", normal, halfway), 0) ** SHININESS
    return diffuse, HIGHLIGHT * gleam


def _pool(values: Float32s, size: int, supersample: int) -> Float32s:
    """Mean over the rays of each pixel, (rays, k) to (size * size, k)."""
    k = values.shape[1]
    blocks = values.reshape(size, supersample, size, supersample, k)
    return blocks.mean(axis=(1, 3), dtype=np.float32).reshape(size * size, k)


def _trace_view(orientation: float, size: int, supersample: int) -> Float32s:
    """Masks (scales, shapes, pixels, 4) seen from one orientation."""
    position, directions = _camera_rays(orientation, size, supersample)
    floor, points, light = _trace_room(position, directions)
    room = np.zeros((len(directions), 4), dtype=np.float32)
    room[:, 0] = np.where(floor, light, 0)
    room[:, 1] = np.where(floor, 0, light)

    in_shadow_map = floor & (np.abs(points[:, :2]).max(axis=1) < _SHADOW_EXTENT * SCALES[-1])
    shaded = np.flatnonzero(in_shadow_map)
    centre = np.array([0, 0, 0.6 * SCALES[-1]], dtype=np.float32) - position
    along = directions @ centre
    near = np.flatnonzero(centre @ centre - along**2 < (BOUNDING_RADIUS * SCALES[-1]) ** 2)

    masks = np.empty((len(SCALES), len(SHAPE_HITS), size * size, 4), dtype=np.float32)
    for i, scale in enumerate(SCALES):
        for shape, hit in enumerate(SHAPE_HITS):
            values = room.copy()
            values[shaded, 0] *= 1 - SHADOW_DEPTH * _shadow(shape, scale, points[shaded, :2])
            distance, normal = hit(position[None] / np.float32(scale), directions[near])
            seen = np.isfinite(distance)
            diffuse, gleam = _object_light(normal[seen], directions[near[seen]])
            values[near[seen]] = 0
            values[near[seen], 2] = diffuse * (1 - gleam)
            values[near[seen], 3] = gleam
            masks[i, shape] = _pool(values, size, supersample)
    return masks


@lru_cache(maxsize=4)
def _bank(size: int, supersample: int) -> NDArray[np.float32]:
    """Trace the masks of all views; renderers of one size share them."""
    views = [_trace_view(o, size, supersample) for o in ORIENTATIONS]
    return np.stack(views, axis=2)


class Renderer:
    """Render scenes like those of 3D Shapes, at any size in pixels.

    A pixel has `supersample` rays along each side, by default enough for 192 along the image, so
    that an image at 32 pixels is the mean of 2 x 2 pixels of that at 64.
    """

    def __init__(self, size: int = 64, supersample: int | None = None) -> None:
        self.size = as_count(size, "size")
        rays = max(2, -(-192 // size)) if supersample is None else supersample
        self.supersample = as_count(rays, "supersample")

    @property
    def bank(self) -> NDArray[np.float32]:
        """Masks (8, 4, 15, pixels, 4) of floor, wall, object and highlight in each view."""
        return _bank(self.size, self.supersample)

    def __call__(self, factors: ArrayLike) -> NDArray[np.uint8]:
        """Images (n, size, size, 3) of value indices (n, 6)."""
        array = check_factors(factors)
        bank = self.bank.reshape(-1, self.size**2, 4)
        entry = np.ravel_multi_index(tuple(array[:, 3:].T), SIZES[3:])
        colours = np.full((len(array), 4, 3), 255, dtype=np.float32)
        for part in range(3):  # floor, wall, object: the first three factors
            colours[:, part] *= hue_to_rgb(array[:, part])
        images = np.empty((len(array), self.size**2, 3), dtype=np.uint8)
        for i, (k, colour) in enumerate(zip(entry, colours, strict=True)):
            images[i] = bank[k] @ colour + 0.5  # rounds to nearest
        return images.reshape(-1, self.size, self.size, 3)
