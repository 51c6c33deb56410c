"""``conceptnb steer --pairs``: pairs and prompts -> a report, texts, and vectors that travel."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM

from conceptnb.commands.cli import main
from conceptnb.steering import own_pairs
from conceptnb.steering.own_pairs import STRENGTHS
from conceptnb.steering.pair_vectors import ResidualVector, fit_steering_vector
from conceptnb.steering.pairs import read_pairs
from conceptnb.steering.small_models import load_small_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model, pairs of right and wrong answers, prompts and neutral texts."""
    folder = tmp_path_factory.mktemp("pairs")
    corpus, model, tokenizer = load_small_model("no-source")
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    questions = corpus.questions()
    sides = [
        [f"{q.prompt()} {q.answers[q.true.index(side)]}" for q in questions[::4]]
        for side in (True, False)
    ]
    pd.DataFrame({"positive": sides[0], "negative": sides[1]}).to_csv(
        folder / "pairs.csv", index=False
    )
    prompts = [q.prompt() for q in questions[1:20:2]]
    (folder / "prompts.txt").write_text("\n".join(prompts) + "\n")
    (folder / "texts.txt").write_text("\n".join(sides[0][:4]))
    return folder


def words(folder, out, *more):
    files = ["--pairs", "pairs.csv", "--prompts", "prompts.txt", "--texts", "texts.txt"]
    named = [str(folder / x) if "." in x else x for x in files]
    given = ["steer", "--model", str(folder / "model"), *named, "--out", str(folder / out)]
    return [*given, "--alpha", "4", "--tokens", "5", *more]


@pytest.fixture(scope="module")
def made(folder):
    assert main(words(folder, "out", "--bake")) == 0
    return folder / "out"


def test_texts_are_those_of_the_model_none_left_out(folder, made):
    _, model, tokenizer = load_small_model("no-source")
    vector = fit_steering_vector(model, tokenizer, read_pairs(folder / "pairs.csv"))
    saved = ResidualVector.load(made / "steering.safetensors")
    assert saved.layers == vector.layers
    np.testing.assert_allclose(
        saved.steps[saved.layers[0]], vector.steps[vector.layers[0]], atol=1e-5
    )
    texts = pd.read_csv(made / "generated.csv", keep_default_na=False)
    prompts = (folder / "prompts.txt").read_text().splitlines()
    assert list(texts["prompt"]) == prompts
    page = (made / "report.html").read_text(encoding="utf-8")
    for prompt, plain, steered, back in texts.itertuples(index=False):
        for said, strength in ((plain, 0.0), (steered, 4.0), (back, -4.0)):
            ids = tokenizer(prompt, return_tensors="pt")
            with vector.apply(model, strength):
                found = model.generate(**ids, max_new_tokens=5, do_sample=False)
            new = found[0, ids["input_ids"].shape[1] :]
            assert tokenizer.decode(new, skip_special_tokens=True) == said
            assert said in page


@torch.no_grad()
def test_disturbance_is_kl_by_hand(folder):
    _, model, tokenizer = load_small_model("no-source")
    texts = (folder / "texts.txt").read_text().splitlines()
    pairs = read_pairs(folder / "pairs.csv")
    report = own_pairs.steer_pairs(pairs, ["is it so ?"], model, tokenizer, texts, new_tokens=2)
    rows = report.disturbance
    assert list(rows["strength"]) == [0.0, *STRENGTHS]
    assert rows["KL"].iloc[0] == 0 and rows["KL"].is_monotonic_increasing
    expected, surprise = [], []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        plain = model(ids).logits[0, :-1].log_softmax(-1)
        with report.vector.apply(model, 2.0):
            steered = model(ids).logits[0, :-1].log_softmax(-1)
        expected.append((plain.exp() * (plain - steered)).sum(-1).mean())
        surprise.append(-steered.gather(1, ids[0, 1:, None]).mean())
    at = rows.set_index("strength").loc[2.0]
    assert at["KL"] == pytest.approx(float(np.mean(expected)), rel=1e-3)
    assert at["perplexity"] == pytest.approx(float(np.exp(np.mean(surprise))), rel=1e-3)


