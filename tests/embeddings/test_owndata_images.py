"""A reader's folder of images: what is learned, what is warned of, and what is refused."""

import runpy
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from conceptnb import plotting
from conceptnb.core import example_data as examples
from conceptnb.embeddings.image_files import read_image
from conceptnb.embeddings.own_images import (
    learn_directions,
    pixel_components,
    read_images,
    refuse_labels,
)

TEMPLATE = Path(__file__).resolve().parents[2] / "book/templates/my_images.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Draw the example once."""
    path = tmp_path_factory.mktemp("fruit")
    examples.write_images(path)
    return path


def test_what_the_pictures_show_is_found_and_what_they_do_not_show_is_not(folder):
    images = read_images(folder, folder / "labels.csv")
    assert images[0].shape == (480, 24, 24, 3)
    report = learn_directions(*images)
    accuracy = {name: found.accuracy for name, found in report.factors.items()}
    assert accuracy["ripeness"] > 0.9
    assert accuracy["size"] > 0.9
    assert abs(accuracy["weekday"] - 0.2) < 0.1
    assert [line.split()[0] for line in report.warnings] == ["'weekday'"]
    # Planes of ordered values lie in order.
    means = report.factors["ripeness"].concept.planes_[:, 0]
    assert (np.diff(means) > 0).all() or (np.diff(means) < 0).all()
    assert len(plotting.reports.valuations_by_value(report).axes) == 3


def test_labels_that_go_together_are_warned_of(folder):
    images, labels = read_images(folder, folder / "labels.csv", factors=["size"])
    labels["copy"] = labels["size"]
    said = learn_directions(images, labels).warnings
    assert any("'size' and 'copy' go together" in line and "1.00" in line for line in said)


def test_few_images_in_many_dimensions_are_warned_of(folder):
    images, labels = read_images(folder, folder / "labels.csv", factors=["size"])
    said = " ".join(learn_directions(images[:40], labels.iloc[:40]).warnings)
    assert "20 images to learn from in 30 dimensions" in said
    assert "images only" in said


def test_components_keep_distances():
    images = np.random.default_rng(0).integers(0, 255, size=(6, 4, 5, 3)).astype(np.uint8)
    Z = pixel_components(images, n_components=30)
    assert Z.shape == (6, 6)
    flat = images.reshape(6, -1) / 255.0
    distances = [np.linalg.norm(A[:, None] - A[None], axis=-1) for A in (flat, Z)]
    assert np.allclose(*distances)


def change(folder, tmp_path, **cells):
    """Write the labels with some cells of row 9 changed, and return the file."""
    labels = pd.read_csv(folder / "labels.csv")
    for name, value in cells.items():
        labels.loc[7, name] = value
    labels.to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path / "labels.csv"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"file": "none.png"}, ["row 9", "there is no file", "folder"]),
        ({"file": "text.png"}, ["row 9", "cannot be read as an image", "PNG or JPEG"]),
        ({"file": "wide.png"}, ["row 9", "30 x 24 pixels", "24 x 24", "--size"]),
        ({"size": None}, ["column 'size', row 9", "the label is missing"]),
        ({"size": "huge"}, ["column 'size'", "'huge' has 1 rows", "needs 4"]),
    ],
)
def test_bad_folders_are_refused(cells, words, folder, tmp_path):
    (folder / "text.png").write_text("not a picture")
    matplotlib.image.imsave(folder / "wide.png", np.zeros((24, 30, 3)))
    path = change(folder, tmp_path, **cells)
    with pytest.raises(ValueError, match=r"labels\.csv") as caught:
        read_images(folder, path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_bad_lists_are_refused(folder, tmp_path):
    labels = pd.read_csv(folder / "labels.csv")
    labels.assign(size="small").to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(ValueError, match=r"column 'size': all rows have the value 'small'"):
        read_images(folder, tmp_path / "one.csv")
    labels[["file"]].to_csv(tmp_path / "bare.csv", index=False)
    with pytest.raises(ValueError, match="no column of labels"):
        read_images(folder, tmp_path / "bare.csv")
    with pytest.raises(ValueError, match=r"lacks the columns \['picture'\]"):
        read_images(folder, folder / "labels.csv", column="picture")


def test_measurements_are_no_labels_until_they_are_put_into_classes():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"column 'weight'.*put them into a few classes first"):
        learn_directions(
            rng.normal(size=(60, 3)), pd.DataFrame({"weight": rng.normal(size=60)}), np.asarray
        )


