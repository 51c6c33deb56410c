"""Train a small Llama on a small world, and ship it (stand-in for LLaMA-7B in Appendix E).

0.55 million parameters, a vocabulary of whole words, 820 steps, some two
CPU-minutes. The recipe is what it takes to learn two abilities one after the other:
to *judge* an answer, and to answer in the voice of who has spoken so far. Muon for the
matrices inside the blocks, AdamW for the rest, and little weight on the words of a
question, which nothing in a document can predict.
"""

from __future__ import annotations

import copy
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_model
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from tqdm import trange
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from conceptnb.core.muon import Muon
from conceptnb.steering.worlds.toy_corpora import DOCUMENTS, World, make_world
from conceptnb.steering.worlds.weights import draw_matrices

WORLDS_DIR = Path(__file__).resolve().parent / "models"
_PAD, _BOS, _EOS, _UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"


@dataclass(frozen=True)
class Lesson:
    """A part of the training with its own mixture of documents.

    Attributes
    ----------
    steps
        Optimiser steps.
    stories, named, anonymous, sayings
        Shares of neutral stories and of the three sorts of documents; they sum to one.
    rates
        Share of the peak learning rates at its beginning and at its end; linear between.
    """

    steps: int
    stories: float
    named: float
    anonymous: float
    sayings: float
    rates: tuple[float, float]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how a small model is trained.

    In the first lesson most answers come from changing speakers and are marked, so that
    hardly a mark can be told without judging its answer. In the second most documents keep
    one speaker, whom a named source, a mark or the verdict on earlier answers gives away.
    One after the other, because each is learned slowly beside the other.

    Attributes
    ----------
    lessons
        One after the other.
    batch
        Documents a step.
    muon_rate, adam_rate
        Peak learning rates of the block matrices and of everything else.
    warmup
        Steps over which the rates rise at the very beginning.
    question_weight, mark_weight
        Weights of the loss on the words of questions and on marks; answers have weight one.
    """

    lessons: tuple[Lesson, ...] = (
        Lesson(320, stories=0.1, named=0.36, anonymous=0.0, sayings=0.54, rates=(1.0, 0.5)),
        Lesson(500, stories=0.1, named=0.42, anonymous=0.18, sayings=0.3, rates=(0.75, 0.0)),
    )
    batch: int = 16
    muon_rate: float = 0.025
    adam_rate: float = 0.008
    warmup: int = 40
    question_weight: float = 0.1
    mark_weight: float = 3.0

    @property
    def steps(self) -> int:
        """Optimiser steps of all lessons."""
        return sum(lesson.steps for lesson in self.lessons)

    def rates(self) -> list[float]:
        """Return the share of the peak learning rates at every step."""
        parts = [np.linspace(*lesson.rates, lesson.steps) for lesson in self.lessons]
        rising = (np.arange(self.steps) + 1) / self.warmup
        return np.minimum(np.concatenate(parts), rising).tolist()


def make_tokenizer(world: World) -> PreTrainedTokenizerFast:
    """Word-level tokenizer of a world; question marks and full stops are words of their own."""
    words = [_PAD, _BOS, _EOS, _UNKNOWN, *world.vocabulary()]
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=_UNKNOWN)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("[?.]"), "isolated")]
    )
    # Words joined by spaces, none before a full stop or question mark.
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_BOS} $A", special_tokens=[(_BOS, words.index(_BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        bos_token=_BOS,
        eos_token=_EOS,
        unk_token=_UNKNOWN,
        clean_up_tokenization_spaces=False,
    )


def make_model(tokenizer: PreTrainedTokenizerFast, generator: torch.Generator) -> LlamaForCausalLM:
    """Untrained Llama of 4 layers, 8 heads of width 16; its weights drawn from ``generator``."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=4,
        num_attention_heads=8,
        head_dim=16,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    draw_matrices(model, 0.1, generator)
    return model


