"""``conceptnb score``: MC1 and MC2 of a language model, and every log-probability behind them."""

import importlib.util
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from conceptnb.commands.options import (
    COUNT,
    FINITE,
    MODEL,
    PATH,
    choice,
    command,
    force,
    option,
)
from conceptnb.common.files import refuse_output, write_text

if TYPE_CHECKING:
    from conceptnb.steering.questions import Question


@command(
    "score",
    "score a language model on multiple-choice questions such as TruthfulQA's",
    option(
        "--model",
        type=MODEL,
        required=True,
        help="smollm2-135m-instruct (extra smollm), a GGUF file, a folder, or a name on the hub",
    ),
    option(
        "--data",
        required=True,
        help="truthfulqa, or questions as CSV, JSON lines or a multiple-choice task (.json)",
    ),
    option("--preface", type=PATH, help="file with worked examples before each prompt"),
    option(
        "--prompt",
        type=choice("paper", "lm-eval", "chat"),
        default="paper",
        help="'Q: ... A:' (default), in the chat template, or as lm-evaluation-harness, whose "
        "examples are --preface, or qa_preface.txt in the folder that CONCEPTNB_DATA names",
    ),
    option("--limit", type=COUNT, help="score the first questions only"),
    option(
        "--memory",
        type=FINITE,
        default=2.0,
        help="memory that scoring may use beside the model, in GB (default 2)",
    ),
    option("--out", type=PATH, help="file; by default the answer is printed"),
    force("the file of --out"),
)
def score(**given: Any) -> None:
    """Score the questions, and write or print the record."""
    args = SimpleNamespace(**given)
    started = time.process_time()
    if args.out is not None:
        refuse_output(args.out, args.force)
    if not args.memory > 0:
        raise ValueError(f"--memory={args.memory} has to be positive")
    from conceptnb.steering.language_models import (  # noqa: PLC0415 - what only a run needs
        find_language_model,
        load_language_model,
    )
    from conceptnb.steering.questions import read_preface  # noqa: PLC0415

    preface = read_preface(args.preface, args.prompt)
    questions = _questions(args.data)[: args.limit]
    if importlib.util.find_spec("transformers") is None:
        raise ImportError("language models need pip install 'conceptnb[steering]'")
    source = find_language_model(args.model)
    from conceptnb.steering.own_questions import refuse_long_prompts  # noqa: PLC0415 - torch
    from conceptnb.steering.scoring import AnswerScorer, choice_scores  # noqa: PLC0415
    from conceptnb.steering.spans import encode_questions  # noqa: PLC0415

    model, tokenizer = load_language_model(source)
    refuse_long_prompts(model, encode_questions(tokenizer, questions, preface, args.prompt))
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
        return
    write_text(args.out, text)
    print(
        f"{args.out}: {len(questions)} questions, MC1 {record['mc1']:.3f}, "
        f"MC2 {record['mc2']:.3f}, {record['cpu_seconds']:.0f} CPU-s"
    )


def _record(question: "Question", scores: list[float]) -> dict[str, Any]:
    one = [question.best, *(k for k, true in enumerate(question.true) if not true)]
    return {
        "question": question.text,
        "mc1_choices": [question.answers[k] for k in one],
        "mc1_logprobs": [scores[k] for k in one],
        "mc2_choices": list(question.answers),
        "mc2_labels": [int(true) for true in question.true],
        "mc2_logprobs": scores,
    }


def _questions(data: str) -> "list[Question]":
    if data == "truthfulqa":
        from conceptnb.steering.truthfulqa import read_truthfulqa  # noqa: PLC0415 - brings pooch

        return read_truthfulqa()[0]
    from conceptnb.steering.questions import read_questions  # noqa: PLC0415

    return read_questions(data, contradictions=True)
