"""``conceptnb reproduce NAME``: compute a stored table again, or a variant of it.

The options of every study stand here, so that they are listed and refused before a study is
imported, which may bring torch. A study is a module with ``plans(options) -> list[Plan]``.
"""

import importlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from conceptnb.commands.options import (
    COUNT,
    EXISTING,
    FINITE,
    FOLDER,
    MODEL,
    PATH,
    SEED,
    Command,
    EncoderName,
    PathOr,
    Several,
    Whole,
    choice,
    force,
    option,
)
from conceptnb.common.files import refuse_output

if TYPE_CHECKING:
    from conceptnb.results.runner import Plan

_PAPERS_SEEDS, _FIRST_SEED = 5, 3  # of Tables 1 and 7: 3 to 7
_SMOLLM2 = "smollm2-135m-instruct"


@dataclass(frozen=True)
class Asked:
    """What a command asks for: results files, and the file of ``--out`` if there is one."""

    plans: "list[Plan]"
    out: Path | None


class Study(Command):
    """The command of one study: its own options, and those about how it is computed."""

    def __init__(self, name: str, module: str, help: str, *params: click.Parameter) -> None:
        super().__init__(name, help=help, params=[*params, *_how()], callback=None)
        self.module = f"conceptnb.studies.{module}"

    def invoke(self, ctx: click.Context) -> int:
        """Compute what is asked for, and write it.

        A file that another command has made is not replaced: FileExistsError.
        """
        given = SimpleNamespace(**ctx.params)
        _refuse(given)
        from conceptnb import results  # noqa: PLC0415 - what only a run needs
        from conceptnb.results.runner import run, workers  # noqa: PLC0415

        plans = self.plans(given)
        if given.out and len(plans) > 1:
            files = ", ".join(plan.file for plan in plans)
            raise ValueError(f"--out names one file, and these are {len(plans)}: {files}")
        words = _that_matter(ctx.meta["words"], given.out)
        command = shlex.join(["conceptnb", "reproduce", str(self.name), *words])
        paths = [given.out or results.folder() / f"{plan.file}.json" for plan in plans]
        for path in paths:
            _refuse_to_replace(path, command, given)
        for plan, path in zip(plans, paths, strict=True):
            with workers(given.backend, given.scheduler, given.jobs):
                run(plan, command, path, given.checkpoints)
            print(f"wrote {path}")
        return 0

    def plans(self, given: SimpleNamespace) -> "list[Plan]":
        """Return the results files that the options ask for."""
        return importlib.import_module(self.module).plans(given)


def asked_for(name: str, words: Sequence[str]) -> Asked:
    """Return what ``conceptnb reproduce NAME WORDS`` asks for; ValueError for what is not there."""
    study = reproduce.commands.get(name)
    if not isinstance(study, Study):
        raise ValueError(f"there is no study {name!r}; there are {', '.join(reproduce.commands)}")
    try:
        ctx = study.make_context(name, list(words))
    except click.UsageError as error:
        raise ValueError(error.format_message()) from None
    given = SimpleNamespace(**ctx.params)
    return Asked(study.plans(given), given.out)


def _how() -> list[click.Parameter]:
    """Return the options about how a study is computed, which change no number."""
    return [
        option("--jobs", type=COUNT, default=2, help="tasks at a time (default 2)"),
        option("--backend", type=choice("loky", "dask", "sequential"), help="of joblib"),
        option("--scheduler", help="address of a running Dask scheduler"),
        option("--out", type=PATH, help="file to write; by default results/NAME.json"),
        force("the file of --out"),
        option("--checkpoints", type=PATH, help="of finished tasks (default OUT.parts)"),
    ]


def _refuse(given: SimpleNamespace) -> None:
    """Refuse what can be seen to be wrong before a study is imported."""
    if given.scheduler and given.backend != "dask":
        raise ValueError("--scheduler is for --backend dask: name both, or neither")
    if given.scheduler and not re.search(r":\d+$|^inproc:", given.scheduler):
        raise ValueError(f"--scheduler {given.scheduler} has no port: give tcp://HOST:PORT")
    if given.out is not None:
        refuse_output(given.out, given.force)
    if given.checkpoints is not None:
        refuse_output(given.checkpoints / "x", replace=True, option="--checkpoints")


def _that_matter(words: Sequence[str], out: Path | None) -> list[str]:
    """Return the words that say what is computed, and the name of the file."""
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    how = click.Command("how", params=_how(), context_settings=settings)
    rest = how.make_context("how", [*words], resilient_parsing=True).args
    return [*rest, *(["--out", out.name] if out else [])]


