"""A reader's list of questions: what is read, steered, warned of, and refused."""

import copy
import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from conceptnb.commands.cli import main
from conceptnb.steering.activations import collect_activations
from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.own_questions import NOT_STEERED, paired_gain, steer_questions
from conceptnb.steering.questions import Question, read_questions, write_questions
from conceptnb.steering.scoring import AnswerScorer
from conceptnb.steering.small_models import load_small_model, small_models
from conceptnb.steering.techniques import MASS_MEAN

TEMPLATE = Path(__file__).resolve().parents[2] / "book/templates/my_questions.py"
HEADER = "question,best_answer,incorrect_answers\n"


@pytest.fixture(scope="module")
def small():
    """Load a toy corpus and its model."""
    return load_small_model("no-source")


def test_what_is_written_is_read_again(tmp_path):
    questions = [
        Question("a", "one, or two?", ("both", "two", 'say "one"'), (True, True, False), 1, "sums"),
        Question("b", "why?", ("no", "because"), (False, True), 1),
    ]
    write_questions(questions, tmp_path / "q.csv")
    first, second = read_questions(tmp_path / "q.csv")
    assert (first.id, first.text, first.category) == ("a", "one, or two?", "sums")
    assert first.answers == ("two", "both", 'say "one"')
    assert first.true == (True, True, False)
    assert (second.answers, second.true) == (("because", "no"), (True, False))


def test_json_lines_are_read(tmp_path):
    row = {"question": "why?", "best_answer": "because", "incorrect_answers": ["no", "yes; no"]}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(row) + "\n\n" + json.dumps(row | {"question": "how?"}) + "\n")
    questions = read_questions(path)
    assert [q.text for q in questions] == ["why?", "how?"]
    assert questions[0].answers == ("because", "no", "yes; no")
    assert [q.id for q in questions] == ["1", "3"]


