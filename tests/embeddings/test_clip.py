"""The small CLIP models, their training, embeddings and captions. Loads torch."""

import json
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from safetensors.torch import load_file

pytest.importorskip("open_clip")
import open_clip
import torch

from conceptnb import results
from conceptnb.commands.cli import main
from conceptnb.embeddings import clip, shapes3d
from conceptnb.embeddings.clip import batches
from conceptnb.embeddings.shapes3d.factors import FACTORS, SIZES


class FixedModel:
    """Embeds an image as its mean colour, slowly counted; breaks off when told to."""

    name, dimension, batch = "fixed", 3, 256
    about, precision = {"mean": "none"}, "float32"

    def __init__(self, fail_after=None):
        self.model = torch.nn.Linear(1, 1)
        torch.nn.init.zeros_(self.model.weight)
        torch.nn.init.zeros_(self.model.bias)
        self.seen, self.fail_after = 0, fail_after

    @property
    def weights(self):
        return str([value.tolist() for value in self.model.parameters()])

    def embed_images(self, images):
        if self.fail_after is not None and self.seen >= self.fail_after:
            raise KeyboardInterrupt
        self.seen += len(images)
        return images.mean(axis=(1, 2)).astype(np.float32)


def test_tokens_say_each_word_and_end_with_the_largest():
    tokenize = clip.CaptionTokenizer()
    factors = shapes3d.sample_factors(50, np.random.default_rng(0))
    tokens = tokenize(shapes3d.captions(factors))
    assert tokens.shape == (50, 14)
    assert (tokens.argmax(dim=1) == 13).all()  # where open_clip reads the embedding
    assert len({tuple(row.tolist()) for row in tokens}) == 50
    for kind in clip.SMALL_KINDS:
        model = clip.create_small_model(kind)
        assert model.token_embedding.num_embeddings == tokenize.vocab_size
        assert model.positional_embedding.shape[0] == 14
    with pytest.raises(ValueError, match="'zebra'"):
        tokenize("big red zebra")
    with pytest.raises(ValueError, match="more than 12"):
        tokenize("red " * 13)


def grown(n_hues):
    """Progress of a model that is shown the given number of hues."""
    progress = batches.Progress()
    progress.n_hues = n_hues
    return progress


@given(seed=st.integers(0, 2**32), n_hues=st.integers(1, 10), step=st.integers(0, 3000))
def test_batches_hold_groups_that_differ_in_one_factor_and_nothing_held_out(seed, n_hues, step):
    progress = grown(n_hues)
    factors, varied = batches.draw_batch(progress, step, 64, np.random.default_rng(seed))
    assert factors.shape == (64, 6)
    assert not shapes3d.held_out_combinations(factors).any()
    n_groups = len(varied)
    assert n_groups == (0 if step <= 26 else 12 if step >= 78 else n_groups)
    groups = factors[: n_groups * batches.GROUP].reshape(n_groups, batches.GROUP, 6)
    for group, factor in zip(groups, varied, strict=True):
        distinct = [len(set(column)) for column in group.T]
        assert distinct[factor] == batches.GROUP
        assert all(n == 1 for k, n in enumerate(distinct) if k != factor)


def test_near_groups_show_neighbours_on_the_wheel():
    factors, varied = batches.draw_batch(
        grown(10), 1000, 400, np.random.default_rng(0), near_rate=1.0
    )
    groups = factors[: 4 * len(varied)].reshape(-1, 4, 6)
    assert not shapes3d.held_out_combinations(factors).any()
    for group, factor in zip(groups, varied, strict=True):
        assert (np.ptp(np.delete(group, factor, axis=1), axis=0) == 0).all()
        if factor < 3:
            rest = set(range(10)) - set(group[:, factor].tolist())
            gaps = np.diff(sorted(rest))  # the other six hues are neighbours, too
            assert (gaps > 1).sum() <= 1
    same = [
        batches.draw_batch(grown(10), 500, 64, np.random.default_rng(3), **options)[0]
        for options in ({}, {"near_rate": 0.0})
    ]
    np.testing.assert_array_equal(*same)  # so that earlier cycles see the data they saw


