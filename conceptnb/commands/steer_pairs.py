"""``conceptnb steer --pairs``: a model, pairs and prompts -> a vector, and what it does."""

import hashlib
import importlib.util
import json
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from conceptnb import __version__
from conceptnb.commands.reports import fill, refuse_files, write_report
from conceptnb.common.files import refuse_output, write_text

if TYPE_CHECKING:
    from conceptnb.steering.pair_vectors import Estimator
    from conceptnb.steering.pairs import Text

_FILES = ("report.html", "steering.safetensors", "apply.py", "generated.csv")
_GGUF = "steering.gguf"
_NEUTRAL = 12  # paragraphs
_PROMPTS = {
    False: 'tokenizer(sys.argv[1], return_tensors="pt")',
    True: """tokenizer.apply_chat_template(
    [{"role": "user", "content": sys.argv[1]}],
    add_generation_prompt=True, return_dict=True, return_tensors="pt",
)""",
}
DIRECTIONS = ("mean", "pca", "probe")


class Kept:
    """Finished parts of a run in a file, found again by a run of the same key."""

    def __init__(self, file: Path, key: str) -> None:
        self.file, self.key = file, key
        self.done: dict[str, Any] = {}
        with suppress(OSError, ValueError, KeyError):
            held = json.loads(file.read_text(encoding="utf-8"))
            self.done = held["done"] if held["key"] == key else {}

    def __call__(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what is kept under a name, or compute and keep it."""
        if name not in self.done:
            self.done[name] = compute()
            write_text(self.file, json.dumps({"key": self.key, "done": self.done}))
        return self.done[name]


def steer_by_pairs(args: SimpleNamespace, words: Sequence[str]) -> None:
    """Fit a vector to pairs; write a report, the vector, code that applies it, and the texts."""
    gguf = importlib.util.find_spec("gguf") is not None
    refuse_files(args, [*_FILES, *([_GGUF] if gguf else [])])
    if args.bake:
        refuse_output(args.out / "baked" / "config.json", args.force)
    from conceptnb.steering.language_models import (  # noqa: PLC0415 - what only a run needs
        find_language_model,
        load_language_model,
    )
    from conceptnb.steering.pairs import read_pairs  # noqa: PLC0415 - brings torch

    pairs = read_pairs(args.pairs)
    chat = args.prompt == "chat" or not isinstance(pairs[0][0], str)
    prompts = _read_prompts(args.prompts, chat)
    texts = _read_lines(args.texts, "--texts") if args.texts else _neutral()
    source = find_language_model(args.model)
    from conceptnb.plotting.reports import disturbance_and_layers  # noqa: PLC0415 - matplotlib
    from conceptnb.steering.own_pairs import steer_pairs  # noqa: PLC0415
    from conceptnb.studies.steering_subject import fingerprint_of  # noqa: PLC0415

    model, tokenizer = load_language_model(source)
    settings = [pairs, prompts, texts, args.layer, args.direction, args.alpha, args.tokens]
    key = [settings, args.seed, __version__, fingerprint_of(source, [])]
    unfinished = args.out / ".unfinished.json"
    report = steer_pairs(
        pairs,
        prompts,
        model,
        tokenizer,
        texts,
        estimator=_estimator(args.direction),
        layer=args.layer,
        strength=args.alpha,
        new_tokens=args.tokens,
        seed=args.seed,
        once=Kept(unfinished, hashlib.sha256(json.dumps(key).encode()).hexdigest()),
    )
    [layer] = report.vector.layers
    if args.bake:
        try:
            report.vector.bake(model, args.alpha).save_pretrained(args.out / "baked")
            tokenizer.save_pretrained(args.out / "baked")
        except ValueError as error:  # biases cannot do the same
            report.warnings.append(f"No checkpoint was written: {error}.")
    learned = f"{args.direction} of {len(pairs)} pairs, layer {layer}"
    report.vector.save(args.out / "steering.safetensors", model=args.model, learned=learned)
    written = [*_FILES]
    if gguf and layer > 0:
        report.vector.save_gguf(args.out / _GGUF, model.config.model_type, args.alpha)
        written.append(_GGUF)
    write_text(args.out / "generated.csv", report.generated.to_csv(index=False))
    path = Path(args.model).resolve()
    place, name = (str(path), path.name) if path.exists() else (args.model, args.model)
    for_llama = (
        f" the same for llama.cpp at strength {args.alpha:g}, steering.gguf (--control-vector);"
    )
    alt = "KL on neutral text by strength: " + ", ".join(
        f"{row.strength:g} {row.KL:.2g}" for row in report.disturbance.itertuples()
    )
    write_report(
        args.out,
        written,
        "report_pairs.html",
        {
            "generated": report.generated,
            "disturbance": report.disturbance,
            "layers": report.layers,
            "figure": (disturbance_and_layers(report), alt),
            "gguf": for_llama if _GGUF in written else "",
        },
        title=f"{name} steered by {args.pairs.name}",
        lead=f"{len(pairs):,} pairs ({args.direction}), read and added in layer {layer} of "
        f"{len(report.layers)}, counted from 0; strength {args.alpha:g}.",
        warnings=report.warnings,
        none="No warning. That does not prove that the texts are as you want them: read them.",
        code=fill(
            "apply_pairs.txt",
            model=repr(place),
            prompt=_PROMPTS[chat],
            strength=args.alpha,
            tokens=args.tokens,
        ),
        command=shlex.join(["conceptnb", "steer", *words]),
    )
    unfinished.unlink(missing_ok=True)


def _estimator(direction: str) -> "Estimator":
    from conceptnb.steering import pair_vectors  # noqa: PLC0415 - brings torch

    kinds = (pair_vectors.MeanDifference, pair_vectors.PrincipalComponent, pair_vectors.Probe)
    return dict(zip(DIRECTIONS, kinds, strict=True))[direction]()


def _read_prompts(file: Path, chat: bool) -> "list[Text]":
    lines = _read_lines(file, "--prompts")
    return [[{"role": "user", "content": line}] for line in lines] if chat else [*lines]


def _read_lines(file: Path, option: str) -> list[str]:
    if not file.is_file():
        raise FileNotFoundError(f"{option} {file} is no file: give one with a text a line")
    from conceptnb.common.table_files import read_text  # noqa: PLC0415

    if not (lines := [line.strip() for line in read_text(file).splitlines() if line.strip()]):
        raise ValueError(f"{option} {file} holds no text: write one a line")
    return lines


def _neutral() -> list[str]:
    """Return paragraphs of this book's prose."""
    from conceptnb import studies  # noqa: PLC0415 - its folder alone

    prose = Path(studies.__path__[0]) / "neutral_prose.txt"
    return prose.read_text(encoding="utf-8").splitlines()[:_NEUTRAL]
