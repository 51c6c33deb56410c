"""Every command, every kind of fault: one line that names it and a way out, and the exit status."""

from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from conceptnb import results
from conceptnb.commands.cli import GROUP, _what_is_said, main
from conceptnb.commands.options import MODEL, Command, Whole
from conceptnb.commands.reproduce import CLIP_MODELS, reproduce
from conceptnb.core.example_data import write_environments
from conceptnb.core.problems import PAPER_SEEDS, TABLE_1
from conceptnb.embeddings import clip
from conceptnb.embeddings.shapes3d.factors import N_IMAGES
from conceptnb.steering.language_models import SMOLLM2
from conceptnb.steering.small_models import small_models
from conceptnb.steering.toy_corpora import CORPUS_KINDS
from conceptnb.studies.steering_fresh import EVIDENCE

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["repository-code"]
STUDIES = [f"reproduce {name}" for name in reproduce.commands]
WORDS = [*(name for name in GROUP.places if name != "reproduce"), *STUDIES]
WRITERS = [words for words in WORDS if words != "results"]
ENOUGH = {
    "learn": ["beans.csv", "--out", "report"],
    "directions": ["rows.csv", "--labels", "labels.csv", "--out", "report"],
    "steer": ["--model", "model", "--questions", "questions.csv", "--out", "report"],
    "train-clip": ["vit", "--steps", "1"],
    "train-language-model": ["--corpus", "alike", "--seeds", "0"],
    "score": ["--model", "model", "--data", "questions.csv"],
    "reproduce theory": ["--part", "nested"],
}
"""Words without which a command does not start."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with good and bad files, and no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("CONCEPTNB_DEBUG", raising=False)

    def no_network(*_, **__):
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr(logging, "raiseExceptions", False)  # pooch keeps another test's stderr
    write_environments("beans.csv", rows=40)
    text = Path("beans.csv").read_text()
    Path("semicolons.csv").write_text(text.replace(",", ";"))
    Path("unnamed.csv").write_text(text.replace("dark,", "nan,").replace(",dark", ",nan"))
    Path("rows.csv").write_text("x,y\n" + "1,2\n3,5\n" * 8)
    Path("labels.csv").write_text("kind\n" + "a\nb\n" * 8)
    Path("questions.csv").write_text(
        "question,best_answer,incorrect_answers\n" + "".join(f"why {k}?,so,no\n" for k in range(16))
    )
    Path("file").write_text("a file, and no folder")
    Path("taken").mkdir()
    Path("taken/model.safetensors").write_text("junk")
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps({"model_type": "llama"}))
    for name in ("model/model.safetensors", "my-shapes-vit.safetensors", "half.pt", "data.h5"):
        Path(name).write_bytes(b"\xff" * 64)
    Path("data.npy").write_bytes(b"junk")
    return tmp_path


def refused(capsys, words, *said, status=2):
    """Run a command, and check that it ends with a status and one line that says some words."""
    assert main([str(word) for word in words]) == status
    error = capsys.readouterr().err
    last = error.rstrip("\n").splitlines()[-1]
    assert last.startswith("conceptnb "), error
    assert "Traceback" not in error
    assert error.count("conceptnb ") >= 1
    assert all(str(word) in last for word in said), last
    return error


SMALL = ["--images", "64", "--jobs", "1", "--backend", "sequential"]


def typed(words, *more):
    return [*words.split(), *ENOUGH.get(words, []), *more]


@pytest.mark.parametrize("words", WORDS)
def test_an_option_that_is_not_there(words, capsys):
    said = refused(capsys, typed(words, "--nonsense"), "--nonsense", "--help")
    assert said.count("\n") == 1


BAD = {
    "learn": (["--seed", "-1"], "--seed"),
    "directions": (["--seed", "-1"], "--seed"),
    "steer": (["--heads", "0"], "--heads"),
    "train-clip": (["--steps", "0"], "--steps"),
    "train-language-model": (["--seeds", "-1"], "--seeds"),
    "embed-sentences": (["--seed", "-1"], "--seed"),
    "score": (["--limit", "0"], "--limit"),
    "results": (["nothing"], "'nothing'"),
} | {words: (["--jobs", "0"], "--jobs") for words in STUDIES}


@pytest.mark.parametrize("words", WORDS)
def test_a_bad_argument(words, capsys):
    more, name = BAD[words]
    assert refused(capsys, typed(words, *more), name).count("\n") == 1


def folder_of(words):
    """Return the option whose folder is made, and what it holds."""
    return words in ("learn", "directions", "steer", "train-language-model")


@pytest.mark.parametrize("words", WRITERS)
@pytest.mark.parametrize(
    ("out", "said"), [("file/x", "name another place"), ("taken", "--out"), ("/proc/x", "/proc")]
)
def test_an_out_that_cannot_be_written(words, out, said, capsys):
    if folder_of(words) and out == "taken":
        Path("taken/alike-0").mkdir()
        for name in ("report.html", "alike-0/model.safetensors"):
            (Path("taken") / name).write_text("there")
    if words == "train-clip" and out != "taken":
        out += ".safetensors"
    said = refused(capsys, typed(words, "--out", out), said, "taken" if out == "taken" else out)
    assert said.count("\n") == 1


def test_a_folder_is_no_file_to_write(capsys):
    Path("taken.safetensors").mkdir()
    for words in WRITERS:
        if not folder_of(words):
            out = "taken.safetensors" if words == "train-clip" else "taken"
            refused(capsys, typed(words, "--out", out), out, "is a folder: name a file in it")


@pytest.mark.parametrize("words", [w for w in WRITERS if not folder_of(w)])
def test_what_is_there_is_kept(words, capsys):
    there = Path("there.safetensors")
    there.write_text("mine")
    refused(capsys, typed(words, "--out", there), there, "--force")
    assert there.read_text() == "mine"


def test_defaults_write_into_the_working_folder_and_keep_what_is_there(capsys):
    for words, name in {
        "train-clip": "shapes-vit.safetensors",
        "embed-sentences": "embeddings.safetensors",
        "train-language-model": "alike-0/model.safetensors",
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("mine")
        refused(capsys, typed(words), name, "--force")
        assert Path(name).read_text() == "mine"


@pytest.mark.parametrize("words", WRITERS)
def test_a_full_disk_is_found_before_anything_is_computed(words, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    out = "new.safetensors" if words == "train-clip" else "new"
    refused(capsys, typed(words, "--out", out), "No space left", out, "name another place")


@pytest.mark.parametrize("words", WORDS)
def test_what_happens_on_the_way(words, capsys, monkeypatch):
    def happens(error):
        def parse(*_, **__):
            raise error

        monkeypatch.setattr(Command, "parse_args", parse)

    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for error, status, said in [
        (KeyboardInterrupt(), 130, ["interrupted", "finished work is kept"]),
        (full, 2, ["No space left on device", "free some space"]),
        (MemoryError(), 2, ["memory ran out"]),
        (ConnectionRefusedError(errno.ECONNREFUSED, "no route", "hub"), 2, ["no route"]),
        (RuntimeError("two\nlines"), 1, ["this is a bug", "two lines", "CONCEPTNB_DEBUG=1"]),
        (RuntimeError("x"), 1, [f"{ADDRESS}/issues"]),
    ]:
        happens(error)
        found = refused(capsys, typed(words), *said, status=status)
        assert found.count("\n") == 1
    monkeypatch.setenv("CONCEPTNB_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(typed(words))


OUTSIDE = [
    ["reproduce", name, option.opts[0], str(value)]
    for name, study in reproduce.commands.items()
    for option in study.params
    if isinstance(option.type, Whole)
    for value in (option.type.least - 1, (option.type.most or -1) + 1)
    if value != 0 or option.type.least > 0
]
"""Values of options that no study takes."""

UNFIT = [
    ("learn beans.csv --shrinkage 2 --out r", "shrinkage"),
    ("learn beans.csv --shrinkage .1 --encoder mlp --out r", "shrinkage"),
    ("learn beans.csv --components 99 --out r", "components"),
    ("learn beans.csv --components 1 --out r", "components"),
    ("learn beans.csv --starts 0 --encoder mlp --out r", "starts"),
    ("learn beans.csv --starts 3 --out r", "starts"),
    ("learn beans.csv --looked-for dark= light=a --out r", "--looked-for"),
    ("learn beans.csv --looked-for dark=environment --out r", "--looked-for"),
    ("learn beans.csv --looked-for dark=a dark=b --out r", "--looked-for"),
    ("learn beans.csv --ids none --out r", "ids"),
    ("learn beans.csv --base '' --out r", "base"),
    ("learn beans.csv --seed 99999999999 --out r", "seed"),
    ("learn beans.csv --environment sensor_1 --ids environment --out r", "--environment sensor_1"),
    ("learn semicolons.csv --out r", "separated by ';'"),
    ("learn unnamed.csv --out r", "'nan'"),
    ("learn beans.csv --ids sensor_1 sensor_2 sensor_3 sensor_4 sensor_5 --out r", "concepts"),
    ("directions rows.csv --labels labels.csv --encoder RN101 --out r", "--encoder"),
    ("directions rows.csv --labels labels.csv --size 8 --out r", "--size"),
    ("directions rows.csv --labels labels.csv --factors kind kind --out r", "--factors kind kind"),
    ("directions taken --labels labels.csv --size 99999 --out r", "--size"),
    ("directions taken --labels labels.csv --encoder none --out r", "none"),
    ("steer --model taken --questions questions.csv --out r", "--model taken"),
    ("embed-sentences --seed 99999999999", "--seed"),
    ("train-language-model --seeds 0 99999999999", "--seeds"),
    ("reproduce steering --folds 1", "--folds"),
    ("reproduce steering --alpha nan", "--alpha"),
    ("reproduce steering-real --model taken", "--model taken"),
    ("reproduce steering-real --every 818", "--every"),
    ("reproduce clip --cache file", "--cache file"),
    ("reproduce encoder-pairs --cache file", "--cache file"),
    ("reproduce limits --backend dask --scheduler none", "--scheduler none"),
]
"""Arguments that do not fit, and what names them."""

MISSING = [
    ("learn", ["none.csv", "--out", "r"], "none.csv"),
    ("learn", ["beans.csv", "none.npy", "--out", "r"], "none.npy"),
    ("directions", ["rows.csv", "--labels", "none.csv", "--out", "r"], "none.csv"),
    ("directions", ["none.npy", "--labels", "labels.csv", "--out", "r"], "none.npy"),
    ("steer", ["--model", "model", "--questions", "none.csv", "--out", "r"], "none.csv"),
    ("embed-sentences", ["--model", "none"], "none"),
    ("score", ["--model", "model", "--data", "none.csv"], "none.csv"),
    ("score", ["--model", "./none", "--data", "questions.csv"], "./none"),
    ("score", ["--model", "model", "--data", "questions.csv", "--preface", "none"], "none"),
    ("reproduce clip", ["--models", "none.safetensors", *SMALL], "none.safetensors"),
    ("reproduce clip", ["--data", "none.h5", *SMALL], "none.h5"),
    (
        "reproduce steering",
        ["--model", "./none", "--data", "questions.csv", "--texts", "file"],
        "./none",
    ),
]


@pytest.mark.parametrize(("words", "more", "name"), MISSING)
def test_a_missing_file(words, more, name, capsys):
    refused(capsys, [*words.split(), *more], name)


DAMAGED = [
    ("learn", ["data.npy", "beans.csv", "--out", "r"], "data.npy"),
    ("directions", ["data.npy", "--labels", "labels.csv", "--out", "r"], "data.npy"),
    ("directions", ["model", "--labels", "labels.csv", "--out", "r", "--file-column", "kind"],
     "labels.csv"),
    ("steer", ["--model", "model", "--questions", "questions.csv", "--out", "r"], "model"),
    ("embed-sentences", ["--model", "model"], "model"),
    ("score", ["--model", "model", "--data", "questions.csv"], "model"),
    ("train-clip", ["vit", "--steps", "1", "--out", "x.safetensors", "--checkpoint", "half.pt"],
     "half.pt"),
    ("train-clip", ["vit", "--steps", "1", "--out", "x.safetensors", "--checkpoint", "beans.csv"],
     "beans.csv is damaged"),
    ("reproduce clip", ["--models", "my-shapes-vit.safetensors", *SMALL, "--out", "x"],
     "my-shapes-vit.safetensors"),
    ("reproduce clip", ["--data", "data.h5", *SMALL, "--out", "x"], "data.h5"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "more", "name"), DAMAGED)
def test_a_damaged_file(words, more, name, capsys):
    refused(capsys, [*words.split(), *more], name)


def test_a_damaged_table(capsys, monkeypatch, folder):
    (folder / "one.json").write_text('{"rows": [')
    monkeypatch.setattr(results.store, "folder", lambda: folder)
    refused(capsys, ["results"], "one.json is no computed table", "compute it again")


HUB = [
    ("score", ["--model", "nobody/none", "--data", "questions.csv"], "nobody/none"),
    ("score", ["--model", "model", "--data", "truthfulqa"], "TruthfulQA.csv"),
    ("reproduce clip", ["--models", "openai", *SMALL, "--out", "x"], "ViT-B-32/openai"),
    ("reproduce clip", ["--data", "3dshapes", *SMALL, "--out", "x"], "3d"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "more", "name"), HUB)
def test_no_network(words, more, name, capsys, monkeypatch, folder):
    monkeypatch.setenv("CONCEPTNB_DATA", str(folder))
    monkeypatch.setattr("pooch.os_cache", lambda name: folder / "cache")
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between attempts
    refused(capsys, [*words.split(), *more], name)


def test_errors_of_the_network_and_of_workers_say_what_helps():
    import requests  # noqa: PLC0415

    class TerminatedWorkerError(RuntimeError): ...

    said, status = _what_is_said(requests.ConnectionError("no such host"), [])
    assert (status, "needs a network" in said) == (2, True)
    said, status = _what_is_said(TerminatedWorkerError("killed"), [])
    assert (status, "fewer --jobs" in said) == (2, True)


@pytest.mark.parametrize("words", [["nope"], ["reproduce", "nope"]])
def test_what_is_no_command_is_refused_what_is_said(words, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "'nope'" in said
    assert "--help" in said


def test_strengths_have_to_be_finite(capsys):
    for value in ("nan", "inf"):
        refused(capsys, ["reproduce", "steering", "--alpha", value], "--alpha", "finite")


def test_arguments_are_refused_before_torch_is_imported(folder):
    faults = [
        *(typed(words, *BAD[words][0]) for words in WORDS),
        *(typed(words, "--out", "file/x.safetensors") for words in WRITERS),
        *([*words.split(), "--nonsense"] for words in WORDS),
        ["reproduce", "clip", "--split", "thirds"],
        ["reproduce", "clip", "--models", "none"],
        ["reproduce", "steering-real-matrices", "--split-seeds", "one"],
        ["reproduce", "steering", "--alpha", "much"],
        ["reproduce", "light-tunnel", "--data", "none"],
        ["reproduce", "neighbours", "--corpora", "none"],
        ["reproduce", "neighbours", "--seeds", "3"],
        ["reproduce", "limits", "--study", "none"],
        ["reproduce", "baselines", "--method", "none"],
        ["reproduce", "synthetic", "--table", "2"],
        ["reproduce", "steering-real", "--preface", "none"],
        *(shlex.split(words) for words, _ in UNFIT),
        ["reproduce", "theory-beyond", "--instances", "0"],
        ["reproduce", "synthetic", "--seeds", "0"],
        ["reproduce", "steering", "--split-seeds", "0", "-1"],
        *OUTSIDE,
        *([*words.split(), *more] for words, more, _ in MISSING),
        *(typed(words, "--checkpoints", "file") for words in STUDIES),
        ["learn", "beans.csv", "--out", "r", "--base", "none"],
        ["learn", "beans.csv", "--out", "r", "--looked-for", "dark"],
        ["train-clip", "vit", "--out", "weights.pt"],
    ]
    code = (
        "import sys, json; from conceptnb.commands.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    assert main(words) == 2, words\n"
        "    assert 'torch' not in sys.modules, words\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(faults)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == len(faults)
    assert np.char.startswith(done.stderr.splitlines(), "conceptnb ").all()


@pytest.mark.parametrize(("words", "name"), UNFIT)
def test_arguments_that_do_not_fit_are_refused_by_name(words, name, capsys):
    refused(capsys, shlex.split(words), name)


def test_a_folder_of_a_model_or_of_an_adapter_is_taken(folder):
    for name in ("config.json", "adapter_config.json"):
        (folder / name).write_text("{}")
        assert MODEL.convert(str(folder), None, None) == str(folder)
        (folder / name).unlink()
    with pytest.raises(ValueError, match="is no model: it has no config"):
        MODEL.convert(str(folder), None, None)


def test_what_lies_outside_the_bounds_of_an_option_is_refused(capsys):
    for words in OUTSIDE:
        option, value = words[-2:]
        assert main(words) == 2
        said = capsys.readouterr().err
        assert re.search(rf"{option} must (be at least|lie in) .*, got {value}\n", said)


def of_study(name, option):
    """Return an option of a study's command."""
    return next(p for p in reproduce.commands[name].params if p.opts[0] == f"--{option}")