def test_captions_of_a_group_leave_the_same_open_and_name_what_differs():
    rng = np.random.default_rng(0)
    factors, varied = batches.draw_batch(grown(10), 1000, 4000, rng)
    left_open = batches.open_attributes(varied, len(factors), 0.3, rng)
    assert left_open.shape == factors.shape
    n = len(varied)
    groups = left_open[: 4 * n].reshape(n, 4, 6)
    assert (groups == groups[:, :1]).all()
    assert not groups[np.arange(n), :, varied].any()
    singles = left_open[4 * n :]
    assert abs(singles.mean() - 0.3) < 0.03
    # the number of open attributes varies more than with one chance for all
    assert singles.sum(axis=1).var() > 1.5 * 6 * 0.3 * 0.7


class ProductModel:
    """Texts and images embed as one-hot words, whose hue parts have different lengths."""

    def __init__(self, weights):
        self.weights = weights

    def embed_texts(self, texts):
        return np.stack([self.embed(words(text)) for text in texts])

    def embed(self, row):
        parts = [np.eye(size)[value] for size, value in zip(SIZES, row, strict=True)]
        parts[2] = parts[2] * self.weights[row[2]]
        return np.concatenate(parts)


def words(text):
    """Factors of a caption, by looking its words up."""
    scale, hue, shape, _, floor, _, _, wall, _, _, _, angle = text.split()
    named = {
        "floor_hue": floor, "wall_hue": wall, "object_hue": hue,
        "scale": scale, "shape": shape, "orientation": angle,
    }  # fmt: skip
    return [shapes3d.WORDS[name].index(named[name]) for name in FACTORS]


def test_the_best_caption_is_found_word_by_word():
    model = ProductModel(np.linspace(0.5, 2, 10))
    factors = shapes3d.sample_factors(40, np.random.default_rng(0))
    Z = np.stack([model.embed(row) for row in factors])
    start = shapes3d.sample_factors(40, np.random.default_rng(1))
    np.testing.assert_array_equal(clip.best_captions(model, Z, start), factors)
    one = clip.best_captions(model, Z, start, sweeps=1)
    fit = [np.sum(clip.unit(Z) * clip.unit(model.embed_texts(shapes3d.captions(f))), axis=1)
           for f in (start, one)]  # fmt: skip
    assert (fit[1] >= fit[0]).all()  # an exchange never makes the fit worse
    assert set(clip.accuracies(factors, factors).values()) == {1.0}
    near = factors.copy()
    near[:, 3] = np.where(factors[:, 3] > 0, factors[:, 3] - 1, 1)  # one step off is right
    assert clip.accuracies(near, factors)["scale"] == 1


@pytest.mark.parametrize("n_hues", [1, 4, 10])
def test_the_palette_of_a_batch_is_that_of_the_progress(n_hues):
    factors = batches.draw_batch(grown(n_hues), 0, 600, np.random.default_rng(0))[0]
    assert [len(np.unique(column)) for column in factors.T] == [n_hues] * 3 + list(SIZES[3:])
    if n_hues == 1:
        assert len(np.unique(factors[0, :3])) == 3  # floor, wall and object can be told apart


def test_the_palette_grows_when_every_factor_is_told_apart():
    progress = batches.Progress(memory=0.0, patience=10)
    geometry = np.array([3, 4, 5])
    progress.update(50, geometry, np.array([0.1, 0.1, 0.9]))
    assert progress.n_hues == 1  # orientation is not learned yet
    progress.update(60, geometry, np.array([0.1, 0.1, 0.6]))
    assert (progress.n_hues, progress.grown) == (2, 60)
    progress.update(69, geometry, np.full(3, 0.1))
    assert progress.n_hues == 2  # patience
    progress.update(70, geometry, np.full(3, 0.1))
    progress.update(80, geometry, np.full(3, 0.1))
    progress.update(90, geometry, np.full(3, 0.1))
    assert progress.n_hues == 4  # with four hues there are groups that vary them
    progress.update(200, np.arange(6), np.full(6, 0.1))
    for step in range(210, 400, 10):
        progress.update(step, np.arange(6), np.full(6, 0.1))
    assert progress.n_hues == 10


