"""``conceptnb score``: MC1 and MC2 of a language model, and every log-probability behind them."""

import argparse
import importlib.util
import json
import time
from collections.abc import Sequence
from typing import Any

from conceptnb.common.files import write_text
from conceptnb.results.runner import _check_out, _refuse_missing, _refuse_outside
from conceptnb.steering.language_models import find_language_model, load_language_model
from conceptnb.steering.questions import Question, read_preface, read_questions


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Score the questions, and write or print the record."""
    args = parser.parse_args(words)
    started = time.process_time()
    if args.out is not None:
        _check_out(args.out, args.force)
    _refuse_outside("limit", args.limit, {})
    _refuse_missing("model", args.model, {"model": ["*"]})
    if not args.memory > 0:
        raise ValueError(f"--memory={args.memory} has to be positive")
    preface = read_preface(args.preface, args.prompt)
    questions = _questions(args.data)[: args.limit]
    if importlib.util.find_spec("transformers") is None:
        raise ImportError("language models need pip install 'conceptnb[steering]'")
    source = find_language_model(args.model)
    from conceptnb.steering.own_questions import _refuse_long_prompts  # noqa: PLC0415 - torch
    from conceptnb.steering.scoring import AnswerScorer, choice_scores  # noqa: PLC0415
    from conceptnb.steering.spans import encode_questions  # noqa: PLC0415

    model, tokenizer = load_language_model(source)
    _refuse_long_prompts(model, encode_questions(tokenizer, questions, preface, args.prompt))
    scorer = AnswerScorer(
        model, tokenizer, questions, preface, prompt=args.prompt, memory=args.memory
    )
    found = scorer.score()
    scores = choice_scores(questions, found)
    record = {
        "model": args.model,
        "data": args.data,
        "prompt": args.prompt,
        "mc1": float(scores.mc1.mean()),
        "mc2": float(scores.mc2.mean()),
        "cpu_seconds": round(time.process_time() - started, 2),
        "questions": [_record(q, [float(x) for x in found[q.id]]) for q in questions],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    if args.out is None:
        print(text, end="")
        return 0
    write_text(args.out, text)
    print(
        f"{args.out}: {len(questions)} questions, MC1 {record['mc1']:.3f}, "
        f"MC2 {record['mc2']:.3f}, {record['cpu_seconds']:.0f} CPU-s"
    )
    return 0


def _record(question: Question, scores: list[float]) -> dict[str, Any]:
    one = [question.best, *(k for k, true in enumerate(question.true) if not true)]
    return {
        "question": question.text,
        "mc1_choices": [question.answers[k] for k in one],
        "mc1_logprobs": [scores[k] for k in one],
        "mc2_choices": list(question.answers),
        "mc2_labels": [int(true) for true in question.true],
        "mc2_logprobs": scores,
    }


def _questions(data: str) -> list[Question]:
    if data == "truthfulqa":
        from conceptnb.steering.truthfulqa import read_truthfulqa  # noqa: PLC0415 - brings pooch

        return read_truthfulqa()[0]
    return read_questions(data, contradictions=True)