def test_an_embedding_has_to_have_a_row_for_each_image(folder):
    images = read_images(folder, folder / "labels.csv")
    with pytest.raises(ValueError, match="embed returned 3 rows for 480 images"):
        learn_directions(*images, embed=lambda pixels: np.eye(3))
    with pytest.raises(ValueError, match=r"embed\(images\) holds"):
        learn_directions(*images, embed=lambda pixels: np.full((480, 2), np.nan))


def test_a_picture_is_turned_as_its_camera_says_and_a_moving_one_is_refused(tmp_path):
    picture = np.zeros((6, 6, 3), np.uint8)
    picture[:3] = 255  # upside down, by its EXIF
    exif = Image.Exif()
    exif[0x0112] = 3
    for k in range(8):
        Image.fromarray(picture).save(tmp_path / f"{k}.png", exif=exif)
    labels = pd.DataFrame({"file": [f"{k}.png" for k in range(8)], "odd": list("abababab")})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    pixels, _ = read_images(tmp_path, tmp_path / "labels.csv")
    assert (pixels[:, 3:] == 255).all()
    assert (pixels[:, :3] == 0).all()
    frames = [Image.fromarray(picture), Image.fromarray(255 - picture)]
    frames[0].save(tmp_path / "7.gif", save_all=True, append_images=frames[1:])
    labels.replace("7.png", "7.gif").to_csv(tmp_path / "labels.csv", index=False)
    with pytest.raises(ValueError, match=r"row 9: .*7\.gif has 2 frames"):
        read_images(tmp_path, tmp_path / "labels.csv")
    labels.replace("7.png", "../" + tmp_path.name + "/0.png").to_csv(
        tmp_path / "labels.csv", index=False
    )
    with pytest.raises(ValueError, match=r"row 9: .*0\.png' is in an earlier row already"):
        read_images(tmp_path, tmp_path / "labels.csv")


def test_a_value_that_nothing_judges_is_refused():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, size=(40, 2, 2, 3)).astype(np.uint8)
    images[:12, 0] = 0
    labels = pd.DataFrame({"kind": ["rare"] * 4 + ["some"] * 8 + ["usual", "common"] * 14})
    seen = []
    for seed in range(40):
        try:
            learn_directions(images, labels, seed=seed)
        except ValueError as error:
            seen.append(str(error))
    assert any("kind={'rare'}: no image of it in the half that judges" in line for line in seen)


def test_what_is_no_image_of_a_folder_is_passed_over_unless_it_is_named(tmp_path):
    examples.write_images(tmp_path / "fruit", images=4)
    (tmp_path / "fruit" / "Thumbs.db").write_bytes(b"x")
    images, names = read_images(tmp_path / "fruit")
    assert names["file"].tolist() == [f"{k:03}.png" for k in range(4)]
    assert len(images) == 4
    (tmp_path / "fruit" / "004.png").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"fruit: .*004\.png cannot be read as an image"):
        read_images(tmp_path / "fruit")