def test_hard_factors_are_drawn_more_often():
    progress = batches.Progress(memory=0.5)
    np.testing.assert_array_equal(progress.weights()[:3], 0)  # one hue cannot be varied
    progress.n_hues = 10
    assert np.ptp(progress.weights()) < 1e-12
    progress.update(0, np.array([1, 1, 4]), np.array([3.0, 1.0, 0.0]))
    np.testing.assert_allclose(progress.losses[[1, 4]], [(2 + np.log(4)) / 2, np.log(4) / 2])
    assert (progress.weights().argmax(), progress.weights().argmin()) == (1, 4)


def test_the_learning_rate_rises_and_falls_in_every_cycle():
    plan = clip.TrainingPlan(
        cycles=(clip.Cycle(100), clip.Cycle(40)), restart=0.5, warm_up=10, cool_down=20
    )
    rates = np.array([plan.rate(step) for step in range(plan.steps)])
    assert plan.steps == 140
    assert [plan.cycle(step)[1] for step in (0, 99, 100, 139)] == [0, 0, 100, 100]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 10)
    np.testing.assert_allclose(rates[10:80], 1)
    np.testing.assert_allclose(rates[80:100], np.arange(20, 0, -1) / 20)
    np.testing.assert_allclose(rates[100:110], np.arange(1, 11) / 20)
    np.testing.assert_allclose(rates[-20:], np.arange(20, 0, -1) / 40)


def test_training_lowers_the_loss_and_resumes_where_it_stopped(tmp_path):
    plan = clip.TrainingPlan(cycles=(clip.Cycle(4),), batch_size=16, warm_up=1, cool_down=2)
    whole = clip.ClipTraining("vit", plan)
    whole.run()
    half = clip.ClipTraining("vit", plan)
    for _ in range(2):
        half.losses.append(half.train_step())
    half.save(tmp_path / "half.pt")
    resumed = clip.ClipTraining("vit", plan)
    resumed.load(tmp_path / "half.pt")
    resumed.run(tmp_path / "half.pt")
    np.testing.assert_allclose(resumed.losses, whole.losses, rtol=1e-4)
    assert whole.losses[-1] < whole.losses[0]
    with pytest.raises(ValueError, match="another checkpoint"):
        clip.ClipTraining("resnet", plan).load(tmp_path / "half.pt")


