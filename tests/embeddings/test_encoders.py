"""`load_encoder`: files that say little or nothing, archives, damage, other weights."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

pytest.importorskip("open_clip")
import open_clip
from open_clip import factory, pretrained

from conceptnb.embeddings import shapes3d
from conceptnb.embeddings.clip import load_encoder

CONFIG = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8},
    "text_cfg": {
        "context_length": 12, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 2,
    },
}  # fmt: skip
IMAGES = shapes3d.RenderedShapes(64).images(np.arange(0, 480_000, 90_001))
TEXTS = ["a red ball", "the sea"]


@pytest.fixture
def tiny(monkeypatch):
    """An architecture as ViT-B-32 is: with a twin, and tags trained with GELU and QuickGELU."""
    monkeypatch.setitem(factory._MODEL_CONFIGS, "Tiny", CONFIG)
    monkeypatch.setitem(factory._MODEL_CONFIGS, "Tiny-quickgelu", CONFIG | {"quick_gelu": True})
    tags = {"openai": pretrained._pcfg(quick_gelu=True), "laion": pretrained._pcfg()}
    monkeypatch.setitem(pretrained._PRETRAINED, "Tiny", tags)
    monkeypatch.setitem(pretrained._PRETRAINED, "Tiny-quickgelu", {"openai": tags["openai"]})


def random_model(quick=False):
    torch.manual_seed(3)
    model = open_clip.CLIP(**CONFIG, quick_gelu=quick)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.2 * torch.randn_like(value))
    return model.eval()


def own(model, what):
    """Embeddings by open_clip itself, with OpenAI's preprocessing."""
    transform = open_clip.image_transform(32, is_train=False)
    with torch.inference_mode():
        if what is TEXTS:
            return model.encode_text(open_clip.SimpleTokenizer(context_length=12)(TEXTS)).numpy()
        from PIL import Image  # noqa: PLC0415

        return model.encode_image(
            torch.stack([transform(Image.fromarray(image)) for image in IMAGES])
        ).numpy()


def same(encoder, model):
    pairs = [(encoder.embed_images(IMAGES), own(model, IMAGES))]
    pairs += [(encoder.embed_texts(TEXTS), own(model, TEXTS))]
    return max(np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in pairs) < 1e-5


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("how", ["safetensors", "state_dict", "training", "module"])
def test_a_file_is_read_as_its_architecture_says(quick, how, tmp_path, tiny):
    model, path = random_model(quick), tmp_path / "openai-vit-laion.bin"  # a name that misleads
    state = model.state_dict()
    if how == "safetensors":
        save_file(state, path)
    else:
        state = (
            {f"module.{key}": value for key, value in state.items()} if how == "module" else state
        )
        torch.save({"epoch": 3, "state_dict": state} if how == "training" else state, path)
    named = "Tiny-quickgelu" if quick else "Tiny/laion"
    assert same(load_encoder(path, architecture=named), model)
    twin = load_encoder(path, architecture="Tiny/openai" if not quick else "Tiny/laion")
    assert not same(twin, model)
    with pytest.raises(ValueError, match="architecture="):
        load_encoder(path)
    with pytest.raises(ValueError, match="holds no weights of architecture='ViT-S-32'"):
        load_encoder(path, architecture="ViT-S-32")


def test_what_a_file_does_not_say_is_asked_for(tmp_path, tiny):
    path = tmp_path / "w.safetensors"
    save_file(random_model().state_dict(), path)
    with pytest.raises(ValueError, match=r"both: give .*=Tiny/laion if .* GELU, and Tiny/openai"):
        load_encoder(path, architecture="Tiny")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_encoder(path, architecture="Tiny-quickgelu")


def test_where_no_published_weights_say_it_defaults_are_said(tmp_path, tiny, monkeypatch):
    monkeypatch.delitem(pretrained._PRETRAINED, "Tiny")
    path = tmp_path / "w.safetensors"
    save_file(random_model().state_dict(), path)
    with pytest.warns(UserWarning, match="w.safetensors does not say how images are prepared"):
        assert same(load_encoder(path, architecture="Tiny"), random_model())


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_images_of_more_than_8_bits_are_refused(mode):
    from PIL import Image  # noqa: PLC0415

    deep = Image.fromarray(np.full((40, 40), 9000, dtype=np.uint16 if mode == "I;16" else np.int32))
    with pytest.raises(ValueError, match=rf"images\[1\] has mode {mode}"):
        load_encoder("small-vit").embed_images([Image.new("L", (9, 9)), deep.convert(mode)])


@pytest.mark.parametrize("tag", ["openai", "laion"])
def test_a_tag_says_the_activation(tag, tmp_path, tiny, monkeypatch):
    path, quick = tmp_path / "file", tag == "openai"
    save_file(random_model(quick).state_dict(), path)
    path = path.rename(tmp_path / "file.safetensors")
    monkeypatch.setitem(pretrained._PRETRAINED["Tiny"][tag], "file", str(path))
    encoder = load_encoder(f"Tiny/{tag}")
    assert same(encoder, random_model(quick))
    assert encoder.about["activation"] == ("QuickGELU" if quick else "GELU")


