"""The study of steering: folds, runs, Table 6 from them, and the real path on TruthfulQA."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast

from conceptnb import results
from conceptnb.commands.cli import main
from conceptnb.steering import small_model_training as training
from conceptnb.steering.comparison import Fold, Settings
from conceptnb.steering.small_model_training import Lesson, LessonPlan
from conceptnb.steering.small_models import small_models
from conceptnb.steering.techniques import MASS_MEAN, TECHNIQUES, Training
from conceptnb.steering.toy_corpora import CORPUS_KINDS
from conceptnb.steering.truthfulqa import read_truthfulqa
from conceptnb.studies import steering_subject as subjects
from conceptnb.studies import steering_techniques as study
from conceptnb.tables import steering_analysis as analysis
from tests.steering.conftest import build

CHOSEN = ("baseline", "random direction", MASS_MEAN, "steering matrix", "category oracle")
STORY = "in the morning mira walked to the mill and found a small boat."
GRID = {"folds": 2, "heads": [3, 6], "alphas": [1.0, 4.0]}


@pytest.fixture(scope="module")
def questions(corpus):
    return corpus.questions()[::6]


@pytest.fixture(scope="module")
def subject(llama, tokenizer, questions):
    return subjects.subject_of(llama, tokenizer, questions, [STORY, STORY + " " + STORY], 64)


@pytest.fixture(scope="module")
def runs(subject):
    found = [
        run
        for fold in (0, 1)
        for run in study._fold_runs(subject, seed=0, fold=fold, techniques=CHOSEN, **GRID)
    ]
    return [{"world": "tiny", "model_seed": 0, **run} for run in found]


def test_folds_partition_the_questions(llama, tokenizer, questions, subject):
    settings = Settings(folds=3)
    folds = [
        Fold(llama, tokenizer, questions, subject.activations, settings, 7, i) for i in range(3)
    ]
    assert sorted(q.id for fold in folds for q in fold.test) == sorted(q.id for q in questions)
    sizes = [len(fold.test) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    for fold in folds:
        assert {q.id for q in fold.train}.isdisjoint(q.id for q in fold.test)
        assert len(fold.train) + len(fold.test) == len(questions)
    with pytest.raises(ValueError, match="4 questions per fold"):
        Fold(llama, tokenizer, questions[:5], subject.activations, Settings(), 0, 0)
    with pytest.raises(ValueError, match="number of a fold"):
        Fold(llama, tokenizer, questions, subject.activations, Settings(), 0, 2)


def test_runs_are_consistent(runs, questions):
    assert [run["method"] for run in runs] == [*CHOSEN, *CHOSEN]
    for run in runs:
        assert len(run["tested"]) == len(questions)
        assert run["mc1"] == pytest.approx(
            analysis.accuracy_at_choice([run], run["method"])[
                [digit == "1" for digit in run["tested"]]
            ].mean(),
            abs=1e-5,
        )
    one, other = runs[0], runs[len(CHOSEN)]
    assert all({a, b} == {"0", "1"} for a, b in zip(one["tested"], other["tested"], strict=True))
    assert one["kl"] == 0
    for run in runs:
        if run["method"] == "baseline":
            continue
        # The stories share no word with the questions, so TF-IDF leaves them alone.
        assert (run["curve"][-1]["kl"] == 0) == (run["method"] == "steering matrix")
        # Under the edit that answers a question every method acts, the matrix too.
        assert run["curve"][-1]["kl_asked"] > 0
        if "matrix" not in run["method"] and "oracle" not in run["method"]:
            assert run["kl_asked"] == run["kl"]
    json.dumps(runs)  # plain values only
    rows = analysis.table6_rows(runs)
    assert [row["technique"] for row in rows] == list(CHOSEN)
    both = [run["mc1"] for run in runs if run["method"] == MASS_MEAN]
    assert rows[2]["MC1"] == [round(float(np.mean(both)), 4), 0.0]
    assert len(analysis.table6(runs)) == len(CHOSEN)


def test_test_questions_do_not_influence_what_is_fitted(subject, monkeypatch):
    """σ was once taken over the test questions too."""
    seen = []
    original = Training.on.__func__

    def spy(cls, *arguments):
        training = original(cls, *arguments)
        seen.append(set(training.activations.ids))
        return training

    monkeypatch.setattr(Training, "on", classmethod(spy))
    for fold in (0, 1):
        (run,) = study._fold_runs(subject, seed=0, fold=fold, techniques=[MASS_MEAN], **GRID)
        tested = {
            question.id
            for question, digit in zip(subject.questions, run["tested"], strict=True)
            if digit == "1"
        }
        learned = seen[2 * fold : 2 * fold + 2]
        assert len(learned) == 2 and all(part and not part & tested for part in learned)


def test_a_choice_is_made_only_where_there_is_one(subject, llama, tokenizer, questions):
    given = Fold(llama, tokenizer, questions, subject.activations, Settings((4,), (3.0,)), 0, 0)
    heads, alpha, [(strength, steering)] = given.fit(TECHNIQUES[MASS_MEAN], 3)
    assert (heads, alpha, strength) == (4, 3.0, 3.0)
    assert (steering.offsets.abs().sum(-1) > 0).sum() == 4
    assert "_validation" not in vars(given)


def test_shuffled_labels_keep_their_number_per_question(subject, rng):
    mixed = subject.activations.shuffled(rng)
    for question in subject.questions:
        rows = mixed.ids == question.id
        assert mixed.true[rows].sum() == subject.activations.true[rows].sum() == 1
    assert (mixed.true != subject.activations.true).any()
    assert mixed.heads is subject.activations.heads


def by_hand(kl, right):
    points = [
        {"alpha": float(i), "kl": k, "kl_asked": k, "ce": 1.0, "right": r}
        for i, (k, r) in enumerate(zip(kl, right, strict=True), start=1)
    ]
    here = {"world": "w", "model_seed": 0, "seed": 0, "fold": 0, "tested": "11", "chosen": True}
    start = {"alpha": 0.0, "kl": 0.0, "kl_asked": 0.0, "ce": 0.9, "right": "00"}
    return [
        {**here, "method": "baseline", "alpha": 0.0, "curve": [start]},
        {**here, "method": "m", "alpha": 1.0, "curve": points},
    ]


def test_accuracy_at_equal_kl_interpolates_by_hand():
    rows = by_hand([0.1, 0.3], ["10", "11"])
    np.testing.assert_allclose(analysis.accuracy_at_kl(rows, "m", 0.05), [0.5, 0])
    np.testing.assert_allclose(analysis.accuracy_at_kl(rows, "m", 0.2), [1, 0.5])
    np.testing.assert_allclose(analysis.accuracy_at_kl(rows, "m", 9.0), [1, 1])
    with pytest.raises(ValueError, match="positive KL"):
        analysis.accuracy_at_kl(rows, "m", 0)
    found = analysis.along_alpha(rows, "m")
    np.testing.assert_allclose(found["mc1"], [0, 0.5, 1])
    np.testing.assert_allclose(found["kl_asked"], [0, 0.1, 0.3])


def test_a_question_counts_in_the_fold_that_tested_it():
    one, other = by_hand([0.1], ["1"]), by_hand([0.1], ["0"])
    for fold, rows in enumerate((one, other)):
        for row in rows:
            row["tested"], row["fold"] = ("10", "01")[fold], fold
            row["curve"] = [point | {"right": point["right"][0]} for point in row["curve"]]
    np.testing.assert_allclose(analysis.accuracy_at_choice([*one, *other], "m"), [1, 0])
    np.testing.assert_allclose(analysis.accuracy_at_kl([*one, *other], "m", 0.05), [0.5, 0])


def test_paired_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        found = analysis.paired_difference(rng.normal(0.3, 1, 60), np.zeros(60), rng, draws=400)
        inside += found.low < 0.3 < found.high
    assert 0.88 < inside / 200 < 0.99
    with pytest.raises(ValueError, match="same questions"):
        analysis.paired_difference(np.zeros(3), np.zeros(4), rng)


def test_the_table_on_the_page_is_that_of_the_runs():
    kept = results.load("steering")
    assert kept.rows == analysis.table6_rows(kept.runs)
    corpora = analysis.by_corpus(kept.runs)
    assert set(corpora) == {kind for kind, _ in small_models()} < set(CORPUS_KINDS)
    for rows in corpora.values():
        for model_seed in (0, 1, 2):
            mine = [row for row in rows if row["model_seed"] == model_seed]
            assert {row["seed"] for row in mine} == {0, 1, 2}
            # Without an intervention nothing depends on the split.
            splits = [[row for row in mine if row["seed"] == seed] for seed in (0, 1, 2)]
            outcomes = {tuple(analysis.accuracy_at_choice(s, "baseline")) for s in splits}
            assert len(outcomes) == 1
    real = results.load("steering_real")
    assert real.rows == analysis.table6_rows(real.runs)
    assert kept.notes["paper_table"] == real.notes["paper_table"] == "table6"


def write_csv(path, rows):
    header = "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers,Source\n"
    path.write_text("\ufeff" + header + "".join(rows), encoding="utf-8")
    return path


def test_truthfulqa_format(tmp_path):
    path = write_csv(
        tmp_path / "q.csv", ['A,Law,"Is it, or not?",Yes it is,It is; Yes it is,No; Never; No,x\n']
    )
    (question,), edition = read_truthfulqa(path)
    assert question.text == "Is it, or not?"
    assert question.answers == ("Yes it is", "It is", "No", "Never")
    assert question.true == (True, True, False, False)
    assert (question.best, question.category) == (0, "Law")
    assert edition == "1 questions: NOT COMPARABLE"
    # As in the file of January 2025; and two questions list an answer as right and as wrong.
    lines = [f"A,Law,Is it {i}?,Yes,Unknown,Unknown,x\n" for i in range(790)]
    many = write_csv(tmp_path / "q.csv", lines)
    assert "NOT COMPARABLE" in read_truthfulqa(many)[1]
    short = tmp_path / "bad.csv"
    short.write_text("Category,Question\nLaw,Why?\n", encoding="utf-8")
    with pytest.raises(ValueError, match="best_answer"):
        read_truthfulqa(short)
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_truthfulqa(tmp_path / "none.csv")


def tiny_model(folder, questions):
    base = ByteLevelBPETokenizer()
    base.train_from_iterator([q.text + " " + " ".join(q.answers) for q in questions], 800)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base._tokenizer)
    tokenizer.save_pretrained(folder)
    build("llama", len(tokenizer)).save_pretrained(folder)
    return folder


def command(folder, questions, data, *more):
    texts = folder / "texts.txt"
    texts.write_text("\n".join(q.text for q in questions[:4]))
    return ["reproduce", "steering", "--model", str(tiny_model(folder / "tiny", questions)),
            "--data", str(data), "--texts", str(texts), "--heads", "4", "--alpha", "2",
            "--split-seeds", "0", "--batch-size", "64", "--jobs", "1", "--backend", "sequential",
            "--out", str(folder / "out.json"), *more]  # fmt: skip


def test_a_real_model_from_the_command_line(tmp_path, capsys):
    lines = [f"A,Law,Is it {i} or not?,Yes {i},It is {i},No; Never {i},x\n" for i in range(12)]
    data = write_csv(tmp_path / "q.csv", lines)
    questions, _ = read_truthfulqa(data)
    words = command(tmp_path, questions, data)
    assert main(words) == 2  # nothing is started without asking
    assert "--yes" in capsys.readouterr().err
    assert main([*words, "--yes"]) == 0
    assert "GiB of weights" in capsys.readouterr().out
    found = results.read(tmp_path / "out.json")
    assert found.notes["paper_table"] == "table6" and "NOT COMPARABLE" in found.notes["data"]
    assert {run["world"] for run in found.runs} == {"tiny"}
    assert len(found.runs) == 2 * (len(TECHNIQUES) + 2)
    assert found.rows == analysis.table6_rows(found.runs)
    without = [word for word in words if word not in ("--texts", str(tmp_path / "texts.txt"))]
    assert main([*without, "--force"]) == 2
    assert "--texts is missing" in capsys.readouterr().err


def test_other_weights_are_other_tasks(tmp_path):
    data = write_csv(tmp_path / "q.csv", [f"A,B,Is it {i}?,Yes,It is,No,x\n" for i in range(8)])
    questions, _ = read_truthfulqa(data)
    folder = tiny_model(tmp_path / "tiny", questions)
    before = subjects.fingerprint_of(str(folder), questions)
    assert before == subjects.fingerprint_of(str(folder), questions)
    assert before != subjects.fingerprint_of(str(folder), questions[1:])
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert before != subjects.fingerprint_of(str(folder), questions)


def test_small_models_are_trained_from_the_command_line(tmp_path, monkeypatch, capsys):
    lesson = Lesson(3, 0.25, 0.25, 0.25, 0.25, rates=(1.0, 0.5))
    monkeypatch.setattr(training, "_CURRICULUM", LessonPlan((lesson, lesson), batch=4, warmup=2))
    monkeypatch.chdir(tmp_path)
    assert main(["train-language-model", "--corpus", "alike", "--seeds", "5"]) == 0
    assert "alike-5: loss" in capsys.readouterr().out
    # Where one stands, and not in the installed package.
    kept = load_file(tmp_path / "alike-5" / "model.safetensors")
    assert sum(tensor.size for tensor in kept.values()) > 5e5
    record = json.loads((tmp_path / "alike-5" / "record.json").read_text())
    assert (record["corpus"], record["seed"]) == ("alike", 5)


_FOLDER = os.environ.get("CONCEPTNB_DATA")
_FILE = Path(_FOLDER or "") / "TruthfulQA.csv"


@pytest.mark.slow
@pytest.mark.skipif(not (_FOLDER and _FILE.is_file()), reason="CONCEPTNB_DATA has no TruthfulQA")
def test_all_of_truthfulqa_on_a_tiny_random_llama(tmp_path):
    questions, edition = read_truthfulqa()
    assert len(questions) == 817 and len({q.category for q in questions}) == 38
    assert edition == "the 817 questions of the published results"
    assert main([*command(tmp_path, questions, _FILE), "--yes"]) == 0
    found = results.read(tmp_path / "out.json")
    (baseline,) = (row for row in found.rows if row["technique"] == "baseline")
    chance = np.mean([1 / (1 + sum(not t for t in q.true)) for q in questions])
    # A random model still prefers short answers, so chance is only about what it scores.
    assert abs(baseline["MC1"][0] - chance) < 0.08