def test_the_command_trains_and_records_what_it_took(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["train-clip", "vit", "--steps", "2", "--checkpoint", "half.pt"]
    assert main(command) == 0
    written, shipped = (load_file(f) for f in ("shapes-vit.safetensors", clip.WEIGHTS["vit"]))
    assert {k: (v.dtype, v.shape) for k, v in written.items()} == {
        k: (v.dtype, v.shape) for k, v in shipped.items()
    }
    assert clip.load_encoder("shapes-vit.safetensors", architecture="small-vit").dimension == 64
    record = json.loads((tmp_path / "shapes-vit.json").read_text())
    assert (record["steps"], record["command"]) == (2, "conceptnb train-clip vit --steps 2")
    assert set(record) == set(json.loads(clip.WEIGHTS["vit"].with_suffix(".json").read_text()))
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0  # from the checkpoint, which has finished
    assert main(["train-clip", "vit", "--out", "weights.pt"]) == 2


@pytest.mark.slow
def test_reproduce_zero_shot_on_a_few_images(tmp_path):
    out = tmp_path / "few.json"
    assert main(["reproduce", "clip-zeroshot", "--images", "20", "--out", str(out)]) == 0
    content = json.loads(out.read_text())
    assert len(content["rows"]) == 2 * 3 * 6
    assert content["notes"]["training"]["vit"]["steps"] == 2400


@pytest.mark.parametrize("kind", clip.SMALL_KINDS)
def test_shipped_weights_are_small_and_load(kind, tmp_path):
    path = clip.WEIGHTS[kind]
    assert path.stat().st_size < 3e6
    model = clip.load_encoder(f"small-{kind}")
    copy = tmp_path / f"shapes-{kind}.safetensors"
    copy.write_bytes(path.read_bytes())
    images = shapes3d.RenderedShapes(32).images([0, 1000])
    np.testing.assert_allclose(
        clip.load_encoder(copy, architecture=f"small-{kind}").embed_images(images),
        model.embed_images(images),
        rtol=1e-5,
    )


@pytest.mark.parametrize("kind", clip.SMALL_KINDS)
def test_models_classify_combinations_they_never_saw(kind):
    rng = np.random.default_rng(5)
    factors = shapes3d.sample_factors(8000, rng)
    factors = factors[shapes3d.held_out_combinations(factors)][:600]
    model = clip.load_encoder(f"small-{kind}")
    Z = model.embed_images(shapes3d.Renderer(32)(factors))
    by_mean = clip.zero_shot(model, Z, rng)
    means = clip.accuracies(by_mean, factors)
    best = clip.accuracies(clip.best_captions(model, Z[:150], by_mean[:150]), factors[:150])
    recorded = {
        row["factor"]: row
        for row in results.load("clip_zeroshot").rows
        if (row["kind"], row["weights"], row["combinations"]) == (kind, "trained", "held out")
    }
    assert set(recorded) == set(shapes3d.FACTORS)
    for factor, row in recorded.items():
        # what a model is meant to reach
        assert row["accuracy"] >= (0.95 if "hue" in factor else 0.90)
        # the recorded numbers, within four standard errors of these smaller samples
        for again, p, n in (
            (means[factor], row["accuracy_mean_captions"], 600),
            (best[factor], row["accuracy"], 150),
        ):
            assert abs(again - p) < 4 * np.sqrt(max(p * (1 - p), 0.01) / n)


def test_larger_images_are_averaged():
    model = clip.load_encoder("small-vit-untrained")
    small = shapes3d.Renderer(32)(shapes3d.sample_factors(5, np.random.default_rng(0)))
    large = small.repeat(2, axis=1).repeat(2, axis=2)
    np.testing.assert_allclose(model.embed_images(large), model.embed_images(small), rtol=1e-4)


def test_an_interrupted_embedding_ends_with_the_same_array(tmp_path):
    shapes, index = shapes3d.RenderedShapes(32), np.arange(0, 480_000, 4801)
    options = {"shard_size": 16}
    expected = clip.embed_images(FixedModel(), shapes, index, **options)
    with pytest.raises(KeyboardInterrupt):
        clip.embed_images(FixedModel(48), shapes, index, cache=tmp_path, **options)
    again = FixedModel()
    resumed = clip.embed_images(again, shapes, index, cache=tmp_path, **options)
    np.testing.assert_array_equal(resumed, expected)
    assert again.seen == len(index) - 48
    reused = FixedModel()
    cached = clip.embed_images(reused, shapes, index, cache=tmp_path, **options)
    assert isinstance(cached, np.memmap)
    assert reused.seen == 0
    other = clip.embed_images(reused, shapes, index + 1, cache=tmp_path, **options)
    assert reused.seen == len(index)  # other images, another file
    assert not np.array_equal(other, cached)


def test_a_killed_embedding_goes_on_where_it_stopped(tmp_path):
    """SIGKILL at some shard, in another process; what was finished is not embedded again."""
    shapes, index = shapes3d.RenderedShapes(32), np.arange(0, 480_000, 2401)
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[2])\n"
        "import numpy as np\n"
        "from test_clip import FixedModel\n"
        "from conceptnb.embeddings import clip, shapes3d\n"
        "class Slow(FixedModel):\n"
        "    def embed_images(self, images):\n"
        "        time.sleep(0.05)\n"
        "        return super().embed_images(images)\n"
        "shapes, index = shapes3d.RenderedShapes(32), np.arange(0, 480_000, 2401)\n"
        "options = {'cache': sys.argv[1], 'shard_size': 8}\n"
        "clip.embed_images(Slow(), shapes, index, **options)\n"
    )
    here = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path), here]) as process:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and process.poll() is None:
            states = list(tmp_path.glob("*.json"))
            if states and len(json.loads(states[0].read_text())["done"]) >= 3:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    again = FixedModel()
    resumed = clip.embed_images(again, shapes, index, cache=tmp_path, shard_size=8)
    assert 0 < again.seen <= len(index) - 24
    whole = clip.embed_images(FixedModel(), shapes, index, shard_size=8)
    np.testing.assert_array_equal(resumed, whole)