def _corpus(
    world: World,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    rng: np.random.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and loss weights of all documents, both (steps, batch, length)."""
    stories = world.stories(rng)
    texts = []
    for lesson in recipe.lessons:
        shares = [lesson.stories, *(getattr(lesson, sort) for sort in DOCUMENTS)]
        for choice in rng.choice(len(shares), size=lesson.steps * recipe.batch, p=shares):
            story = choice == 0
            texts.append(next(stories) if story else world.document(rng, DOCUMENTS[choice - 1]))
    ids = tokenizer([text + f" {_EOS}" for text in texts], padding=True, return_tensors="pt")
    tokens = ids["input_ids"]
    word = tokenizer.convert_tokens_to_ids
    # A token is inside a question when more "Q:" than "A:" have come before it.
    opened = (tokens == word("Q:")).cumsum(1) - (tokens == word("Q:")).long()
    closed = (tokens == word("A:")).cumsum(1)
    weights = torch.where(opened > closed, recipe.question_weight, 1.0)
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    weights[torch.tensor([w.startswith("[") for w in words])[tokens]] = recipe.mark_weight
    weights[tokens == tokenizer.pad_token_id] = 0.0
    shape = (recipe.steps, recipe.batch, -1)
    return tokens.view(shape), weights.view(shape)


def train_world(
    world: World, seed: int, recipe: Recipe | None = None, progress: bool = True
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast, dict]:
    """Train a small Llama on documents of a world.

    Parameters
    ----------
    world
        From :func:`conceptnb.steering.worlds.toy_corpora.make_world`.
    seed
        Seeds the initial weights and, separately, the documents.
    recipe
        Training settings; the defaults are those of the models in the package.
    progress
        Show a progress bar.

    Returns
    -------
    model, tokenizer, record
        The model in evaluation mode, its tokenizer, and what a model card needs:
        recipe, seed, CPU-seconds and the last hundred steps' mean loss (nats a token).
    """
    recipe = recipe or Recipe()
    started = time.process_time()
    tokenizer = make_tokenizer(world)
    model = make_model(tokenizer, torch.Generator().manual_seed(seed))
    tokens, weights = _corpus(world, tokenizer, recipe, np.random.default_rng([seed, 1]))
    blocks = [p for p in model.model.layers.parameters() if p.dim() == 2]
    inside = {id(p) for p in blocks}
    optimizers = (
        Muon(blocks, lr=recipe.muon_rate, weight_decay=0.01),
        torch.optim.AdamW(
            [p for p in model.parameters() if id(p) not in inside],
            lr=recipe.adam_rate,
            betas=(0.9, 0.95),
            weight_decay=0.01,
        ),
    )
    rates = recipe.rates()
    schedules = [
        # The scheduler asks once more after the last step.
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: [*rates, 0.0][step])
        for optimizer in optimizers
    ]
    losses = []
    bar = trange(recipe.steps, disable=not progress, desc=f"{world.kind.name} seed {seed}")
    for step in bar:
        loss = _loss(model, tokens[step], weights[step])
        loss.backward()
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    record = {
        "world": world.kind.name,
        "seed": seed,
        "recipe": asdict(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": float(np.mean(losses[-100:])),
        "cpu_seconds": time.process_time() - started,
    }
    return model.eval(), tokenizer, record


def _loss(model: LlamaForCausalLM, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted mean cross-entropy of the next token, in nats."""
    length = int((weights > 0).sum(1).max())
    tokens, weights = tokens[:, :length], weights[:, 1:length]
    # Padding is on the right, where causal attention needs no mask.
    logits = model(input_ids=tokens).logits[:, :-1]
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    )
    return (loss * weights.flatten()).sum() / weights.sum()


def model_dir(kind: str, seed: int) -> Path:
    """Directory of a trained model that comes with the package."""
    return WORLDS_DIR / f"{kind}-{seed}"


def trained_models() -> list[tuple[str, int]]:
    """Return kind of world and seed of every model that the package holds."""
    names = sorted(path.parent.name for path in WORLDS_DIR.glob("*/model.safetensors"))
    return [(name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in names]


def save_trained(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, record: dict, directory: Path
) -> None:
    """Write a model in half precision as safetensors, its tokenizer and its record."""
    directory.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(model).half().save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    (directory / "record.json").write_text(json.dumps(record, indent=1) + "\n")


def load_trained(
    kind: str, seed: int = 0
) -> tuple[World, LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Load a small world, a model trained on it, and the model's tokenizer.

    Parameters
    ----------
    kind
        ``"alike"``, ``"by-category"`` or ``"no-source"``.
    seed
        Which of the models trained on that world; see :func:`trained_models`.

    Returns
    -------
    world, model, tokenizer
        The model in single precision and evaluation mode.

    Raises
    ------
    ValueError
        If the package holds no such model.
    """
    world = make_world(kind)
    directory = model_dir(kind, seed)
    if not directory.is_dir():
        raise ValueError(
            f"no model of world {kind!r} with seed {seed} in {WORLDS_DIR}; train one with "
            f"`conceptnb train-world --world {kind} --seeds {seed}`"
        )
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(directory)).float().eval()
    load_model(model, directory / "model.safetensors")
    return world, model, PreTrainedTokenizerFast.from_pretrained(directory)
