"""Figures of the running example: pictures of a cube that differ in colour, size and angle."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon
from numpy.typing import ArrayLike

from conceptnb.common.validation import Array, as_points
from conceptnb.plotting._style import CARD, FAINT, INK, MUTED, PALETTE, REDS, new_figure, styled

_TILT = np.radians(28)  # by which the camera looks down
_CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2  # of a side of length 1
_ENDS = np.array([0.5, -0.5])  # of an upright edge of length 1
_BOX = {"boxstyle": "round,pad=0.05", "facecolor": CARD, "linewidth": 1.4}
_ARROW = {"arrowstyle": "-|>", "mutation_scale": 14, "linewidth": 1.6, "color": INK}


@styled
def concept_map(atoms: ArrayLike) -> Figure:
    """Draw cubes where they lie in a latent plane, and the directions of two concepts.

    Parameters
    ----------
    atoms : array of shape (2, 2)
        The rows are redness and size: a cube at z has the redness and the size that its valuations
        ``atoms @ z`` say. Its angle is drawn at random.

    Returns
    -------
    Figure
        The cubes lie on the lines (dashed) of five valuations of redness.
    """
    redness, size = as_points(atoms, "atoms", 2)
    rng = np.random.default_rng(4)
    figure, [[ax]] = new_figure(height=3.9)
    across = np.array([-redness[1], redness[0]]) / np.linalg.norm(redness)
    for b in np.linspace(-2, 2, 5):
        foot = b * redness / (redness @ redness)
        ax.plot(*np.transpose([foot - 3 * across, foot + 3 * across]), "--", color=FAINT, lw=1.1)
        for height in (-1.2, -0.4, 0.4, 1.2):
            z = foot + (height - foot[1]) / across[1] * across
            edge = 0.28 + 0.08 * (size @ z)
            _draw_cube(ax, z, edge, colour=0.5 + b / 4.4, angle=rng.uniform(0, 90))
    corner = np.array([2.25, 0.45])
    for k, (name, atom) in enumerate({"redness": redness, "size": size}.items()):
        tip = corner + 0.65 * atom / np.linalg.norm(atom)
        arrow = {**_ARROW, "color": PALETTE[k], "linewidth": 2.4, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", tip, corner, arrowprops=arrow, zorder=5)
        ax.text(tip[0] + 0.05, tip[1] + 0.12, name, color=PALETTE[k], ha="center", weight="bold")
    ax.set(xlabel="$z_1$", ylabel="$z_2$", aspect="equal", xlim=(-3.0, 3.3), ylim=(-1.6, 1.6))
    ax.grid(visible=False)
    return figure


@styled
def selection() -> Figure:
    """Draw what is unknown, what is observed, and what is wanted when pictures are selected.

    Returns
    -------
    Figure
        From left to right: latent points, not observed; pictures of all of them and of those that
        were kept because they looked dark red; and the order by redness, which is to be found.
    """
    rng = np.random.default_rng(3)
    figure, [[ax]] = new_figure(height=3.5)
    ax.set(xlim=(0, 10), ylim=(0, 4.86), aspect="equal")
    ax.axis("off")
    _draw_latents(ax, rng)
    seen = rng.uniform(0, 1, 8)
    kept = np.clip(rng.normal(0.86, 0.07, 8), 0, 1)
    for low, title, reds in (
        (2.55, "observed: the heap", seen),
        (0.15, "observed: looked dark red", kept),
    ):
        _draw_box(ax, (3.95, low), (2.5, 1.8), title)
        places = np.stack(np.meshgrid(np.arange(4) * 0.6 + 4.3, [low + 0.5, low + 1.25]), axis=-1)
        for place, red in zip(places.reshape(-1, 2), reds, strict=True):
            _draw_cube(ax, place, rng.uniform(0.2, 0.42), red, rng.uniform(0, 90))
    _draw_box(ax, (7.6, 1.05), (2.3, 2.4), "wanted: valuations")
    for k, red in enumerate(np.linspace(0.05, 0.95, 5)):
        spot = (7.92 + 0.42 * k, 2.25 + 0.25 * (-1) ** k)
        _draw_cube(ax, spot, rng.uniform(0.24, 0.4), red, rng.uniform(0, 90))
    ax.annotate("", (9.85, 1.5), (7.7, 1.5), arrowprops=_ARROW)
    ax.text(8.75, 1.2, "redness", ha="center", va="center", fontsize=9.5)
    for start, end in (((2.85, 2.9), (3.9, 3.4)), ((2.85, 1.6), (3.9, 1.1))):
        ax.annotate("", end, start, arrowprops=_ARROW)
        ax.text(3.35, np.mean([start[1], end[1]]) + 0.25, "$f$", ha="center")
    for y in (3.4, 1.1):
        ax.annotate("", (7.55, 2.25 + 0.3 * np.sign(y - 2)), (6.5, y), arrowprops=_ARROW)
    ax.text(7.05, 2.25, "?", ha="center", va="center", fontsize=15, weight="bold")
    return figure


def _draw_latents(ax: Axes, rng: np.random.Generator) -> None:
    """Draw the unknown latents: all, those kept, and the line of the valuation asked for."""
    _draw_box(ax, (0.1, 0.7), (2.7, 3.1), "unknown", linestyle="--", edgecolor=MUTED)
    z = rng.normal([1.3, 2.2], [0.5, 0.6], (110, 2)).clip([0.25, 0.9], [2.65, 3.6])
    gap = (z - [1.62, 2.2]) @ [0.9, 0.436]
    kept = np.exp(-(gap**2) / 0.05) > rng.uniform(size=len(z))
    ax.plot(*z[~kept].T, "o", color=FAINT, markersize=3)
    ax.plot(*z[kept].T, "^", color=PALETTE[0], markersize=4.5)
    ax.plot([1.0, 2.25], [3.48, 0.9], color=PALETTE[1], lw=1.6)
    ax.text(1.95, 3.3, "$\\langle a, z\\rangle = b$", color=PALETTE[1], ha="center", fontsize=9.5)


def _draw_box(
    ax: Axes, corner: ArrayLike, size: tuple[float, float], title: str, **look: str
) -> None:
    """Draw a box with a title above it: solid for what is seen."""
    x, y = np.asarray(corner, dtype=float)
    width, height = size
    box = FancyBboxPatch((x, y), width, height, **_BOX)
    box.set(**{"edgecolor": INK, **look})
    ax.add_patch(box)
    ax.text(x + width / 2, y + height + 0.14, title, ha="center", va="bottom", fontsize=9.5)


def _draw_cube(ax: Axes, place: ArrayLike, edge: float, colour: float, angle: float) -> None:
    """Draw a cube around a place, turned by an angle in degrees; `colour` 0 is pale, 1 dark red."""
    turn = np.radians(angle % 90 - 45)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    x, depth = rotation @ _CORNERS.T  # depth: away from the camera
    top, bottom = (np.stack([x, np.sin(_TILT) * depth + h]) for h in np.cos(_TILT) * _ENDS)
    near = int(np.argmin(depth))
    faces: list[tuple[Array, float]] = [(top, 1.0)]
    for i, j, light in ((near - 1, near, 0.72), (near, (near + 1) % 4, 0.86)):
        faces.append((np.stack([top[:, i], top[:, j], bottom[:, j], bottom[:, i]], axis=1), light))
    for corners, light in faces:
        shade = light * np.array(to_rgb(REDS(colour)))
        ax.add_patch(
            Polygon(
                np.asarray(place) + edge * corners.T,
                facecolor=shade, edgecolor=INK, linewidth=0.6, zorder=3, joinstyle="round",
            )
        )  # fmt: skip
