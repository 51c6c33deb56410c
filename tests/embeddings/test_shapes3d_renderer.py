import numpy as np
import pytest

from conceptnb.embeddings import shapes3d as s3
from conceptnb.embeddings.shapes3d import geometry as geo

IMPLICIT = {
    "cube": lambda p: np.maximum(
        np.abs(p[:, :2]).max(1) - geo.CUBE_SIDE / 2,
        np.abs(p[:, 2] - geo.CUBE_SIDE / 2) - geo.CUBE_SIDE / 2,
    ),
    "cylinder": lambda p: np.maximum(
        np.hypot(p[:, 0], p[:, 1]) - geo.CYLINDER_RADIUS,
        np.abs(p[:, 2] - geo.CYLINDER_HEIGHT / 2) - geo.CYLINDER_HEIGHT / 2,
    ),
    "ball": lambda p: np.linalg.norm(p - [0, 0, geo.BALL_RADIUS], axis=1) - geo.BALL_RADIUS,
    "ellipsoid": lambda p: (
        np.linalg.norm((p - [0, 0, geo.ELLIPSOID_RADII[2]]) / geo.ELLIPSOID_RADII, axis=1) - 1
    ),
}
"""Negative inside each shape, zero on its surface: written independently of the hits."""


@pytest.fixture(scope="module")
def render():
    return s3.Renderer(32, supersample=2)


@pytest.mark.parametrize("shape", s3.SHAPE_NAMES)
def test_rays_hit_the_surface_first_and_miss_only_what_is_not_there(shape):
    rng = np.random.default_rng(0)
    inside = IMPLICIT[shape]
    angle = rng.uniform(0, 2 * np.pi, 1500)
    origin = np.stack([5 * np.cos(angle), 5 * np.sin(angle), rng.uniform(0.5, 4, 1500)], axis=1)
    target = rng.uniform([-0.8, -0.8, 0], [0.8, 0.8, 1.4], (1500, 3))
    direction = (target - origin) / np.linalg.norm(target - origin, axis=1, keepdims=True)
    hit = geo.SHAPE_HITS[s3.SHAPE_NAMES.index(shape)]
    t, normal = hit(origin.astype(np.float32), direction.astype(np.float32))
    seen = np.isfinite(t)
    assert 0.2 < seen.mean() < 0.95

    points = origin[seen] + t[seen, None] * direction[seen]
    np.testing.assert_allclose(inside(points), 0, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(normal[seen], axis=1), 1, atol=1e-4)
    assert (np.einsum("ij,ij->i", normal[seen], direction[seen]) <= 1e-4).all()
    step = 1e-2
    assert (inside(points + step * normal[seen]) > 0).mean() > 0.99  # normals point outwards

    # march along every ray: nothing is met before the hit, nothing at all on a miss
    for s in np.linspace(3.0, 8.0, 400):
        before = ~seen | (s < np.where(seen, t, 0) - 0.02)
        along = origin + s * direction
        above = along[:, 2] > 0.02  # the floor ends every ray
        assert (inside(along)[before & above] > -5e-3).all()


def test_hues_enter_linearly(render):
    rng = np.random.default_rng(0)
    factors = s3.sample_factors(40, rng)
    masks = render.bank[tuple(factors[:, 3:].T)]
    assert masks.min() >= 0
    assert masks.sum(axis=-1).max() <= 1
    colours = np.stack(
        [s3.hue_to_rgb(factors[:, k]) for k in range(3)] + [np.ones((40, 3))], axis=1
    )
    expected = 255 * np.einsum("npk,nkc->npc", masks, colours)
    np.testing.assert_allclose(render(factors).reshape(40, -1, 3), expected, atol=0.501)


def test_hues_are_the_saturated_wheel():
    np.testing.assert_allclose(
        s3.hue_to_rgb([0, 5]), [[1, 0, 0], [0, 1, 1]], atol=1e-6
    )  # red and its opposite
    rgb = s3.hue_to_rgb(np.arange(10))
    np.testing.assert_allclose(rgb.max(axis=1), 1)
    np.testing.assert_allclose(rgb.min(axis=1), 0, atol=1e-6)


def test_each_hue_colours_its_own_part(render):
    base = np.array([0, 3, 6, 4, 2, 7])
    size = render.size
    top, bottom, middle = (2, size // 2), (size - 2, 2), (int(0.55 * size), size // 2)
    for column, place in ((0, bottom), (1, top), (2, middle)):
        other = base.copy()
        other[column] = (other[column] + 5) % 10
        difference = np.abs(np.diff(render(np.stack([base, other])).astype(int), axis=0))[0].sum(-1)
        assert difference[place] > 60
        for elsewhere in {bottom, top, middle} - {place}:
            assert difference[elsewhere] == 0


def test_objects_grow_with_scale_and_stand_in_the_middle(render):
    object_mask = render.bank[..., 2].reshape(8, 4, 15, render.size, render.size)
    area = object_mask.sum(axis=(-1, -2))
    assert (np.diff(area, axis=0) > 0).all()
    columns = np.arange(render.size) - (render.size - 1) / 2
    centre = (object_mask.sum(axis=-2) * columns).sum(axis=-1) / object_mask.sum(axis=(-1, -2))
    assert np.abs(centre).max() < 0.05 * render.size


def test_the_object_casts_a_shadow_and_the_empty_floor_is_flat(render):
    floor = render.bank[4, 2, 7, :, 0].reshape(render.size, render.size)
    lit = floor[-2, 2]
    assert floor[-3:].std() < 1e-6  # no gradient on the bare floor
    assert floor[(floor > 0) & (floor < 0.8 * lit)].size > 5


def test_half_size_is_the_mean_of_blocks():
    factors = s3.sample_factors(3, np.random.default_rng(1))
    small, large = s3.Renderer(8, 4), s3.Renderer(16, 2)
    blocks = large(factors).reshape(3, 8, 2, 8, 2, 3).mean(axis=(2, 4))
    np.testing.assert_allclose(small(factors), blocks, atol=1.01)  # both round


def test_orientation_turns_the_room(render):
    wall = render.bank[4, 2, :, :, 1].reshape(15, -1)
    distance = np.linalg.norm(wall[:, None] - wall[None], axis=-1)
    nearest = np.argsort(distance, axis=1)[:, 1]
    assert (np.abs(nearest - np.arange(15)) <= 2).all()
    assert distance[np.triu_indices(15, 1)].min() > 0.02  # every pair can be told apart
