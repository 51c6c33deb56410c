"""``conceptnb steer``: a model and questions -> what steering does to answers, and a vector."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from conceptnb.commands.learn import _fill, _parse, _write
from conceptnb.common.files import write_text
from conceptnb.results.runner import _refuse_missing, _refuse_outside
from conceptnb.steering.language_models import find_language_model, load_language_model
from conceptnb.steering.questions import read_questions, refuse_few

_FILES = ("report.html", "steering.safetensors", "apply.py", "questions.csv")
_PROMPTS = {
    "paper": 'tokenizer(f"Q: {sys.argv[1]} A:", return_tensors="pt")',
    "chat": """tokenizer.apply_chat_template(
    [{"role": "user", "content": sys.argv[1]}],
    add_generation_prompt=True, return_dict=True, return_tensors="pt",
)""",
}


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Fit and judge steering; write report, mass-mean vector, code that applies it, and scores."""
    args = _parse(parser, words, _FILES)
    _refuse_outside("heads", args.heads, {})
    _refuse_outside("alpha", args.alpha, {})
    _refuse_missing("model", args.model, {"model": ["*"]})
    questions = read_questions(args.questions)
    refuse_few(questions, str(args.questions))
    source = find_language_model(args.model)
    from conceptnb.plotting.reports import choices_by_category  # noqa: PLC0415 - matplotlib
    from conceptnb.steering.own_questions import steer_questions  # noqa: PLC0415 - brings torch

    model, tokenizer = load_language_model(source)
    report = steer_questions(
        questions, model, tokenizer, n_heads=args.heads, alpha=args.alpha, seed=args.seed,
        prompt=args.prompt,
    )  # fmt: skip
    report.vector.save(
        args.out / "steering.safetensors",
        model=args.model,
        learned=f"mass mean shift, {args.heads} heads, alpha {args.alpha:g}",
    )
    path = Path(args.model).resolve()
    place, name = (str(path), path.name) if path.exists() else (args.model, args.model)
    code = _fill("apply_steering.txt", model=repr(place), prompt=_PROMPTS[args.prompt])
    write_text(args.out / "questions.csv", report.by_question().to_csv(index=False))
    summary = report.summary()
    alt = (
        "Share of questions answered truly (MC1) by category and technique. Over all: "
        + ", ".join(f"{row.technique} {row.MC1}" for row in summary.itertuples())
    )
    return _write(
        args.out,
        _FILES,
        "report_steering.html",
        {"summary": summary, "figure": (choices_by_category(report), alt)},
        title=f"{name} steered by {args.questions.name}",
        lead=f"{len(questions):,} questions, in two halves: each was scored by what the other "
        f"half taught. {args.heads} heads, strength {args.alpha:g}; best probe of "
        f"{report.probe_accuracy.size} heads {report.probe_accuracy.max():.2f} (chance 0.5 each).",
        warnings=report.warnings,
        none="No warning. That does not prove that answers are more true: look at some of them.",
        code=code,
        command=shlex.join(["conceptnb", "steer", *words]),
    )