def openai_archive(path, quick=True):
    """Write a model as OpenAI publishes it: TorchScript, half precision, sizes as buffers."""
    model = random_model(quick)
    tokens = open_clip.SimpleTokenizer(context_length=12)(TEXTS)
    for name, size in [("input_resolution", 32), ("context_length", 12), ("vocab_size", 49408)]:
        if hasattr(model, name):
            delattr(model, name)
        model.register_buffer(name, torch.tensor(size))
    inputs = {"encode_image": torch.zeros(1, 3, 32, 32), "encode_text": tokens}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive = torch.jit.trace_module(model, inputs, check_trace=False)
        torch.jit.save(archive, path)


def test_an_archive_of_torchscript_is_read_without_running_it(tmp_path, tiny, monkeypatch):
    path = tmp_path / "download.pt"
    openai_archive(path)

    def run(*_, **__):
        raise AssertionError("the archive's code was loaded")

    monkeypatch.setattr(torch.jit, "load", run)
    encoder = load_encoder(path)
    assert same(encoder, random_model(True))
    assert encoder.about["activation"] == "QuickGELU"
    assert same(load_encoder(path, architecture="Tiny/openai"), random_model(True))
    with pytest.raises(ValueError, match="trained with QuickGELU"):
        load_encoder(path, architecture="Tiny/laion")


class Runs:
    def __reduce__(self):
        return print, ("code was run",)


def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, tiny, capsys):
    good = tmp_path / "good.safetensors"
    save_file(random_model().state_dict(), good)
    checkpoint = tmp_path / "good.pt"
    torch.save(random_model().state_dict(), checkpoint)
    archive = tmp_path / "archive.pt"
    openai_archive(archive)
    half = {}
    for file in (good, checkpoint, archive):
        half[file.name] = tmp_path / f"half-{file.name}"
        half[file.name].write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    lfs = tmp_path / "lfs.safetensors"
    lfs.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    objects = tmp_path / "objects.pt"
    torch.save({"model": Runs()}, objects)
    plain = tmp_path / "plain.pkl"
    plain.write_bytes(pickle.dumps({"a": Runs()}))
    nothing = tmp_path / "nothing.pt"
    nothing.write_bytes(b"")
    nan = tmp_path / "nan.safetensors"
    state = random_model().state_dict()
    state["visual.proj"][0, 0] = torch.nan
    save_file(state, nan)
    refused = {
        half["good.safetensors"]: "damaged", half["good.pt"]: "damaged",
        half["archive.pt"]: "damaged", lfs: "git lfs pull", objects: "run code",
        plain: "run code|no weights", nothing: "damaged|no weights", nan: "NaN",
    }  # fmt: skip
    for path, said in refused.items():
        with pytest.raises(ValueError, match=said) as error:
            load_encoder(path, architecture="Tiny/laion")
        assert "\n" not in str(error.value)
        assert path.name in str(error.value)
    assert "code was run" not in capsys.readouterr().out


def test_other_weights_are_refused(tmp_path, tiny):
    path = tmp_path / "w.safetensors"
    state = random_model().state_dict()
    save_file(state, path)
    weights = load_encoder(path, architecture="Tiny/laion").weights
    assert load_encoder(path, architecture="Tiny/laion", weights=weights).weights == weights
    state["visual.proj"][0, 0] += 1e-3
    save_file(state, path)
    with pytest.raises(ValueError, match="other weights"):
        load_encoder(path, architecture="Tiny/laion", weights=weights)


def test_folders_that_do_not_say_enough_are_refused(tmp_path):
    with pytest.raises(ValueError, match="open_clip_config"):
        load_encoder(tmp_path)
    (tmp_path / "open_clip_config.json").write_text('{"model_cfg": {}}')
    with pytest.raises(ValueError, match="one file of weights"):
        load_encoder(tmp_path)
    save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="normalised"):
        load_encoder(tmp_path)


@pytest.mark.parametrize("name", ["ViT-Z", "ViT-L-14", "ViT-L-14/mine", "no/such/name", "~"])
def test_unknown_names_are_refused_with_those_that_are_known(name):
    with pytest.raises((ValueError, FileNotFoundError), match=r"ViT-|there is no|neither"):
        load_encoder(name)


def test_precision_and_device():
    full = load_encoder("small-vit").embed_images(IMAGES)
    low = load_encoder("small-vit", precision="bfloat16").embed_images(IMAGES)
    gap = np.linalg.norm(full - low) / np.linalg.norm(full)
    assert 0 < gap < 0.05
    assert low.dtype == np.float32
    with pytest.raises(ValueError, match="float32"):
        load_encoder("small-vit", precision="int8")
    with pytest.raises(ValueError, match="device='gpu9'"):
        load_encoder("small-vit", device="gpu9")
