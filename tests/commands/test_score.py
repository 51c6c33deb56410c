"""``conceptnb score``: what it reads, writes and refuses."""

import json

import numpy as np
import pytest
import torch

from conceptnb.commands.cli import main
from conceptnb.steering.questions import read_questions
from conceptnb.steering.small_models import small_models

MODEL = str(small_models()["alike", 0])
EXAMPLES = "Q: food of mira?\nA: moss.\n\nQ: food of tana?\nA: ferns.\n"
TASK = [
    {
        "question": "food of mira ?",
        "mc1_targets": {"moss .": 1, "ferns .": 0, "eats moss": 0},
        "mc2_targets": {"eats it .": 1, "ferns .": 0, "moss .": 1, "eats moss": 0},
    },
    {
        "question": "home of tana ?",
        "mc1_targets": {"choices": ["in moss .", "moss"], "labels": [1, 0]},
        "mc2_targets": {"choices": ["in moss .", "moss"], "labels": [1, 0]},
    },
]


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "mc_task.json"
    file.write_text(json.dumps(TASK))
    return file


@pytest.fixture
def preface(tmp_path):
    file = tmp_path / "qa_preface.txt"
    file.write_text(EXAMPLES)
    return file


def expected(question, answer, prompt):
    """Log-probability of an answer by one plain pass over the whole text."""
    from conceptnb.steering.small_models import load_small_model  # noqa: PLC0415

    _, model, tokenizer = load_small_model("alike", 0)
    context = f"{EXAMPLES.strip()}\n\nQ: {question}" + (" A:" if prompt == "paper" else "\nA:")
    start = len(tokenizer(context)["input_ids"])
    ids = torch.tensor([tokenizer(f"{context} {answer}")["input_ids"]])
    with torch.no_grad():
        each = model(ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
    return each[start - 1 :].sum().item()


@pytest.mark.parametrize("prompt", ["paper", "lm-eval"])
def test_the_record_holds_every_choice(task, preface, tmp_path, prompt):
    out = tmp_path / "scores.json"
    words = ["score", "--model", MODEL, "--data", str(task), "--prompt", prompt]
    assert main([*words, "--preface", str(preface), "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    first, second = record["questions"]
    assert first["question"] == TASK[0]["question"]
    assert first["mc1_choices"] == list(TASK[0]["mc1_targets"])
    assert (
        dict(zip(first["mc2_choices"], first["mc2_labels"], strict=True)) == TASK[0]["mc2_targets"]
    )
    assert second["mc2_choices"] == TASK[1]["mc2_targets"]["choices"]
    mc1, mc2 = [], []
    for entry in record["questions"]:
        found = np.array([expected(entry["question"], a, prompt) for a in entry["mc2_choices"]])
        np.testing.assert_allclose(entry["mc2_logprobs"], found, atol=1e-4)
        of = dict(zip(entry["mc2_choices"], entry["mc2_logprobs"], strict=True))
        assert entry["mc1_logprobs"] == [of[choice] for choice in entry["mc1_choices"]]
        mc1.append(np.argmax(entry["mc1_logprobs"]) == 0)
        mc2.append(np.exp(found)[np.array(entry["mc2_labels"]) == 1].sum() / np.exp(found).sum())
    assert record["mc1"] == np.mean(mc1)
    assert record["mc2"] == pytest.approx(np.mean(mc2), abs=1e-5)
    assert record["cpu_seconds"] > 0


def test_limit_and_the_folder_of_data(task, preface, monkeypatch, capsys):
    monkeypatch.setenv("CONCEPTNB_DATA", str(preface.parent))
    words = ["score", "--model", MODEL, "--data", str(task), "--prompt", "lm-eval", "--limit", "1"]
    assert main(words) == 0
    (entry,) = json.loads(capsys.readouterr().out)["questions"]
    score = expected(entry["question"], entry["mc2_choices"][0], "lm-eval")
    assert entry["mc2_logprobs"][0] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "{here}/mc_task.json"], "exists"),
        (["--out", "{here}"], "is a folder"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--memory", "-1"], "--memory=-1.0"),
        (["--preface", "{here}/none.txt"], "is no file"),
        (["--preface", "{here}/empty.txt"], "is empty"),
        (["--prompt", "lm-eval"], "CONCEPTNB_DATA"),
        (["--data", "{here}/none.csv"], "none.csv is no file"),
        (["--data", "{here}/empty.json"], "holds no list of questions"),
        (["--data", "{here}/broken.json"], "is no JSON"),
        (["--data", "{here}/other.json"], "row 1"),
        (["--model", "{here}/none.gguf"], "none.gguf is not there"),
    ],
)
def test_bad_input_is_one_line_before_a_model_is_loaded(
    words, said, task, tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv("CONCEPTNB_DATA", raising=False)
    for name, text in {"empty.txt": " ", "empty.json": "[]", "broken.json": "["}.items():
        (tmp_path / name).write_text(text)
    wrong = TASK[0] | {"mc1_targets": {"moss .": 1, "another": 0}}
    (tmp_path / "other.json").write_text(json.dumps([wrong]))
    loaded = []
    command = "conceptnb.steering.language_models.load_language_model"
    monkeypatch.setattr(command, lambda *a: loaded.append(a))
    given = [word.format(here=tmp_path) for word in words]
    assert main(["score", "--model", MODEL, "--data", str(task), *given]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.startswith("conceptnb score: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert loaded == []


def test_a_task_keeps_its_choices_as_they_are(task):
    first, _ = read_questions(task)
    assert first.answers == tuple(TASK[0]["mc2_targets"])
    assert first.answers[first.best] == "moss ."