def test_grey_and_transparent_images_become_rgb(tmp_path):
    for k in range(8):
        picture = np.broadcast_to([0.2, 0.4, 0.6, 1.0], (5, 5, 4))
        matplotlib.image.imsave(tmp_path / f"{k}.png", picture)
    pd.DataFrame({"file": [f"{k}.png" for k in range(8)], "odd": list("abababab")}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    pixels, _ = read_images(tmp_path, tmp_path / "labels.csv")
    assert pixels.shape == (8, 5, 5, 3)
    assert (pixels[0, 0, 0] == [51, 102, 153]).all()


def test_images_of_several_sizes_are_cropped_and_scaled_to_one(tmp_path):
    picture = np.zeros((12, 12, 3), np.uint8)
    picture[:, 6:] = 200
    for k in range(8):
        wide = np.pad(picture, [(0, 0), (6 * (k % 2),) * 2, (0, 0)], constant_values=90)
        Image.fromarray(wide.repeat(2, axis=0).repeat(2, axis=1)).save(tmp_path / f"{k}.png")
    labels = pd.DataFrame({"file": [f"{k}.png" for k in range(8)], "odd": list("abababab")})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    pixels, _ = read_images(tmp_path, tmp_path / "labels.csv", size=6)
    assert pixels.shape == (8, 6, 6, 3)
    assert np.ptp(pixels, axis=0).max() < 15  # the margins of 90 are gone, nothing is squeezed
    assert pixels[0, 0, 0, 0] < 15 and pixels[0, 0, 5, 0] > 185
    with pytest.raises(ValueError, match="size must be at least 1"):
        read_images(tmp_path, tmp_path / "labels.csv", size=0)


def test_the_template_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples.write_images("pictures", images=80)
    runpy.run_path(str(TEMPLATE), run_name="__main__")
    assert "ripeness" in capsys.readouterr().out
    assert (tmp_path / "directions.png").is_file()


GREY = np.linspace(0, 1, 36).reshape(6, 6)
MODES = [
    *["1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "F"],
    *["I", "LA", "PA", "RGBX", "RGBa", "La", "I;16", "I;16L", "I;16B"],
]
UNKNOWN = {"F": "float", "I": "32-bit", "LAB": "CIELAB"}


@pytest.mark.parametrize("mode", MODES)
def test_images_of_every_mode_are_read_rightly_or_refused_by_its_name(mode, tmp_path):
    """Of all modes that Pillow knows and can make of grey; files that keep the mode."""
    picture = Image.fromarray((255 * GREY).astype(np.uint8))
    sixteen = mode.startswith("I;16")
    image = Image.fromarray((65535 * GREY).astype(np.uint16)) if sixteen else picture
    if mode == "LAB":
        image = Image.merge("LAB", [picture] * 3)
    elif mode == "1":
        image = picture.convert("1", dither=Image.Dither.NONE)
    elif mode == "PA":
        image = picture.convert("P").convert("PA")  # from colours the palette would be coarse
    elif not sixteen and mode != picture.mode:
        image = image.convert("RGBA" if mode in ("RGBa", "La") else "RGB").convert(mode) if (
            mode in ("HSV", "YCbCr", "CMYK", "RGBa")) else image.convert(
            "LA" if mode == "La" else mode)  # fmt: skip
    path = tmp_path / "x.tif"
    try:
        image.save(path)
    except (OSError, KeyError):
        path = tmp_path / "x.png"  # which PA, HSV and others become before they can be saved
        image.convert("RGBA" if "A" in mode.upper() else "RGB").save(path)
    with Image.open(path) as kept:
        refused = UNKNOWN.get(kept.mode)
    if refused:
        with pytest.raises(ValueError, match=rf"here: .*{refused} pixels \(mode"):
            read_image(path, "here")
        return
    found = read_image(path, "here").pixels
    expected = np.where(GREY > 0.5, 255, 0) if mode == "1" else 255 * GREY
    assert np.abs(found.astype(float) - expected[..., None]).max() <= 3
    assert found.shape == (6, 6, 3)


def test_grey_of_many_bits_keeps_its_upper_ones_and_shallow_folders_are_refused(tmp_path):
    labels = pd.DataFrame({"file": [f"{k}.png" for k in range(8)], "odd": list("abababab")})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    rng = np.random.default_rng(0)
    pixels = rng.integers(2000, 20000, size=(8, 5, 5)) + 40000 * (np.arange(8) % 2)[:, None, None]
    for k in range(8):  # the dark ones alone would do, too: one image of the folder is bright
        Image.fromarray((pixels[k] // (1 + 9 * (k == 0))).astype(np.uint16)).save(
            tmp_path / f"{k}.png"
        )
    images, _ = read_images(tmp_path, tmp_path / "labels.csv")
    np.testing.assert_array_equal(images[1:, ..., 0], pixels[1:] >> 8)
    for k in range(8):  # 12 bits in files of 16
        Image.fromarray((pixels[k] >> 4).astype(np.uint16)).save(tmp_path / f"{k}.png")
    with pytest.raises(ValueError, match=r"labels.csv: no image of 16 bits uses more than 5\.\d%"):
        read_images(tmp_path, tmp_path / "labels.csv")


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L"])
def test_what_is_transparent_is_drawn_on_white_and_said(mode, tmp_path):
    """A black shape that only the alpha channel shows."""
    alpha = Image.fromarray(np.where(GREY > 0.5, 255, 0).astype(np.uint8))
    for k in range(24):
        black = Image.new("RGBA", (6, 6))
        black.putalpha(alpha)
        file = tmp_path / f"{k}.png"
        if mode in ("P", "L"):
            odd = Image.fromarray(np.where(GREY > 0.5, 0, 1).astype(np.uint8))
            if mode == "P":
                odd = Image.fromarray(np.asarray(odd)).convert("P")
            odd.save(file, transparency=1)
        else:
            black.convert(mode).save(file)
    labels = pd.DataFrame({"file": [f"{k}.png" for k in range(24)], "odd": list("ab" * 12)})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    images, found = read_images(tmp_path, tmp_path / "labels.csv")
    expected = np.broadcast_to(np.where(GREY > 0.5, 0, 255)[..., None], (6, 6, 3))
    np.testing.assert_array_equal(images[0], expected)
    assert found.attrs["notes"] == ["24 images are transparent: drawn on white."]
    assert "24 images are transparent: drawn on white." in learn_directions(images, found).warnings


@pytest.mark.parametrize("missing", ["NA", "nan", "", "N/A", None, np.nan, pd.NA])
def test_a_missing_label_is_no_value_whatever_it_is_called(missing):
    labels = pd.DataFrame({"sex": ["male", "female", missing] * 10, "site": ["a", "b", "c"] * 10})
    with pytest.raises(ValueError, match=r"column 'sex', row 4: the label is missing"):
        refuse_labels(labels)
    both = labels.assign(id=range(30))
    with pytest.raises(ValueError, match=r"'sex', row 4.*'id': 30 values .* an identifier"):
        refuse_labels(both)


def said_of(rng, rows, gap, share):
    """Return what is said of a label of which `share` is rare, `gap` deviations apart."""
    y = rng.permutation(rows) < max(share * rows, 8)
    Z = rng.normal(size=(rows, 4)) * 10.0 ** rng.integers(-3, 4, 4)
    Z[y] += gap * Z.std(axis=0) / 2
    labels = pd.DataFrame({"ill": np.where(y, "yes", "no")})
    try:
        found = learn_directions(Z, labels, np.asarray, seed=int(rng.integers(1000)))
    except ValueError:  # no row of the rare value in a half
        return []
    return [line for line in found.warnings if "not read" in line]


def test_not_read_is_said_of_what_is_not_read_and_of_nothing_else():
    rng = np.random.default_rng(0)
    for share in (0.5, 0.05):
        assert not any(said_of(rng, 200, 2.0, share) for _ in range(15))
    never = [bool(said_of(rng, 600, 0.0, 0.5)) for _ in range(15)]
    assert np.mean(never) > 0.7
    assert not any(said_of(rng, 40, 2.0, 0.5) for _ in range(15)), "too few rows to tell"
