"""Any image file -> 8-bit RGB, or a refusal that names its mode."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

Images = NDArray[np.uint8]

_BITS_PER_SAMPLE = 258  # tag of TIFF


class ReadImage(NamedTuple):
    """An image as 8-bit RGB, and what was done to it.

    `pixels` are uint8 of shape (height, width, 3); `transparent` says that it was drawn on white;
    `deepest` is the largest grey of a file of more than 8 bits, as a share of what these hold.
    """

    pixels: Images
    transparent: bool
    deepest: float | None


def read_image(path: Path, where: str, size: int | None = None) -> ReadImage:
    """Read one image as 8-bit RGB, turned as its EXIF says and drawn on white where transparent.

    Grey of 16 bits keeps its upper 8 (of TIFF, those of the bits that it says it has). Its middle
    is cropped and scaled to a square of `size` pixels, if given.

    Raises
    ------
    ValueError
        If the file is missing, no image, has several frames, or its mode has no known white: float
        and 32-bit pixels, and CIELAB. Names `where`, the place that named the file.
    """
    if not path.is_file():
        raise ValueError(f"{where}: there is no file {path}; is `folder` the right one?")
    try:
        with Image.open(path) as image:
            if (frames := getattr(image, "n_frames", 1)) > 1:
                raise _RefusedError(f"has {frames} frames: save the one that is meant as PNG")
            upright, deepest, clear = ImageOps.exif_transpose(image), None, False
            if image.has_transparency_data:
                upright, clear = _on_white(upright)
            elif upright.mode.startswith("I;16"):
                upright, deepest = _upper_bits(upright, image)
            rgb = _as_rgb(upright)
    except _RefusedError as error:
        raise ValueError(f"{where}: {path} {error}") from None
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError) as error:
        raise ValueError(
            f"{where}: {path} cannot be read as an image ({type(error).__name__}). Open it in a "
            "viewer and save it again, as PNG or JPEG"
        ) from None
    fitted = rgb if size is None else ImageOps.fit(rgb, (size, size))
    return ReadImage(np.asarray(fitted), clear, deepest)


class _RefusedError(Exception):
    """What is wrong with an image, without the name of its file."""


def _on_white(image: Image.Image) -> tuple[Image.Image, bool]:
    """Return an image with transparency on white, and whether any of it shines through."""
    with_alpha = image.convert("RGBA")
    white = Image.new("RGBA", with_alpha.size, "white")
    clear = int(np.asarray(with_alpha)[..., 3].min()) < np.iinfo(np.uint8).max
    return Image.alpha_composite(white, with_alpha).convert("RGB"), clear


def _as_rgb(image: Image.Image) -> Image.Image:
    unknown = {"F": "float", "I": "32-bit", "LAB": "CIELAB"}
    if image.mode in unknown:
        raise _RefusedError(
            f"has {unknown[image.mode]} pixels (mode {image.mode}), whose black and white are "
            "unknown: save it with 8 or 16 bits"
        )
    return image.convert("RGB")


def _upper_bits(image: Image.Image, opened: Image.Image) -> tuple[Image.Image, float]:
    """Return grey as its upper 8 bits, and its largest; `opened` has the tags of the file."""
    bits = int(np.max(getattr(opened, "tag_v2", {}).get(_BITS_PER_SAMPLE, 16)))
    pixels = np.asarray(image)
    upper = (pixels >> (bits - 8)).astype(np.uint8)
    return Image.fromarray(upper), float(pixels.max()) / (2**bits - 1)