@pytest.mark.parametrize("mark", ["\n", "\u2028", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_text_is_kept_as_it_is_whatever_ends_a_line_elsewhere(mark, tmp_path):
    text = f"why{mark}not?"
    asked = [Question("a", text, ("so", "no"), (True, False))]
    write_questions(asked, tmp_path / "q.csv")
    assert [q.text for q in read_questions(tmp_path / "q.csv")] == [text]
    row = {"question": text, "best_answer": "so", "incorrect_answers": ["no"]}
    (tmp_path / "q.JSONL").write_text(json.dumps(row, ensure_ascii=False) + "\r\n")
    assert [q.text for q in read_questions(tmp_path / "q.JSONL")] == [text]


def test_rows_are_counted_as_in_the_file(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text(HEADER + '\n\n"one\ntwo?",a,b\nthree?,,b\n')
    with pytest.raises(ValueError, match="row 6: best_answer of 'three"):
        read_questions(path)


def test_an_answer_that_holds_the_separator_is_not_split_in_silence(tmp_path):
    for true in ((True, False, False), (True, True, False)):
        asked = Question("a", "q", ("x", "y; z", "k"), true)
        with pytest.raises(ValueError, match=r"'y; z'.*JSON lines"):
            write_questions([asked], tmp_path / "q.csv")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "q.jsonl",
            '{"question": null, "best_answer": "a", "incorrect_answers": ["b"]}',
            ["row 1", "the question is empty"],
        ),
        (
            "q.jsonl",
            '{"question": "q", "best_answer": null, "incorrect_answers": ["b"]}',
            ["row 1", "best_answer of 'q' is empty"],
        ),
        (
            "q.jsonl",
            '{"question": "q", "best_answer": "a", "incorrect_answers": [null]}',
            ["row 1", "None is no text"],
        ),
        ("q.csv", "question,answer\nwhy?,no\n", ["lacks the columns", "'best_answer'", "'answer'"]),
        ("q.csv", HEADER + "why?,because,\n", ["row 2", "incorrect_answers", "in pairs"]),
        ("q.csv", HEADER + "why?,because, ; \n", ["row 2", "incorrect_answers", "in pairs"]),
        ("q.csv", HEADER + "why?,,no\n", ["row 2", "best_answer of 'why?' is empty"]),
        ("q.csv", HEADER + ",because,no\n", ["row 2", "the question is empty"]),
        ("q.csv", HEADER + "why?,no,yes;no\n", ["row 2", "['no'] are both right and wrong"]),
        ("q.csv", HEADER + "why?,a,b\nwhy?,c,d\n", ["row 3", "'why?' is in row 2"]),
        ("q.csv", "", ["is empty"]),
        ("q.csv", (HEADER + "où?,ici,là\n").encode("latin-1"), ["row 2", "encoding='latin-1'"]),
        ("q.jsonl", "", ["is empty", "one JSON object per line"]),
        ("q.jsonl", "why? because", ["row 1", "no JSON"]),
        ("q.jsonl", '{"question": "why?"}', ["row 1 lacks the keys", "'best_answer'"]),
        ("q.jsonl", "[1]", ["row 1 lacks the keys"]),
    ],
)
def test_bad_lists_are_refused(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=name) as caught:
        read_questions(path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.jsonl"):
        read_questions(tmp_path / "none.jsonl")


def test_the_paired_error_is_that_of_the_mean():
    steered, baseline = np.array([1, 1, 0, 1]), np.array([0, 1, 0, 0])
    gain, error = paired_gain(steered, baseline)
    assert gain == 0.5
    assert error == pytest.approx(np.std([1, 0, 0, 1], ddof=1) / 2)


def test_every_question_is_scored_once_and_no_strength_is_no_steering(small):
    corpus, model, tokenizer = small
    questions = corpus.questions()[::3]
    report = steer_questions(questions, model, tokenizer, alpha=0.0, techniques=[MASS_MEAN])
    assert list(report.scores) == [NOT_STEERED, MASS_MEAN]
    assert report.scores[NOT_STEERED].mc1.shape == (len(questions),)
    assert np.array_equal(report.scores[NOT_STEERED].mc1, report.scores[MASS_MEAN].mc1)
    said = " ".join(report.warnings)
    assert "32 questions: MC1 is known to ± 0.09" in said
    assert f"{MASS_MEAN}: no gain beyond" in said
    assert report.summary()["gain in MC1"].tolist() == ["", "+0.000 ± 0.000"]


def test_cues_and_words_that_the_model_does_not_know_are_warned_of(small):
    corpus, model, tokenizer = small
    odd = [
        Question(q.id, "zyx " + q.text, (q.answers[0] + " and so on", *q.answers[1:]), q.true)
        for q in corpus.questions()[:16]
    ]
    said = " ".join(steer_questions(odd, model, tokenizer, techniques=[]).warnings)
    assert "In 100% of the questions the best answer is the longest (chance: 25%)" in said
    assert "tokens are unknown to this model" in said


def test_what_cannot_be_steered_is_refused(small):
    corpus, model, tokenizer = small
    with pytest.raises(ValueError, match="15 questions are too few"):
        steer_questions(corpus.questions()[:15], model, tokenizer)
    with pytest.raises(ValueError, match=r"\['magic'\] are not known; there are \['random"):
        steer_questions(corpus.questions(), model, tokenizer, techniques=["magic"])
    for wrong in ({"alpha": float("nan")}, {"alpha": float("inf")}, {"n_heads": 0}):
        with pytest.raises(ValueError, match="has to be finite, and n_heads"):
            steer_questions(corpus.questions(), model, tokenizer, **wrong)


def test_more_heads_than_the_model_has_are_refused_before_it_reads(small):
    corpus, model, tokenizer = small
    with pytest.raises(ValueError, match=r"n_heads=33: the model has 32 heads"):
        steer_questions(corpus.questions(), model, tokenizer, n_heads=33)


def test_a_best_probe_of_few_questions_is_held_against_the_best_by_chance(small):
    corpus, model, tokenizer = small
    rng = np.random.default_rng(0)
    asked = [
        replace(q, true=tuple(k == right for k in range(4)), best=right)
        for q, right in zip(corpus.questions()[::5], rng.integers(4, size=20), strict=False)
    ]
    report = steer_questions(asked, model, tokenizer, techniques=[MASS_MEAN])
    [said] = [line for line in report.warnings if "No head tells truth" in line]
    by_chance = float(said.split("reaches up to ")[1].split(" ")[0])
    assert report.probe_accuracy.max() < by_chance < 1
    # The bound of independent probes holds against a simulation of them.
    true = np.tile([True, False, False, False], 4)
    read = rng.random((2000, 32, 16)) < 0.5
    balanced = (read[..., true].mean(-1) + (~read[..., ~true]).mean(-1)) / 2
    assert balanced.max(axis=1).mean() < by_chance


def test_prompts_longer_than_the_model_reads_are_refused_by_name(small, tmp_path, capsys):
    corpus, model, tokenizer = small
    questions = corpus.questions()[:16]
    long = copy.deepcopy(questions[11])
    long = Question(long.id, f"{long.text} " * 200, long.answers, long.true)
    with pytest.raises(
        ValueError, match=r"question 12 with its longest answer has \d+ tokens.*256"
    ):
        steer_questions([*questions[:11], long, *questions[12:]], model, tokenizer)
    write_questions([long], tmp_path / "q.csv")
    words = ["score", "--model", str(small_models()["no-source", 0]), "--data"]
    assert main([*words, str(tmp_path / "q.csv")]) == 2
    assert "question 1 with its longest answer" in capsys.readouterr().err


def _in_training(model):
    return model.train()


def _compiled(model):
    return torch.compile(model)


def _compiled_in_place(model):
    model.compile()
    return model


def _adapted(model):
    model.model.layers[0].self_attn.o_proj.lora_A = torch.nn.ModuleDict()
    return model


def _like(**settings):
    def change(model):
        for name, value in settings.items():
            setattr(model.config, name, value)
        return model

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_in_training, r"training mode, with dropout: call model\.eval"),
        (_compiled, "is compiled, and hooks do not run"),
        (_compiled_in_place, "is compiled, and hooks do not run"),
        (_adapted, "has PEFT adapters"),
        (_like(is_encoder_decoder=True), "encoder with a decoder"),
        (_like(model_type="bart"), "encoder with a decoder"),
        (_like(model_type="xlm-roberta"), "counts positions from its padding"),
        (_like(slow_but_exact=True), "slow_but_exact=False"),
    ],
)
def test_models_that_would_be_steered_wrongly_are_refused(change, said, small):
    corpus, model, tokenizer = small
    with pytest.raises(ValueError, match=f"model: this .*{said}"):
        steer_questions(corpus.questions(), change(copy.deepcopy(model)), tokenizer)
    steering = Intervention(torch.zeros(find_heads(model).shape))
    with pytest.raises(ValueError, match=said), steering.apply(change(copy.deepcopy(model))):
        pass
    for read in (collect_activations, AnswerScorer):
        with pytest.raises(ValueError, match=said):
            read(change(copy.deepcopy(model)), tokenizer, corpus.questions()[:2])


@pytest.mark.slow
def test_the_template_runs(small, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_questions(small[0].questions()[::4], "questions.csv")
    source = TEMPLATE.read_text(encoding="utf-8")
    assert source.count("models/my-model") == 1
    copy = tmp_path / "my_questions.py"
    copy.write_text(source.replace("models/my-model", str(small_models()["no-source", 0])))
    runpy.run_path(str(copy), run_name="__main__")
    assert NOT_STEERED in capsys.readouterr().out
    assert (tmp_path / "steering.png").is_file()