def _refuse_to_replace(path: Path, command: str, given: Any) -> None:
    """Raise before anything is computed, where the result could not be written."""
    from conceptnb import results  # noqa: PLC0415

    old = given.out is None and path.is_file() and not given.force
    again = old and results.read(path).command.split()[:3] == command.split()[:3]
    refuse_output(path, given.force or again)  # or the table of this study, computed again


def _every() -> click.Option:
    return option("--every", type=Whole(1, 39), default=1, help="take each EVERY-th question")


def _smollm2() -> click.Option:
    return option(
        "--model", type=MODEL, default=_SMOLLM2, help=f"by default {_SMOLLM2} (extra smollm)"
    )


def _seeds(of: str, default: int = _PAPERS_SEEDS) -> click.Option:
    return option("--seeds", type=COUNT, default=default, help=f"{of} (default {default})")


def _splits() -> click.Option:
    return Several("--split-seeds", type=SEED, default=[0, 1, 2], help="of splits (default 0 1 2)")


_PARTS = ("estimated", "instances", "lemma1", "nested", "pairs", "violations")
_LIMITS = (
    *("design", "samples", "environments", "variance"),
    *("spread", "conditioning", "noise", "dimension"),
)
_METHODS = (
    *("random projection", "random, 32 dimensions", "PCA", "FastICA", "classifier", "iVAE"),
    *("interventional", "concepts", "supervised"),
)
CLIP_MODELS = ("small-vit", "small-resnet")
"""Names of the small CLIP models, which the package carries."""

