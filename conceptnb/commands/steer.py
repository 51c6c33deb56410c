"""``conceptnb steer``: a model and questions -> what steering does to answers, and a vector."""

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from conceptnb.commands.options import COUNT, FINITE, MODEL, PATH, choice, command, option
from conceptnb.commands.reports import fill, refuse_files, report_options, write_report
from conceptnb.common.files import write_text

_FILES = ("report.html", "steering.safetensors", "apply.py", "questions.csv")
_PROMPTS = {
    "paper": 'tokenizer(f"Q: {sys.argv[1]} A:", return_tensors="pt")',
    "chat": """tokenizer.apply_chat_template(
    [{"role": "user", "content": sys.argv[1]}],
    add_generation_prompt=True, return_dict=True, return_tensors="pt",
)""",
}


@command(
    "steer",
    "steer a language model by your own questions: a report, and a vector that travels",
    option(
        "--model",
        type=MODEL,
        required=True,
        help="smollm2-135m-instruct (extra smollm), a GGUF file, a folder, a name on the hub",
    ),
    option(
        "--questions",
        type=PATH,
        required=True,
        metavar="FILE",
        help="CSV, JSON lines or a multiple-choice task (.json)",
    ),
    option("--heads", type=COUNT, default=16, help="number of heads that are steered (default 16)"),
    option(
        "--alpha",
        type=FINITE,
        default=2.0,
        help="strength, in standard deviations of a head's activations (default 2)",
    ),
    option(
        "--prompt",
        type=choice(*_PROMPTS),
        default="paper",
        help="'Q: ... A:' (default), or in the model's chat template",
    ),
    *report_options(),
)
@click.pass_context
def steer(ctx: click.Context, **given: Any) -> None:
    """Fit and judge steering; write report, mass-mean vector, code that applies it, and scores."""
    args = SimpleNamespace(**given)
    refuse_files(args, _FILES)
    from conceptnb.steering.language_models import (  # noqa: PLC0415 - what only a run needs
        find_language_model,
        load_language_model,
    )
    from conceptnb.steering.questions import read_questions, refuse_few  # noqa: PLC0415

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
    code = fill("apply_steering.txt", model=repr(place), prompt=_PROMPTS[args.prompt])
    write_text(args.out / "questions.csv", report.by_question().to_csv(index=False))
    summary = report.summary()
    alt = (
        "Share of questions answered truly (MC1) by category and technique. Over all: "
        + ", ".join(f"{row.technique} {row.MC1}" for row in summary.itertuples())
    )
    write_report(
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
        command=shlex.join(["conceptnb", "steer", *ctx.meta["words"]]),
    )
