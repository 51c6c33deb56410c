"""``conceptnb steer``: a model, and questions or pairs -> what steering does, and a vector."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from conceptnb.commands.options import COUNT, FINITE, MODEL, PATH, Whole, choice, command, option
from conceptnb.commands.reports import fill, refuse_files, report_options, write_report
from conceptnb.commands.steer_pairs import DIRECTIONS, steer_by_pairs
from conceptnb.common.files import write_text

_FILES = ("report.html", "steering.safetensors", "apply.py", "questions.csv")
_OF_QUESTIONS = {"heads"}
_OF_PAIRS = {"prompts", "direction", "layer", "tokens", "texts", "bake"}
_TYPED = click.core.ParameterSource.COMMANDLINE
_PROMPTS = {
    "paper": 'tokenizer(f"Q: {sys.argv[1]} A:", return_tensors="pt")',
    "chat": """tokenizer.apply_chat_template(
    [{"role": "user", "content": sys.argv[1]}],
    add_generation_prompt=True, return_dict=True, return_tensors="pt",
)""",
}


@command(
    "steer",
    "steer a language model by your own questions or pairs: a report, and a vector that travels",
    option(
        "--model",
        type=MODEL,
        required=True,
        help="smollm2-135m-instruct (extra smollm), a GGUF file, a folder, a name on the hub",
    ),
    option(
        "--questions",
        type=PATH,
        metavar="FILE",
        help="with right and wrong answers: CSV, JSON lines or a multiple-choice task (.json)",
    ),
    option(
        "--pairs",
        type=PATH,
        metavar="FILE",
        help="or pairs of texts: CSV or JSON lines with positive, negative and perhaps prompt",
    ),
    option(
        "--alpha",
        type=FINITE,
        default=2.0,
        help="strength, in standard deviations of what is steered (default 2)",
    ),
    option(
        "--prompt",
        type=choice(*_PROMPTS),
        help="questions as 'Q: ... A:' (default), or in the model's chat template; prompts of "
        "--pairs as they are, or in the template (default where pairs are chats)",
    ),
    option(
        "--heads",
        type=COUNT,
        default=16,
        help="with --questions: number of heads that are steered (default 16)",
    ),
    option(
        "--prompts",
        type=PATH,
        metavar="FILE",
        help="with --pairs: what the model continues, one prompt a line",
    ),
    option(
        "--direction",
        type=choice(*DIRECTIONS),
        default=DIRECTIONS[0],
        help="with --pairs: mean difference (default), principal component, or a probe's weights",
    ),
    option(
        "--layer",
        type=Whole(0),
        help="with --pairs: the layer that is steered, from 0 (default: chosen by held-out pairs)",
    ),
    option(
        "--tokens", type=COUNT, default=40, help="with --pairs: new tokens a prompt (default 40)"
    ),
    option(
        "--texts",
        type=PATH,
        metavar="FILE",
        help="with --pairs: neutral text, one a line (default: prose of this book)",
    ),
    option(
        "--bake", is_flag=True, help="with --pairs: write a checkpoint that needs no hooks, too"
    ),
    *report_options(),
)
@click.pass_context
def steer(ctx: click.Context, **given: Any) -> None:
    """Fit and show steering by questions or by pairs; write a report, a vector, and code."""
    args = SimpleNamespace(**given)
    if (args.questions is None) == (args.pairs is None):
        raise ValueError("give one of --questions and --pairs")
    typed = {name for name in given if ctx.get_parameter_source(name) is _TYPED}
    if wrong := sorted(typed & (_OF_PAIRS if args.pairs is None else _OF_QUESTIONS)):
        other = "--pairs" if args.pairs is None else "--questions"
        raise ValueError(f"--{wrong[0]} belongs to {other}: leave it out")
    if args.pairs is None:
        args.prompt = args.prompt or "paper"
        _steer_by_questions(args, ctx.meta["words"])
        return
    if args.prompts is None:
        raise ValueError("--pairs needs --prompts: a file with what the model is to continue")
    if args.prompt == "paper":
        raise ValueError("--prompt paper is for --questions: give chat, or leave it out")
    if args.alpha == 0:
        raise ValueError("--alpha 0 steers nothing: give another number")
    steer_by_pairs(args, ctx.meta["words"])


def _steer_by_questions(args: SimpleNamespace, words: Sequence[str]) -> None:
    """Fit and judge steering; write report, mass-mean vector, code that applies it, and scores."""
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
        command=shlex.join(["conceptnb", "steer", *words]),
    )