def test_bounds_and_defaults_are_those_of_the_package():
    assert of_study("clip", "images").type.most == N_IMAGES
    assert of_study("clip-zeroshot", "images").type.most == N_IMAGES // 20
    assert of_study("baselines", "rows").type.most == len(TABLE_1)
    assert of_study("synthetic", "first-seed").default == PAPER_SEEDS[0]
    assert of_study("steering-fresh", "model-seeds").default == [*EVIDENCE]
    for name in ("synthetic", "limits", "variants", "baselines"):
        assert of_study(name, "seeds").default == len(PAPER_SEEDS)
    for name in ("steering-real", "steering-real-matrices", "real-heads"):
        assert of_study(name, "model").default == SMOLLM2
    kinds, most = (
        of_study("neighbours", "corpora").type.choices,
        of_study("neighbours", "seeds").type,
    )
    assert [*small_models()] == [(kind, k) for kind in kinds for k in range(most.most + 1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option", "module", "constant"),
    [
        ("limits", "study", "conceptnb.studies.limits_studies", "LIMITS"),
        ("baselines", "method", "conceptnb.studies.baseline_comparison", "METHODS"),
        ("theory", "part", "conceptnb.studies.theory_tables", "_PLANS"),
        ("synthetic", "table", "conceptnb.studies.synthetic_tables", "_TABLES"),
        ("synthetic", "estimator", "conceptnb.studies.synthetic_tables", "_ESTIMATORS"),
    ],
)
def test_choices_are_all_that_there_are(name, option, module, constant):
    there_are = {*getattr(importlib.import_module(module), constant)}
    assert {*of_study(name, option).type.choices} - {"all"} == there_are - {"all"}


def test_named_corpora_and_encoders_are_all_that_there_are():
    corpora = GROUP.get_command(None, "train-language-model").params[0].type.choices
    assert {*corpora} == {*CORPUS_KINDS}
    encoders = GROUP.get_command(None, "train-clip").params[0].type.choices
    assert [*encoders] == [*clip.SMALL_KINDS]


def test_named_clip_models_are_all_that_there_are():
    assert CLIP_MODELS == importlib.import_module("conceptnb.embeddings.clip").SMALL_NAMES


@pytest.mark.parametrize(
    ("lacks", "extra", "words"),
    [
        ("torch", "torch", ["learn", "beans.csv", "--out", "report"]),
        ("torch", "torch", ["train-clip", "vit", "--steps", "1", "--out", "x.safetensors"]),
        ("transformers", "steering", typed("steer")),
        ("open_clip", "clip", ["reproduce", "clip", *SMALL, "--out", "x"]),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(lacks, extra, words, folder):
    code = (
        "import sys; from conceptnb.commands.cli import main\n"
        "class Lacks:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == sys.argv[1]:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Lacks())\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, lacks, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    said = done.stderr.splitlines()[-1]
    assert f"No module named '{lacks}" in said
    assert f"pip install 'conceptnb[{extra}]'" in said


def test_every_extra_that_a_command_names_is_on_the_page_of_the_set_up():
    page = (ROOT / "book" / "setup.md").read_text(encoding="utf-8")
    for extra in ("torch", "clip", "steering", "smollm", "sentences", "tunnel"):
        assert f"[{extra}]" in page