def test_the_vectors_travel(folder, made):
    gguf = pytest.importorskip("gguf")
    vector = ResidualVector.load(made / "steering.safetensors")
    [layer] = vector.layers
    [tensor] = gguf.GGUFReader(str(made / "steering.gguf")).tensors
    assert tensor.name == f"direction.{layer}"
    np.testing.assert_array_equal(tensor.data, 4 * vector.steps[layer])
    _, model, tokenizer = load_small_model("no-source")
    baked = AutoModelForCausalLM.from_pretrained(made / "baked").eval()
    ids = tokenizer("is it so ?", return_tensors="pt")["input_ids"]
    with torch.no_grad(), vector.apply(model, 4.0):
        expected = model(ids).logits
    with torch.no_grad():
        torch.testing.assert_close(baked(ids).logits, expected, rtol=0, atol=1e-4)


def test_the_program_continues_a_prompt(folder, made):
    texts = pd.read_csv(made / "generated.csv", keep_default_na=False)
    program = [sys.executable, str(made / "apply.py"), texts["prompt"][0]]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=folder)
    plain, steered = [line for line in done.stdout.splitlines() if "steered: " in line]
    assert plain == f"not steered: {texts['not steered'][0].strip()}".rstrip()
    assert steered == f"steered: {texts['+4'][0].strip()}".rstrip()


def test_a_run_that_was_stopped_goes_on(folder, made, monkeypatch):
    plain = own_pairs.generate_texts
    calls = []

    def stopping(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(*given)

    monkeypatch.setattr(own_pairs, "generate_texts", stopping)
    assert main(words(folder, "again")) == 130
    assert not (folder / "again" / "report.html").exists()
    assert main(words(folder, "again")) == 0
    assert len(calls) == 3 + 4  # two batches of three texts each, and the one that was stopped
    assert (folder / "again" / "generated.csv").read_bytes() == (
        made / "generated.csv"
    ).read_bytes()
    assert not (folder / "again" / ".unfinished.json").exists()


REFUSED = {
    "no prompts": (["--prompts"], [], "--prompts"),
    "both": ([], ["--questions", "pairs.csv"], "--questions and --pairs"),
    "neither": (["--pairs"], [], "--questions and --pairs"),
    "heads": ([], ["--heads", "3"], "--heads belongs to --questions"),
    "paper": ([], ["--prompt", "paper"], "--prompt paper"),
    "chat": ([], ["--prompt", "chat"], "chat template"),
    "layer": ([], ["--layer", "99"], "--layer"),
    "strength": ([], ["--alpha", "0"], "--alpha"),
    "tokens": ([], ["--tokens", "5000"], "--tokens"),
    "direction": ([], ["--direction", "up"], "direction"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_in_one_line_and_writes_nothing(folder, case, capsys):
    without, more, said = REFUSED[case]
    given = words(folder, f"refused-{case.replace(' ', '-')}", *more)
    for name in without:
        place = given.index(name)
        del given[place : place + 2]
    assert main(given) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert said in error
    left = folder / f"refused-{case.replace(' ', '-')}"
    assert not left.exists() or not list(left.iterdir())


def test_options_of_pairs_are_refused_with_questions(folder, capsys):
    given = ["steer", "--model", str(folder / "model"), "--questions", "q.csv", "--out", "o"]
    assert main([*given, "--layer", "2"]) == 2
    assert "--layer belongs to --pairs" in capsys.readouterr().err


def test_warnings_name_what_else_a_vector_may_carry():
    _, model, tokenizer = load_small_model("no-source")
    ends = sorted(tokenizer.get_vocab())[40:42]
    starts = sorted(tokenizer.get_vocab())[50:58]
    pairs = [(f"{start} {start} {ends[0]}", f"{start} {ends[1]}") for start in starts]
    report = own_pairs.steer_pairs(
        pairs, [starts[0]], model, tokenizer, [" ".join(starts)], new_tokens=1, strength=8.0
    )
    said = " ".join(report.warnings)
    assert "8 pairs" in said and "longer" in said
    assert f"{ends[0]!r}" in said and "that word alone" in said
