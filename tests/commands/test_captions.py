"""``conceptnb directions --captions``: what words read in a folder of images."""

import re
import runpy
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

pytest.importorskip("open_clip")

from conceptnb.commands.cli import main
from conceptnb.embeddings import shapes3d

SCENE = "some coloured {} on coloured floor by coloured wall seen from anywhere"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """A folder of rendered scenes with their labels, and captions that name shape and wall."""
    folder = tmp_path_factory.mktemp("scenes")
    index = np.random.default_rng(0).choice(shapes3d.N_IMAGES, 240, replace=False)
    factors = shapes3d.index_to_factors(index)
    factors[:, 1] = np.where(factors[:, 1] < 5, 0, 5)  # two hues of the wall are enough
    images = shapes3d.RenderedShapes(32).images(shapes3d.factors_to_index(factors))
    for k, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{k:03d}.png")
    shape, wall = shapes3d.factor_index("shape"), shapes3d.factor_index("wall_hue")
    table = {
        "file": [f"{k:03d}.png" for k in range(len(images))],
        "shape": np.array(shapes3d.SHAPE_NAMES)[factors[:, shape]],
        "wall": np.where(factors[:, wall] == 0, "red", "aqua"),
    }
    pd.DataFrame(table).to_csv(folder / "labels.csv", index=False)
    walls = "some coloured thing on coloured floor by {} wall seen from anywhere"
    (folder / "captions.csv").write_text(
        f"factor,value,caption\nshape,*,{SCENE}\nwall,*,{walls}\nwall,red,\nwall,aqua,\n"
        + "".join(f"shape,{name},\n" for name in shapes3d.SHAPE_NAMES)
    )
    return folder


def typed(scenes, out, *more):
    words = ["directions", str(scenes), "--encoder", "small-vit", "--out", str(out), *more]
    return [*words, "--captions", str(scenes / "captions.csv")]


def test_words_beside_labels_are_in_the_report(scenes, tmp_path):
    assert main(typed(scenes, tmp_path, "--labels", str(scenes / "labels.csv"))) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    part = page.split("Directions from words alone")[1].split("</table>")[0]
    heads, *rows = [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in part.split("<tr")[1:]]
    found = pd.DataFrame(rows, columns=heads).set_index("factor").astype(float)
    assert list(found.index) == ["shape", "wall"]
    assert (found["AUC"] > 0.9).all()
    assert (found["AUC, other words"] < 0.7).all()
    assert (found["cosine"] > 2 * found["other words"]).all()
    values = pd.read_csv(tmp_path / "values.csv")
    assert (values["shape, by words"] == values["shape"]).mean() > 0.8


def test_captions_need_no_label(scenes, tmp_path, capsys, monkeypatch):
    assert main(typed(scenes, tmp_path / "out")) == 0
    labels = pd.read_csv(scenes / "labels.csv")
    values = pd.read_csv(tmp_path / "out" / "values.csv")
    assert (values["shape"] == labels["shape"]).mean() > 0.8
    assert (values["wall"] == labels["wall"]).mean() > 0.9
    capsys.readouterr()
    program = str(tmp_path / "out" / "apply.py")
    monkeypatch.setattr(sys, "argv", [program, str(scenes)])
    runpy.run_path(program, run_name="__main__")
    (tmp_path / "again.csv").write_text(capsys.readouterr().out)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "again.csv"), values, atol=2e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--captions", "captions.csv"], "needs a folder of images and --encoder"),
        (["--encoder", "small-vit"], "--labels FILE is missing"),
        (["--captions", "captions.csv", "--encoder", "small-vit", "--factors", "shape"],
         "--factors is a column of --labels"),
        (["--captions", "odd.csv", "--encoder", "small-vit"], "0 values of 'shape'"),
        (["--captions", "none.csv", "--encoder", "small-vit"], "none.csv is no file"),
        (["--captions", "words.csv", "--encoder", "small-vit"], "purple-ish"),
        (["--captions", "words.csv", "--encoder", "small-vit", "--labels", "labels.csv"],
         "purple-ish"),
    ],
)  # fmt: skip
def test_captions_that_do_not_fit_are_refused(words, said, scenes, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(scenes)
    (scenes / "odd.csv").write_text(f"factor,value,caption\nshape,*,{SCENE}\n")
    (scenes / "words.csv").write_text(
        f"factor,value,caption\nshape,*,{SCENE}\nshape,purple-ish,\nshape,ball,\n"
    )
    assert main(["directions", str(scenes), "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list((tmp_path / "out").glob("*"))
