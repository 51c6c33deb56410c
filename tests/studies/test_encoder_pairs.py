"""Pairs of encoders: what is compared, against the study of the shipped pair; training goes on."""

import numpy as np
import pytest

pytest.importorskip("open_clip")
from scipy.stats import ortho_group

from conceptnb import results
from conceptnb.commands.cli import main
from conceptnb.embeddings import clip, shapes3d
from conceptnb.embeddings.clip import clip_training
from conceptnb.studies import encoder_pairs as study
from tests.conftest import without_times


def embedding(values, seed, places):
    """Values at places (n_values, k), turned into eight dimensions, with noise."""
    rng = np.random.default_rng(seed)
    padded = np.pad(places[values], ((0, 0), (0, 8 - places.shape[1])))
    return (padded + 0.05 * rng.normal(size=padded.shape)) @ ortho_group.rvs(8, random_state=seed)


def test_the_same_arrangement_agrees_and_another_does_not():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10, 2000)
    places = rng.normal(size=(10, 2))
    pair = [embedding(values, seed, places) for seed in (1, 2)]
    row = study._agreement(pair, values)
    assert row["dimensions_0.95"] == [2, 2]
    assert row["smallest_0.95"] > 0.99
    assert row["accuracy"] > 0.9
    assert np.diff([sum(row[f"dimensions_{cut}"]) for cut in study.CUTS]).min() >= 0
    pair[1] = embedding(values, 2, np.random.default_rng(3).normal(size=(10, 2)))
    assert study._agreement(pair, values)["smallest_0.95"] < 0.8


@pytest.mark.slow
def test_the_shipped_pair_agrees_as_in_the_study_of_all_images():
    table = {
        row["factor"]: row["smallest_over_splits"][0]
        for row in results.load("clip").rows
        if row["table"] == "agreement" and row["models"] == ["small-vit", "small-resnet"]
    }
    rows = study.pair_runs("shipped", 0)
    assert [row["factor"] for row in rows] == [*shapes3d.FACTORS]
    for row in rows:
        assert row["smallest_0.95"] == pytest.approx(table[row["factor"]], abs=0.03)
        assert 10 / 1999 < row["mutual"] < 1
    assert len({(row["cka"], row["mutual"]) for row in rows}) == 1, "of the whole embeddings"


def test_a_training_that_was_killed_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(clip_training, "_SAVE_EVERY", 1)
    whole = study._trained("vit", 5, 3, tmp_path / "whole")
    step, taken = clip_training.ClipTraining.train_step, []

    def counted(training):
        if len(taken) == 2:
            raise KeyboardInterrupt
        taken.append(training.step)
        return step(training)

    with monkeypatch.context() as patch:
        patch.setattr(clip_training.ClipTraining, "train_step", counted)
        with pytest.raises(KeyboardInterrupt):
            study._trained("vit", 5, 3, tmp_path / "killed")
    again = study._trained("vit", 5, 3, tmp_path / "killed")
    assert again.name == whole.name
    assert again.read_bytes() == whole.read_bytes()
    assert [file.name for file in again.parent.iterdir()] == [whole.name]
    monkeypatch.setattr(clip_training.ClipTraining, "train_step", counted)  # would raise
    assert study._trained("vit", 5, 3, tmp_path / "killed") == again
    model = clip.create_small_model("vit", weights=again)
    assert model.text_projection.dtype.itemsize == 4


@pytest.mark.slow
def test_a_short_run_with_and_without_cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study, "_IMAGES", 1000)
    here = ["--backend", "sequential"]
    words = ["reproduce", "encoder-pairs", "--seeds", "4", "--steps", "2", *here]
    assert main([*words, "--out", "a.json"]) == 0
    assert main([*words, "--cache", "kept", "--out", "b.json"]) == 0
    first, second = (results.read(tmp_path / f"{name}.json") for name in "ab")
    kept = [without_times(table) for table in (first, second)]
    assert kept[0]["runs"] == kept[1]["runs"]
    assert len(list((tmp_path / "kept").glob("*.safetensors"))) == 2
    counts = [(run["weights"], run["seed"]) for run in first.runs[::6]]
    assert counts == [("shipped", 0), ("untrained", 0), ("untrained", 4), ("trained", 4)]
    assert len(first.rows) == 3 * 6


@pytest.mark.parametrize("wrong", [["--steps", "0"], ["--seeds", "1", "-1"]])
def test_steps_and_seeds_that_there_are_not_are_refused(wrong, capsys):
    assert main(["reproduce", "encoder-pairs", *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err