def test_workers_fill_one_array(tmp_path):
    shapes, index = shapes3d.RenderedShapes(32), np.arange(0, 480_000, 12_001)
    alone = clip.embed_images(FixedModel(), shapes, index, shard_size=16)
    for backend, cache in (("threading", None), ("loky", tmp_path)):
        with parallel_config(backend=backend, n_jobs=2):
            shared = clip.embed_images(FixedModel(), shapes, index, cache=cache, shard_size=16)
        np.testing.assert_array_equal(shared, alone)


def test_a_cache_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    shapes, index = shapes3d.RenderedShapes(32), np.arange(0, 480_000, 48_001)
    options = {"cache": tmp_path}
    clip.embed_images(FixedModel(), shapes, index, **options)
    other = FixedModel()
    torch.nn.init.ones_(other.model.weight)
    with pytest.raises(ValueError, match="holds embeddings of other weights"):
        clip.embed_images(other, shapes, index, **options)
    with pytest.raises(ValueError, match="holds embeddings of other shard_size"):
        clip.embed_images(FixedModel(), shapes, index, shard_size=3, **options)
    state = next(tmp_path.glob("*.json"))
    record, [array] = json.loads(state.read_text()), tmp_path.glob("*.npy")
    expected = np.load(array)
    np.save(array, np.zeros_like(expected))
    for done in ([99], []):  # of no shard: everything is embedded, and no row of zeros remains
        state.write_text(json.dumps(record | {"done": done}))
        np.testing.assert_array_equal(
            clip.embed_images(FixedModel(), shapes, index, **options), expected
        )
    state.write_text(json.dumps(record | {"done": 99}))
    with pytest.raises(ValueError, match="no readable record"):
        clip.embed_images(FixedModel(), shapes, index, **options)
    state.write_text("{")
    with pytest.raises(ValueError, match="no readable record"):
        clip.embed_images(FixedModel(), shapes, index, **options)
    free = namedtuple("Usage", "free")(100)
    monkeypatch.setattr("shutil.disk_usage", lambda path: free)
    with pytest.raises(ValueError, match=r"name another folder"):
        clip.embed_images(FixedModel(), shapes, index + 1, **options)


def test_moving_changes_one_valuation_by_the_gap_of_its_planes():
    rng = np.random.default_rng(0)
    factors = shapes3d.sample_factors(500, rng)
    Z = rng.normal(size=(500, 9))
    means = clip.value_means(Z, factors[:, 4])
    target = (factors[:, 4] + 1) % 4
    moved = clip.move(Z, means, factors[:, 4], target)
    a = rng.normal(size=9)
    np.testing.assert_allclose((moved - Z) @ a, (means @ a)[target] - (means @ a)[factors[:, 4]])
    np.testing.assert_allclose(clip.move(moved, means, target, factors[:, 4]), Z)
    np.testing.assert_array_equal(clip.nearest(3 * Z, Z), np.arange(500))
    assert set(clip.accuracies(factors, factors).values()) == {1.0}


def test_captions_choose_their_environment():
    model = clip.load_encoder("small-vit")
    factors = shapes3d.sample_factors(1000, np.random.default_rng(0))
    Z = model.embed_images(shapes3d.Renderer(32)(factors))
    shares = []
    for caption, row in zip(shapes3d.captions(factors[:20]), factors[:20], strict=True):
        best = clip.caption_environment(model, Z, caption, 5)
        shares.append((factors[best, 1] == row[1]).mean())
    assert np.mean(shares) > 0.5  # a tenth by chance; and hardly any image fits in all six words
    same, _ = clip.text_agreement(model, Z, factors, "scale", np.random.default_rng(0))
    assert same.mean() > 0.3