_STUDIES = (
    Study(
        "theory",
        "theory_tables",
        "the tables of the chapters on identifiability",
        Several("--part", type=choice(*_PARTS), default=_PARTS, help="tables to make"),
    ),
    Study(
        "theory-beyond",
        "theory_beyond_paper",
        "finite samples against their prediction, and recovery from poles",
        option("--instances", type=COUNT, default=500, help="of recovery from poles"),
    ),
    Study(
        "theory-users",
        "theory_for_users",
        "impure environments, noise of unknown form, and the price of a design",
    ),
    Study(
        "synthetic",
        "synthetic_tables",
        "Tables 1 and 7: synthetic identifiability, ours beside the paper's",
        option("--table", type=choice("1", "7", "all"), default="all", help="the paper's"),
        option(
            "--estimator",
            type=choice("faithful", "best", "clustered", "supervised"),
            default="faithful",
            help="the authors' protocol, the book's best, that for clustered bases (nonlinear "
            "rows), or regression on the truth as a bound",
        ),
        _seeds("problems per row"),
        option("--first-seed", type=SEED, default=_FIRST_SEED, help="of consecutive seeds"),
    ),
    Study(
        "references",
        "references",
        "what Tables 1 and 7 are read against: supervised, untrained, and equal starts and decay",
    ),
    Study(
        "averaged",
        "averaged",
        "an average over two kinds of coordinates, on the nonlinear rows of Tables 1 and 7",
    ),
    Study(
        "limits",
        "limits_studies",
        "what limits identifiability: studies of one cause at a time, with bounds",
        option("--study", type=choice("all", *_LIMITS), default="all", help="which one"),
        _seeds("problems per cell"),
    ),
    Study(
        "variants",
        "head_variants",
        "the head of (87) and its loss in several forms, and the number of concepts chosen",
        _seeds("problems per row"),
        option("--samples", type=Whole(10), default=1000, help="per environment"),
    ),
    Study(
        "baselines",
        "baseline_comparison",
        "what a reader would try instead, on the problems of Table 1",
        option("--method", type=choice("all", *_METHODS), default="all", help="which one"),
        option("--rows", type=Whole(1, 6), default=4, help="of Table 1, from the first"),
        _seeds("problems per row"),
        option(
            "--samples", type=Whole(10), default=1000, help="per environment; the paper's 5000"
        ),
    ),
    Study(
        "cauca",
        "cauca",
        "problems of Causal Component Analysis: one intervention per node, nonlinear mixing",
        _seeds("causal models", 10),
        option("--first-seed", type=SEED, default=100, help="of them (default 100)"),
        option(
            "--samples",
            type=Whole(100),
            default=100_000,
            help="per environment; the publication's 200000",
        ),
    ),
    Study(
        "light-tunnel",
        "light_tunnel",
        "concepts from images of a physical device: the light tunnel of the causal chambers",
        option(
            "--data",
            type=PathOr("simulated", "download"),
            default="simulated",
            help="simulated, download, or a folder",
        ),
        _seeds("draws per scene", 8),
        option("--rows", type=COUNT, default=40000, help="drawn before selection"),
    ),
    Study(
        "own-tables",
        "own_tables",
        "how often the warnings about a table of one's own are missed, and false",
        option("--tables", type=Whole(20), default=200, help="of each fault (default 200)"),
    ),
    Study(
        "clip",
        "clip",
        "Tables 2 to 5: concept directions in CLIP embeddings of 3D Shapes",
        Several(
            "--models",
            type=EncoderName("small", "openai", *CLIP_MODELS),
            default=["small"],
            help="small (trained here, with untrained controls), openai (ViT-B-32 and RN101 of "
            "Appendix D), or names and local checkpoints",
        ),
        option(
            "--data",
            type=PathOr("rendered", "3dshapes"),
            default="rendered",
            help="rendered (made here), 3dshapes (the published file, downloaded once), or its "
            "path",
        ),
        option(
            "--images",
            type=Whole(1, 480_000),
            default=20_000,
            help="how many images, drawn at random; 480000 is all",
        ),
        option("--split", type=choice("half", "first-values"), default="half"),
        option("--seed", type=SEED, default=0),
        option("--cache", type=FOLDER, help="folder that keeps embeddings for later runs"),
        Several("--architecture", default=[], help="of each file of --models, in their order"),
        option("--device", default="cpu", help="of torch, such as cuda (default cpu)"),
        option(
            "--precision", type=choice("float32", "bfloat16", "float16"), default="float32"
        ),
    ),
    Study(
        "clip-zeroshot",
        "clip_zeroshot",
        "zero-shot accuracy of the two small CLIP models",
        option(
            "--images", type=Whole(1, 24_000), default=1000, help="images per row (default 1000)"
        ),
    ),
    Study(
        "encoder-pairs",
        "encoder_pairs",
        "whether further pairs of image encoders agree on factors, and untrained ones",
        Several("--seeds", type=SEED, default=[1, 2, 3], help="of trained pairs"),
        option("--steps", type=COUNT, default=1600, help="of training (default 1600)"),
        option("--cache", type=FOLDER, help="folder that keeps trained encoders for later runs"),
    ),
    Study(
        "neighbours",
        "components_without_labels",
        "components without labels, and unmixing, on states of the small language models",
        Several(
            "--corpora",
            type=choice("alike", "by-category", "no-source"),
            help="of the small models; all by default",
        ),
        Several("--seeds", type=Whole(0, 2), help="of the small models; all by default"),
    ),
    Study(
        "steering",
        "steering_techniques",
        "Table 6 on toy corpora, or on a real language model with --model",
        _splits(),
        option("--folds", type=Whole(2), default=2, help="of the questions (default 2)"),
        Several("--heads", type=COUNT, help="numbers of heads K to choose from"),
        Several("--alpha", type=FINITE, help="strengths α to choose from"),
        option("--model", type=MODEL, help="name on the hub, or folder, of a causal language "
               "model; without it the toy corpora are run"),
        option("--data", type=PathOr("truthfulqa"), default="truthfulqa",
               help="with --model: 'truthfulqa', or a file of its format"),
        option("--texts", type=PathOr(names=True),
               help="with --model: neutral texts: a file, one per line, or a data set's name"),
        option("--dtype", type=choice("auto", "float32", "float16", "bfloat16"), default="auto"),
        option("--device-map", help="as in transformers, for instance 'auto' (accelerate)"),
        option("--sentence-bert", is_flag=True, help="with --model: also embed by Sentence-BERT"),
        option("--batch-size", type=COUNT, default=8),
        option("--yes", is_flag=True, help="start without asking"),
    ),
    Study(
        "steering-fresh",
        "steering_fresh",
        "Table 6 on toy corpora, on models trained after every choice was made",
        Several("--model-seeds", type=SEED, default=[3, 4, 5, 6, 7], help="(default 3 4 5 6 7)"),
    ),
    Study(
        "steering-residual",
        "steering_residual",
        "concept offsets of the residual stream, on toy corpora",
    ),
    Study(
        "steering-real",
        "steering_real",
        "Table 6 on SmolLM2-135M-Instruct and TruthfulQA",
        _smollm2(),
        _every(),
        _splits(),
        option("--preface", type=EXISTING, help="worked examples, as in `conceptnb score`"),
    ),
    Study(
        "steering-real-matrices",
        "steering_real_matrices",
        "other steering matrices, and stronger controls, on the same model",
        _smollm2(),
        _every(),
        _splits(),
        option("--preface", type=EXISTING, help="worked examples, as in `conceptnb score`"),
    ),
    Study(
        "real-heads",
        "real_heads",
        "what SmolLM2's heads know of truth, and what it says, steered",
        _smollm2(),
        _every(),
    ),
)  # fmt: skip


@click.pass_context
def _listed(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


reproduce = click.Group(
    "reproduce",
    commands={str(study.name): study for study in _STUDIES},
    invoke_without_command=True,
    callback=_listed,
    help="compute a stored table again; `conceptnb reproduce --help` lists them",
)
