"""What is wrong with an encoder is said in one line, with status 2, and nothing is written."""

import runpy
import shutil
import socket
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

pytest.importorskip("open_clip")

from conceptnb.commands.cli import main
from conceptnb.core.example_data import write_images
from conceptnb.embeddings.clip import WEIGHTS


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fruit")
    write_images(folder, images=60)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of weights of a small encoder, none of whose names says what is in it."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copy(WEIGHTS["vit"], folder / "weights.safetensors")
    whole = WEIGHTS["vit"].read_bytes()
    (folder / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    (folder / "pointer.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    (folder / "nothing.pt").write_bytes(b"")
    (folder / "empty").mkdir()
    return folder


BAD = [
    ("ViT-L-14", [], "ViT-L-14 does not say whose weights"),
    ("ViT-L-14/mine", [], "no weights 'mine' of ViT-L-14; it has: openai"),
    ("ViT-B-32/openai", [], "ViT-B-32/openai: We couldn't connect"),
    ("hf-hub:nobody/none", [], "hf-hub:nobody/none: We couldn't connect"),
    ("nobody/none", [], "nobody/none: We couldn't connect"),
    ("weights.safetensors", [], "does not say which architecture"),
    ("weights.safetensors", ["ViT-Z-32"], "is no architecture of open_clip: did you mean ViT-"),
    ("weights.safetensors", ["small-resnet"], "holds no weights of small-resnet"),
    ("weights.safetensors", ["ViT-B-32/openai"], "holds no weights of architecture='ViT-B-32/"),
    ("half.safetensors", ["small-vit"], "half.safetensors is damaged"),
    ("pointer.safetensors", ["small-vit"], "git lfs pull"),
    ("nothing.pt", ["small-vit"], "nothing.pt"),
    ("empty", [], "neither open_clip_config.json nor config.json"),
]


@pytest.mark.parametrize(("encoder", "architecture", "said"), BAD)
def test_an_encoder_that_cannot_be_had(
    encoder, architecture, said, fruit, files, tmp_path, capsys, monkeypatch
):
    def no_network(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.chdir(files)
    words = ["directions", str(fruit), "--labels", str(fruit / "labels.csv")]
    more = ["--encoder", encoder, *(["--architecture", *architecture] if architecture else [])]
    assert main([*words, "--out", str(tmp_path / "out"), *more]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list((tmp_path / "out").glob("*"))
    if "--architecture" not in more:
        again = ["reproduce", "clip", "--models", encoder, "--images", "64", "--jobs", "1"]
        assert main([*again, "--backend", "sequential", "--out", str(tmp_path / "x.json")]) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
        assert not (tmp_path / "x.json").exists()


def test_apply_refuses_other_weights_in_one_line(fruit, tmp_path, capsys, monkeypatch):
    weights, new = tmp_path / "weights.safetensors", tmp_path / "new"
    shutil.copy(WEIGHTS["vit"], weights)
    words = ["directions", str(fruit), "--labels", str(fruit / "labels.csv"), "--out"]
    more = ["--encoder", str(weights), "--architecture", "small-vit", "--factors", "ripeness"]
    assert main([*words, str(tmp_path / "out"), *more]) == 0
    new.mkdir()
    for image in sorted(fruit.glob("*.png"))[:5]:
        shutil.copy(image, new)
    program = str(tmp_path / "out" / "apply.py")

    def refused(said, *given):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", [program, *map(str, given)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(program, run_name="__main__")
        shown = capsys.readouterr()
        assert (ended.value.code, shown.out, shown.err.count("\n")) == (2, "", 1)
        assert said in shown.err

    refused("python apply.py FOLDER")
    state = load_file(weights)
    key = next(name for name in state if name.endswith("weight"))
    save_file(state | {key: np.roll(state[key], 1)}, weights)
    refused("other weights", new)
    shutil.copy(WEIGHTS["vit"], weights)
    monkeypatch.setattr(sys, "argv", [program, str(new)])
    runpy.run_path(program, run_name="__main__")
    assert capsys.readouterr().out.count("\n") == 6
    (new / "no-image.png").write_text("no image")
    refused("no-image.png", new)