def test_environments_hold_the_images_that_fit_their_caption():
    model = clip.load_encoder("small-vit")
    factors = shapes3d.sample_factors(600, np.random.default_rng(1))
    Z = model.embed_images(shapes3d.Renderer(32)(factors))
    texts = [clip.vague_caption("scale", 0), clip.vague_caption("shape", 2)]
    assert texts[0].startswith("tiny coloured thing on coloured floor")
    rows, environment = clip.environments_from_captions(model, Z, texts, 50)
    np.testing.assert_array_equal(np.bincount(environment), [600, 50, 50])
    np.testing.assert_array_equal(rows[environment == 0], np.arange(600))
    # most fit, against an eighth and a quarter of all images
    assert (factors[rows[environment == 1], 3] <= 1).mean() > 0.8
    assert (factors[rows[environment == 2], 4] == 2).mean() > 0.8


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: clip.load_encoder("ViT-Z"), ValueError, "small-vit"),
        (lambda: clip.load_encoder("none/RN101.pt"), FileNotFoundError, "checkpoint"),
        (lambda: clip.create_small_model("mlp"), ValueError, "vit, resnet"),
        (lambda: clip.embed_images(FixedModel(), None, []), ValueError, "index"),
        (
            lambda: clip.embed_images(FixedModel(), None, [0], shard_size=0),
            ValueError,
            "shard_size",
        ),
        (
            lambda: clip.load_encoder("small-vit-untrained").embed_images(np.zeros((1, 32, 32, 3))),
            ValueError,
            "uint8",
        ),
        (
            lambda: clip.caption_environment(None, np.eye(3), "", 4),
            ValueError,
            "n=4",
        ),
        (lambda: clip.best_captions(None, np.eye(3), [[0] * 6]), ValueError, "1 rows for 3"),
        (
            lambda: clip.best_captions(None, np.eye(1), [[0] * 6], sweeps=0),
            ValueError,
            "sweeps must be at least 1",
        ),
        (
            lambda: clip.text_agreement(
                clip.load_encoder("small-vit-untrained"),
                np.eye(2),
                [[0, 0, 0, 0, 3, 0]] * 2,
                "shape",
                np.random.default_rng(0),
            ),
            ValueError,
            "shape=0 has no image",
        ),
    ],
)
def test_bad_input_is_refused_with_a_way_out(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.slow
def test_reproduce_clip_on_rendered_images(tmp_path):
    out = tmp_path / "clip-small.json"
    arguments = ["reproduce", "clip", "--models", "small-vit", "small-resnet"]
    arguments += ["--images", "800", "--cache", str(tmp_path), "--out", str(out)]
    assert main(arguments) == 0
    content = json.loads(out.read_text())
    rows = content["rows"]
    assert sum(row["table"] == "valuations" for row in rows) == 2 * sum(SIZES)
    assert {row["factor"] for row in rows if row["table"] == "agreement"} == set(FACTORS)
    assert "not the published" in content["notes"]["data"]
    assert main(["reproduce", "clip", "--images", "0"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture",
    ["ViT-B-32-quickgelu", pytest.param("RN101-quickgelu", marks=pytest.mark.long)],
)
def test_real_architectures_and_the_published_layout_go_through_reproduce(
    architecture, tmp_path, published_labels
):
    """Random weights from a local checkpoint, a file with the published layout, 90 images."""
    import h5py  # noqa: PLC0415

    data, weights = tmp_path / "3dshapes.h5", tmp_path / "weights.pt"
    index = np.sort(np.random.default_rng(2).choice(shapes3d.N_IMAGES, 90, replace=False))
    shapes = shapes3d.RenderedShapes(64)
    with h5py.File(data, "w") as file:
        images = file.create_dataset(
            "images", (shapes3d.N_IMAGES, 64, 64, 3), np.uint8, chunks=(1, 64, 64, 3)
        )
        for position, image in zip(index, shapes.images(index), strict=True):
            images[position] = image
        grid = shapes3d.index_to_factors(np.arange(shapes3d.N_IMAGES))
        file["labels"] = published_labels(grid)
    torch.manual_seed(0)
    model = open_clip.create_model(architecture)
    torch.save(model.state_dict(), weights)
    del model

    out = tmp_path / "real.json"
    arguments = ["reproduce", "clip", "--models", str(weights), "--data", str(data)]
    arguments += ["--architecture", architecture]
    # with seed 2 both halves of the 90 images hold every value of every factor
    arguments += ["--images", "90", "--seed", "2", "--cache", str(tmp_path), "--out", str(out)]
    assert main(arguments) == 0
    content = json.loads(out.read_text())
    assert content["notes"]["data"] == "the published 3D Shapes"
    assert sum(row["table"] == "valuations" for row in content["rows"]) == sum(SIZES)
