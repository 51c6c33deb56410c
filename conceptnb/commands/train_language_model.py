"""``conceptnb train-language-model``: train the small language models of the steering chapters."""

from pathlib import Path

from conceptnb.commands.options import PATH, SEED, Several, choice, command, force, option
from conceptnb.common.files import refuse_output

_CORPORA = ("alike", "by-category", "no-source", "one-question")


@command(
    "train-language-model",
    "train the small language models of the steering chapters",
    option("--corpus", type=choice(*_CORPORA), help="by default all"),
    Several("--seeds", type=SEED, default=[0, 1, 2], help="(default 0 1 2)"),
    option("--out", type=PATH, default=".", help="folder (default: this one)"),
    force("models of --out"),
)
def train_language_model(corpus: str | None, seeds: list[int], out: Path, force: bool) -> None:
    """Train and save each model asked for."""
    kinds = [corpus] if corpus else [*_CORPORA]
    wanted = {(kind, seed): out / f"{kind}-{seed}" for seed in seeds for kind in kinds}
    for folder in wanted.values():
        refuse_output(folder / "model.safetensors", force)
    from conceptnb.steering.small_model_training import save_small_model, train_small_model  # noqa: PLC0415 - brings torch
    from conceptnb.steering.toy_corpora import make_toy_corpus  # noqa: PLC0415 - as above

    for (kind, seed), folder in wanted.items():
        model, tokenizer, record = train_small_model(make_toy_corpus(kind), seed)
        save_small_model(model, tokenizer, record, folder)
        print(f"{kind}-{seed}: loss {record['loss']:.3f}, {record['cpu_seconds']:.0f} CPU-s")
