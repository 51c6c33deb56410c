"""Cross-validated studies: folds, resuming, tables, and the real path on TruthfulQA."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast

from conceptnb import results
from conceptnb.steering.methods import METHODS, category_oracle
from conceptnb.steering.truthfulqa import edition, read_truthfulqa
from conceptnb.steering.worlds.toy_corpora import KINDS
from conceptnb.studies import steering_analysis as analysis
from conceptnb.studies.commands import reproduce_steering
from conceptnb.studies.steering_study import Plan, Study, make_folds
from conceptnb.studies.steering_tables import summary, table6
from tests.steering.conftest import build

PLAN = Plan(heads=(3, 6), alphas=(1.0, 4.0), seeds=(0,))
CHOSEN = ("random direction", "ITI: mass mean shift", "steering matrix")
STORY = "in the morning mira walked to the mill and found a small boat."


@pytest.fixture(scope="module")
def questions(world):
    return world.questions()[::6]


def make_study(llama, tokenizer, questions, folder=None, plan=PLAN):
    methods = {name: METHODS[name] for name in CHOSEN} | category_oracle(questions)
    return Study(llama, tokenizer, questions, [STORY, STORY + " " + STORY], methods, plan, folder)


@pytest.fixture(scope="module")
def rows(llama, tokenizer, questions):
    return make_study(llama, tokenizer, questions).run()


def test_folds_partition_the_questions(questions, rng):
    folds = make_folds(questions, 3, rng)
    names = sorted(q.id for fold in folds for q in fold)
    assert names == sorted(q.id for q in questions)
    assert max(map(len, folds)) - min(map(len, folds)) <= 1
    with pytest.raises(ValueError, match="4 questions a fold"):
        make_folds(questions[:5], 2, rng)


def test_rows_are_consistent(rows, questions):
    assert analysis.methods(rows)[0] == "baseline" and len(rows) == 5
    for row in rows:
        right = analysis.right_at_choice(row)
        assert right.shape == (len(questions),)
        assert right.mean() == pytest.approx(row["mc1"])
    baseline = rows[0]
    assert baseline["kl"] == 0
    for row in rows[1:]:
        # The stories share no word with the questions, so TF-IDF leaves them alone.
        silent = row["method"] == "steering matrix"
        assert (max(row["curve"][-1]["kl"]) == 0) == silent
        # Under the edit that answers a question every method acts, the matrix too.
        assert min(row["curve"][-1]["kl_asked"]) > 0
        if "matrix" not in row["method"] and "oracle" not in row["method"]:
            assert row["kl_asked"] == row["kl"]
    json.dumps(rows)  # plain values only
    assert len(table6(rows)) == 5


def test_test_questions_do_not_influence_what_is_fitted(llama, tokenizer, questions, monkeypatch):
    """σ was once taken over the test questions too."""
    study = make_study(llama, tokenizer, questions)
    seen = []
    original = Study._training

    def spy(self, activations, train, key):
        training = original(self, activations, train, key)
        seen.append(set(training.activations.ids))
        return training

    monkeypatch.setattr(Study, "_training", spy)
    study.split_rows(study.activations(), 0, ["ITI: mass mean shift"])
    folds = make_folds(questions, 2, np.random.default_rng(0))
    for i, test in enumerate(folds):
        for part in seen[2 * i : 2 * i + 2]:
            assert part and not part & {q.id for q in test}


@pytest.mark.parametrize("stage", ["activations", "first fold", "second fold"])
def test_resumes_after_a_kill_at_each_stage(
    llama, tokenizer, questions, rows, stage, tmp_path, monkeypatch
):
    points = {"activations": 0, "first fold": 4, "second fold": 13}[stage]
    count = 0
    original = Study._point

    def killed(self, *args):
        nonlocal count
        count += 1
        if count > points:
            raise KeyboardInterrupt
        return original(self, *args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Study, "_point", killed)
        make_study(llama, tokenizer, questions, tmp_path).run()
    assert (tmp_path / "activations.safetensors").is_file()
    assert (tmp_path / "split-0-fold-0.json").is_file() == (stage == "second fold")
    assert make_study(llama, tokenizer, questions, tmp_path).run() == rows


def test_checkpoints_of_another_study_are_refused(llama, tokenizer, questions, tmp_path):
    make_study(llama, tokenizer, questions, tmp_path)
    with pytest.raises(ValueError, match="another study"):
        make_study(llama, tokenizer, questions[1:], tmp_path)


def curve_row(kl, right, fold="00"):
    points = [{"alpha": float(i), "kl_asked": [k], "ce": [1.0], "right": r} for i, (k, r) in
              enumerate(zip(kl, right, strict=True), start=1)]  # fmt: skip
    return {"method": "m", "split_seed": 0, "fold": fold, "curve": points, "alpha": [1.0]}


def test_accuracy_at_equal_kl_interpolates_by_hand():
    start = {"method": "baseline", "split_seed": 0, "curve": [{"right": "00", "kl_asked": [0.0]}]}
    row = curve_row([0.1, 0.3], ["10", "11"])
    np.testing.assert_allclose(analysis.right_at_kl(row, start, 0.05), [0.5, 0])
    np.testing.assert_allclose(analysis.right_at_kl(row, start, 0.2), [1, 0.5])
    np.testing.assert_allclose(analysis.right_at_kl(row, start, 9.0), [1, 1])
    with pytest.raises(ValueError, match="positive KL"):
        analysis.right_at_kl(row, start, 0)


def test_paired_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        found = analysis.paired_difference(rng.normal(0.3, 1, 60), np.zeros(60), rng, draws=400)
        inside += found.low < 0.3 < found.high
    assert 0.88 < inside / 200 < 0.99
    with pytest.raises(ValueError, match="same questions"):
        analysis.paired_difference(np.zeros(3), np.zeros(4), rng)


def write_csv(path, rows):
    header = "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers,Source\n"
    path.write_text("\ufeff" + header + "".join(rows), encoding="utf-8")
    return path


def test_truthfulqa_format(tmp_path):
    path = write_csv(
        tmp_path / "q.csv", ['A,Law,"Is it, or not?",Yes it is,It is; Yes it is,No; Never; No,x\n']
    )
    (question,) = read_truthfulqa(path)
    assert question.text == "Is it, or not?"
    assert question.answers == ("Yes it is", "It is", "No", "Never")
    assert question.true == (True, True, False, False)
    assert question.best == 0
    assert "NOT COMPARABLE" in edition([question], path)
    assert "NOT COMPARABLE" in edition([question] * 790, path)
    with pytest.raises(ValueError, match="Best Answer"):
        read_truthfulqa(_without_columns(tmp_path / "bad.csv"))


def _without_columns(path):
    path.write_text("Category,Question\n", encoding="utf-8")
    return path


def test_real_path_asks_for_neutral_texts():
    with pytest.raises(ValueError, match="--texts is missing"):
        reproduce_steering._neutral_texts(None)


def test_a_sampled_row_of_the_computed_table_again():
    kept = results.load("steering_runs")
    study = reproduce_steering.world_study("no-source", 0)
    study.progress = False
    for name in ("ITI: mass mean shift", "matrix, optimised weights"):
        (row,) = study.split_rows(study.activations(), 1, [name])
        (stored,) = analysis.select(
            kept.rows, world="no-source", model_seed=0, split_seed=1, method=name
        )
        assert row["fold"] == stored["fold"] and row["heads"] == stored["heads"]
        assert row["alpha"] == stored["alpha"]
        # Two answers of nearly equal probability may change places on another processor.
        assert row["mc1"] == pytest.approx(stored["mc1"], abs=0.025)
        for key in ("mc2", "ce", "kl", "kl_asked"):
            assert row[key] == pytest.approx(stored[key], rel=0.02, abs=1e-3), key


def test_the_table_on_the_page_is_that_of_the_runs():
    runs, shown = results.load("steering_runs"), results.load("steering")
    worlds = {kind: analysis.select(runs.rows, world=kind) for kind in KINDS}
    assert shown.rows == summary({kind: rows for kind, rows in worlds.items() if rows})
    for rows in worlds.values():
        for seed in {row["model_seed"] for row in rows}:
            mine = analysis.select(rows, model_seed=seed)
            assert {row["split_seed"] for row in mine} == {0, 1, 2}
            # Without an intervention nothing depends on the split.
            baseline = analysis.select(mine, method="baseline")
            assert len({row["curve"][0]["right"] for row in baseline}) == 1
    assert results.beside("table6").results == (shown,)


_FOLDER = os.environ.get("CONCEPTNB_DATA")
_FILE = Path(_FOLDER or "") / "TruthfulQA.csv"


@pytest.mark.slow
@pytest.mark.skipif(not (_FOLDER and _FILE.is_file()), reason="CONCEPTNB_DATA has no TruthfulQA")
def test_all_of_truthfulqa_on_a_tiny_random_llama(tmp_path):
    questions = read_truthfulqa(_FILE)
    assert len(questions) == 817 and len({q.category for q in questions}) == 38
    assert edition(questions, _FILE) == "the 817 questions of the published results"
    model_dir = tmp_path / "tiny"
    base = ByteLevelBPETokenizer()
    base.train_from_iterator([q.text + " " + " ".join(q.answers) for q in questions], 800)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base._tokenizer)
    tokenizer.save_pretrained(model_dir)
    build("llama", len(tokenizer)).save_pretrained(model_dir)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(q.text for q in questions[:4]))
    parser = argparse.ArgumentParser()
    reproduce_steering.add_arguments(parser)
    command = ["--model", str(model_dir), "--data", str(_FILE), "--texts", str(texts), "--yes",
               "--heads", "4", "--alpha", "2", "--split-seeds", "0", "--batch-size", "64",
               "--checkpoints", str(tmp_path / "kept"),
               "--out", str(tmp_path / "out.json")]  # fmt: skip
    assert reproduce_steering.run(parser.parse_args(command)) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    baseline = next(row for row in found["rows"] if row["method"] == "baseline")
    chance = np.mean([1 / (1 + sum(not t for t in q.true)) for q in questions])
    # A random model still prefers short answers, so chance is only about what it scores.
    assert abs(baseline["mc1"] - chance) < 0.08
