"""The light tunnel: selection takes no row twice, published folders are read, faults are named."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from conceptnb.commands import cli
from conceptnb.core.planner import propose_design
from conceptnb.studies import light_tunnel as study


def published(folder, rows=60, seed=0):
    """A tiny folder of the published layout, whose third colour and polarizers do not move."""
    rng = np.random.default_rng(seed)
    place = folder / "uniform" / "images_32"
    place.mkdir(parents=True)
    levels = rng.integers(60, 200, size=(rows, 2))
    names = [f"{row}.png" for row in range(rows)]
    for name, (red, green) in zip(names, levels, strict=True):
        image = np.full((32, 32, 3), [red, green, 90], dtype=np.uint8)
        Image.fromarray(image).save(place / name)
    columns = {"red": levels[:, 0], "green": levels[:, 1], "blue": 90, "pol_1": 0.0, "pol_2": 0.0}
    frame = pd.DataFrame(columns | {"image_file": names})
    frame.to_csv(folder / "uniform" / "uniform.csv", index=False)
    return folder


def test_selection_takes_no_row_twice_and_moves_a_concept_to_its_valuation():
    rng = np.random.default_rng(1)
    Z, design = rng.normal(size=(40_000, 2)), propose_design(2, 0.25)
    test, train, environment = study._select(Z, design, rng, "here")
    assert len(np.unique(np.concatenate([test, train]))) == len(test) + len(train)
    # A standard normal times a Gaussian weight of variance v at b has mean b / (1 + v).
    [b] = design.valuations[0]
    [atom] = design.subsets[0]
    chosen = Z[train[environment == 1]]
    assert chosen[:, atom].mean() == pytest.approx(b / 1.25, abs=0.05)
    assert chosen[:, 1 - atom].mean() == pytest.approx(0, abs=0.08)
    with pytest.raises(ValueError, match=r"here: 100 rows leave environment .* give more rows"):
        study._select(Z[:100], design, rng, "here")


def test_published_images_are_read_and_scored(tmp_path):
    folder, out = published(tmp_path / "data", rows=2500), tmp_path / "real.json"
    names, Z, render = study._published(folder)
    assert names == ["red", "green"]
    images = render(np.arange(20)).reshape(20, -1, 3)
    assert np.corrcoef(images[:, 0, 0], Z[:20, 0])[0, 1] == pytest.approx(1)
    words = ["reproduce", "light-tunnel", "--data", str(folder), "--seeds", "1", "--jobs", "1"]
    assert cli.main([*words, "--out", str(out)]) == 0
    found = {row["method"]: row for row in json.loads(out.read_text())["rows"]}
    assert found["supervised"]["mcc_mean"] > 0.99
    assert found["concepts"]["mcc_mean"] > 0.9  # 250 images of the base
    assert found["concepts"]["r2_blue_mean"] is None


def test_faults_of_a_published_folder_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"no NAME/NAME\.csv"):
        study._published(tmp_path)
    folder = published(tmp_path / "data", rows=3)
    (folder / "uniform/images_32/1.png").unlink()
    with pytest.raises(ValueError, match=r"1\.png is not there"):
        study._published(folder)
    table = folder / "uniform/uniform.csv"
    pd.read_csv(table).drop(columns="pol_2").to_csv(table, index=False)
    with pytest.raises(ValueError, match=r"uniform\.csv has no columns \['pol_2'\]"):
        study._published(folder)


def test_three_colours_are_had_from_images_and_five_factors_are_not():
    pytest.importorskip("causalchamber")
    three, five = list(study._SCENES)[::2]
    found = study._run(6, three, 8000, "simulated")
    assert {row["method"]: row["mcc"] > 0.95 for row in found} == {
        "concepts": True,
        "supervised": True,
        "random projection": False,
    }
    [shuffled] = [
        row["mcc"]
        for row in study._run(6, three, 8000, "simulated", "shuffled")
        if row["method"] == "concepts"
    ]
    assert shuffled < 0.9
    bound = study._run(6, five, 8000, "simulated")[1]
    assert bound["method"] == "supervised"
    assert bound["r2"] < 0.8


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "causalchamber.simulators.lt", None)
    with pytest.raises(ImportError, match=r"conceptnb\[tunnel\]"):
        study._camera()
