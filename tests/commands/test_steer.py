"""``conceptnb steer``: from a model and questions to a report, and a vector that travels."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from conceptnb.commands.cli import main
from conceptnb.steering.activations import collect_activations
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.questions import write_questions
from conceptnb.steering.small_models import load_small_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steer")
    corpus, model, tokenizer = load_small_model("no-source")
    odd = ("$\\frac{x$", "_{")  # categories with half a formula are drawn as they are
    questions = [
        dataclasses.replace(question, category=odd[k % 2])
        for k, question in enumerate(corpus.questions()[::3])
    ]
    write_questions(questions, folder / "questions.csv")
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    words = ["steer", "--model", str(folder / "model"), "--questions"]
    words += [str(folder / "questions.csv"), "--out", str(folder / "out"), "--heads", "3"]
    assert main([*words, "--alpha", "5"]) == 0
    return folder, questions, model, tokenizer


def test_the_vector_is_the_mass_mean_shift_of_all_questions(made):
    """By hand: the difference of means of true and false answers, one per question."""
    folder, questions, model, tokenizer = made
    vector = Intervention.load(folder / "out" / "steering.safetensors").offsets.numpy()
    steered = np.argwhere((vector != 0).any(-1))
    assert len(steered) == 3
    seen = collect_activations(model, tokenizer, questions)
    shift = seen.differences(questions).mean(axis=0)
    for layer, head in steered:
        unit = shift[layer, head] / np.linalg.norm(shift[layer, head])
        spread = (seen.heads[:, layer, head] @ unit).std()
        np.testing.assert_allclose(vector[layer, head], 5 * spread * unit, rtol=1e-4, atol=1e-6)


def test_the_report_is_whole_and_each_question_has_its_scores(made):
    folder, questions, *_ = made
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert f"{len(questions)} questions: MC1 is known" in page
    assert "<h1>model steered by questions.csv</h1>" in page  # and no path
    assert "<script" not in page and "http" not in page.split("<svg")[0]
    scores = pd.read_csv(folder / "out" / "questions.csv")
    assert list(scores["question"]) == [q.text for q in questions]
    mean = scores["MC1, steering matrix"].mean()
    assert f"<td>{mean:.3f}</td>" in page


def test_the_program_answers_without_and_with_steering(made):
    folder, questions, *_ = made
    program = [sys.executable, str(folder / "out" / "apply.py"), questions[0].text]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=folder)
    plain, steered = [line for line in done.stdout.splitlines() if "steered: " in line]
    assert plain.startswith("not steered: ") and steered.startswith("steered: ")


def test_the_vector_bakes_into_a_plain_model(made):
    folder, questions, model, tokenizer = made
    vector = Intervention.load(folder / "out" / "steering.safetensors")
    ids = tokenizer(questions[0].prompt(), return_tensors="pt")["input_ids"]
    with torch.no_grad(), vector.apply(model):
        expected = model(ids).logits
    with torch.no_grad():
        torch.testing.assert_close(vector.bake(model)(ids).logits, expected, rtol=0, atol=1e-5)
