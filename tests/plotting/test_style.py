"""The style of the figures: colours that stay apart for readers who see fewer of them."""

from __future__ import annotations

import ast
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from conceptnb.plotting import _style as style

PLOTTING = Path(style.__file__).parent

# Full deficiency of one kind of cone, in linear RGB: Machado, Oliveira and Fernandes (2009).
SEEN_BY = {
    "all cones": np.eye(3),
    "no long-wave cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle-wave cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short-wave cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    """Undo the gamma of sRGB."""
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIELAB of linear RGB, white at (100, 0, 0)."""
    ratios = TO_XYZ @ np.clip(light, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one, other, kind):
    return np.linalg.norm(
        lab(np.array(SEEN_BY[kind]) @ linear(one)) - lab(np.array(SEEN_BY[kind]) @ linear(other))
    )


@pytest.mark.parametrize("kind", SEEN_BY)
def test_colours_stay_apart_whichever_cones_a_reader_has(kind):
    """Ten is some four times what is just noticed of two patches side by side."""
    for one, other in combinations(style.PALETTE, 2):
        assert distance(one, other, kind) > 10, (one, other)


def test_the_simulation_sees_what_red_and_green_do_to_readers_without_middle_wave_cones():
    red, green = "#b05a4a", "#7b7a3c"
    assert distance(red, green, "all cones") > 40
    assert distance(red, green, "no middle-wave cones") < 20


@pytest.mark.parametrize("ink", [style.INK, style.MUTED])
def test_text_on_the_card_has_the_contrast_of_wcag_aa(ink):
    dark, light = (TO_XYZ[1] @ linear(colour) + 0.05 for colour in (ink, style.CARD))
    assert light / dark > 4.5


def test_nothing_but_the_palette_colours_a_figure():
    """A colour typed into a figure's code would escape the tests above."""
    for module in sorted(PLOTTING.glob("*.py")):
        if module.name == "_style.py":
            continue
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                typed = node.value.startswith("#") and len(node.value) in (4, 7, 9)
                assert not typed, f"{module.name}:{node.lineno} names the colour {node.value}"
