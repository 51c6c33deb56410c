"""Train a small Llama on a toy corpus (stand-in for LLaMA-7B in Appendix E), in two CPU-minutes.

Muon serves the matrices inside the blocks, AdamW the rest; the words of a question, which nothing
in a document can predict, have little weight.
"""

import copy
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from tqdm import trange
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from conceptnb.common.files import write_text
from conceptnb.common.muon import Muon
from conceptnb.steering.small_models import make_small_model, make_tokenizer
from conceptnb.steering.toy_corpora import DOCUMENTS, ToyCorpus


@dataclass(frozen=True)
class Lesson:
    """A part of the training with its own mixture of documents.

    Parameters
    ----------
    stories, named, anonymous, mixed : float
        Shares of neutral stories and of the three sorts of documents; they sum to one.
    rates : pair of float
        Shares of the peak learning rates at its beginning and end, linear between.
    """

    steps: int
    stories: float
    named: float
    anonymous: float
    mixed: float
    rates: tuple[float, float]


@dataclass(frozen=True)
class LessonPlan:
    """Everything that decides how a small model is trained: to judge an answer, then to use it.

    In the first lesson most answers come from changing speakers and are marked, so that
    most marks cannot be told without judging their answers. In the second most documents keep
    one speaker, whom a named source, a mark or the verdict on earlier answers gives away.

    Parameters
    ----------
    batch : int
        Documents per step.
    muon_rate, adam_rate : float
        Peak learning rates of the block matrices and of everything else.
    warmup : int
        Steps over which the rates rise at the very beginning.
    question_weight, mark_weight : float
        Weights of the loss on the words of questions and on marks; answers have weight one.
    """

    lessons: tuple[Lesson, ...] = (
        Lesson(320, stories=0.1, named=0.36, anonymous=0.0, mixed=0.54, rates=(1.0, 0.5)),
        Lesson(500, stories=0.1, named=0.42, anonymous=0.18, mixed=0.3, rates=(0.75, 0.0)),
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


_CURRICULUM = LessonPlan()


def _documents(
    corpus: ToyCorpus,
    tokenizer: PreTrainedTokenizerFast,
    curriculum: LessonPlan,
    rng: np.random.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and loss weights of all documents, both (steps, batch, length)."""
    stories = corpus.stories(rng)
    texts = []
    for lesson in curriculum.lessons:
        shares = [lesson.stories, *(getattr(lesson, sort) for sort in DOCUMENTS)]
        for choice in rng.choice(len(shares), size=lesson.steps * curriculum.batch, p=shares):
            story = choice == 0
            texts.append(next(stories) if story else corpus.document(rng, DOCUMENTS[choice - 1]))
    ended = [f"{text} {tokenizer.eos_token}" for text in texts]
    tokens = tokenizer(ended, padding=True, return_tensors="pt")["input_ids"]
    word = tokenizer.convert_tokens_to_ids
    # A token is inside a question when more "Q:" than "A:" have come before it.
    opened = (tokens == word("Q:")).cumsum(1) - (tokens == word("Q:")).long()
    closed = (tokens == word("A:")).cumsum(1)
    weights = torch.where(opened > closed, curriculum.question_weight, 1.0)
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    weights[torch.tensor([w.startswith("[") for w in words])[tokens]] = curriculum.mark_weight
    weights[tokens == tokenizer.pad_token_id] = 0.0
    shape = (curriculum.steps, curriculum.batch, -1)
    return tokens.view(shape), weights.view(shape)


def train_small_model(
    corpus: ToyCorpus, seed: int, curriculum: LessonPlan | None = None
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast, dict]:
    """Train a small Llama on documents of a toy corpus.

    Parameters
    ----------
    seed : int
        Seeds the initial weights and, separately, the documents.
    curriculum : LessonPlan, optional
        By default that of the models in the package.

    Returns
    -------
    model, tokenizer, record
        The model in evaluation mode, its tokenizer, and what a model card needs:
        curriculum, seed, CPU-seconds and the last hundred steps' mean loss (nats per token).
    """
    curriculum = curriculum or _CURRICULUM
    started = time.process_time()
    tokenizer = make_tokenizer(corpus)
    model = make_small_model(tokenizer, torch.Generator().manual_seed(seed))
    tokens, weights = _documents(corpus, tokenizer, curriculum, np.random.default_rng([seed, 1]))
    blocks = [p for p in model.model.layers.parameters() if p.dim() == 2]
    inside = {id(p) for p in blocks}
    others = [p for p in model.parameters() if id(p) not in inside]
    optimizers = (
        Muon(blocks, lr=curriculum.muon_rate, weight_decay=0.01),
        torch.optim.AdamW(others, curriculum.adam_rate, betas=(0.9, 0.95), weight_decay=0.01),
    )
    rates = curriculum.rates()
    schedules = [
        # The scheduler asks once more after the last step.
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: [*rates, 0.0][step])
        for optimizer in optimizers
    ]
    losses = []
    bar = trange(curriculum.steps, desc=f"{corpus.kind.name} seed {seed}")
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
        "corpus": corpus.kind.name,
        "seed": seed,
        "curriculum": asdict(curriculum),
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


def save_small_model(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, record: dict, folder: Path
) -> None:
    """Write a model in half precision as safetensors, its tokenizer and its record."""
    copy.deepcopy(model).half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_text(folder / "record.json", json.dumps(record, indent=1) + "\n")
