"""Train the two small CLIP models on rendered images and captions, with open_clip's own loss."""

import math
import os
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from open_clip.loss import ClipLoss
from tqdm.auto import tqdm

from conceptnb.common.muon import Muon
from conceptnb.embeddings.clip.batches import GROUP, Progress, draw_batch, open_attributes
from conceptnb.embeddings.clip.small_clip import (
    SMALL_SIZE,
    CaptionTokenizer,
    clip_input,
    create_small_model,
)
from conceptnb.embeddings.shapes3d import captions
from conceptnb.embeddings.shapes3d.renderer import Renderer

_SAVE_EVERY = 100  # steps


@dataclass(frozen=True)
class Cycle:
    """One rise and fall of the learning rate over some steps, and the data that it sees."""

    steps: int
    vague_rate: float = 0.06
    """Mean chance that a caption leaves an attribute open."""
    near_rate: float = 0.0
    """Chance that a group which differs in a hue shows neighbours on the wheel."""
    alike_in_groups: bool = False
    """Captions of a group leave the same attributes open; see `open_attributes`."""


@dataclass(frozen=True)
class TrainingPlan:
    """Recipe of a small CLIP model; the seed is that of weights and data."""

    cycles: tuple[Cycle, ...] = (Cycle(2400),)
    restart: float = 0.7  # share of the learning rates with which later cycles start
    batch_size: int = 128
    learning_rate: float = 2e-3  # of AdamW
    matrix_learning_rate: float = 0.02  # of Muon, for the matrices of transformer blocks
    weight_decay: float = 0.02
    warm_up: int = 40  # steps at the start of a cycle in which the rate rises
    cool_down: int = 900  # and at its end, in which it falls
    seed: int = 0

    @property
    def steps(self) -> int:
        """Length of the training."""
        return sum(cycle.steps for cycle in self.cycles)

    def cycle(self, step: int) -> tuple[Cycle, int]:
        """Cycle in which a step lies, and the step at which it starts, counted from 0."""
        starts = np.cumsum([0, *(cycle.steps for cycle in self.cycles[:-1])]).tolist()
        k = bisect_right(starts, step) - 1
        return self.cycles[k], starts[k]

    def rate(self, step: int) -> float:
        """Factor on the learning rates at a step, counted from 0."""
        cycle, start = self.cycle(step)
        since, left = step - start, start + cycle.steps - step
        highest = self.restart if start else 1.0
        return highest * min(1.0, (since + 1) / self.warm_up, left / self.cool_down)


PLANS = {
    "vit": TrainingPlan(),
    "resnet": TrainingPlan(
        cycles=(
            Cycle(2400),
            Cycle(1200, vague_rate=0.35),
            Cycle(1000, vague_rate=0.45, near_rate=0.5, alike_in_groups=True),
        )
    ),
}
"""Recipes of the shipped models."""


def _optimizers(model: torch.nn.Module, plan: TrainingPlan) -> list[torch.optim.Optimizer]:
    named = dict(model.named_parameters())
    temperature = named.pop("logit_scale")
    matrices = {name: p for name, p in named.items() if p.ndim == 2 and "resblocks" in name}
    groups: list[dict[str, Any]] = [
        {"params": [p for name, p in named.items() if name not in matrices]},
        {"params": [temperature], "lr": 10 * plan.learning_rate, "weight_decay": 0.0},
    ]
    decay = plan.weight_decay
    return [
        torch.optim.AdamW(groups, plan.learning_rate, betas=(0.9, 0.98), weight_decay=decay),
        Muon(list(matrices.values()), lr=plan.matrix_learning_rate, weight_decay=decay),
    ]


@torch.no_grad()
def _group_losses(
    images: torch.Tensor, texts: torch.Tensor, scale: torch.Tensor, n_groups: int
) -> NDArray[np.float32]:
    """Loss (n_groups,) of choosing each image's caption among those of its own group."""
    grouped = [x[: n_groups * GROUP].reshape(n_groups, GROUP, x.shape[1]) for x in (images, texts)]
    logits = scale * grouped[0] @ grouped[1].mT
    return -logits.log_softmax(dim=-1).diagonal(dim1=1, dim2=2).mean(dim=1).numpy()


class ClipTraining:
    """A small CLIP model in training, by default with the recipe of the shipped model of its kind.

    Its whole state can be saved and taken up again.
    """

    def __init__(self, kind: str, plan: TrainingPlan | None = None) -> None:
        if kind not in PLANS:
            raise ValueError(f"kind={kind!r} must be one of {', '.join(PLANS)}")
        self.kind, self.plan = kind, plan or PLANS[kind]
        self.model = create_small_model(kind, seed=self.plan.seed)
        # convolutions run a third faster on the CPU with channels last
        self._layout = torch.channels_last if kind == "resnet" else torch.contiguous_format
        self.model.visual.to(memory_format=self._layout)
        self.optimizers = _optimizers(self.model, self.plan)
        self._rates = [[g["lr"] for g in o.param_groups] for o in self.optimizers]
        self._loss = ClipLoss()
        self._render = Renderer(SMALL_SIZE)
        self._tokenize = CaptionTokenizer()
        self.progress = Progress()
        self.step = 0
        self.cpu_seconds = 0.0
        self.losses: list[float] = []

    def train_step(self) -> float:
        """Train on one batch and return its loss."""
        plan = self.plan
        # A training that was taken up again sees the data that it would have seen.
        rng = np.random.default_rng([plan.seed, self.step])
        cycle, _ = plan.cycle(self.step)
        factors, varied = draw_batch(
            self.progress, self.step, plan.batch_size, rng, near_rate=cycle.near_rate
        )
        images = clip_input(self._render(factors)).contiguous(memory_format=self._layout)
        if cycle.alike_in_groups:
            left_open = open_attributes(varied, len(factors), cycle.vague_rate, rng)
        else:
            left_open = rng.random(factors.shape) < cycle.vague_rate
        texts = self._tokenize(captions(factors, left_open=left_open))
        self.model.train()
        image_features, text_features, logit_scale = self.model(images, texts)[:3]
        loss = self._loss(image_features, text_features, logit_scale)
        in_groups = _group_losses(image_features, text_features, logit_scale, len(varied))
        self.progress.update(self.step, varied, in_groups)
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer, rates in zip(self.optimizers, self._rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * plan.rate(self.step)
            optimizer.step()
        with torch.no_grad():  # CLIP bounds the inverse temperature by 100
            self.model.logit_scale.clamp_(0, math.log(100))
        self.step += 1
        return loss.item()

    def run(self, checkpoint: Path | None = None) -> None:
        """Train to the end of the plan, with a progress bar and checkpoints."""
        start = time.process_time()
        with tqdm(total=self.plan.steps, initial=self.step, desc=f"train {self.kind}") as bar:
            while self.step < self.plan.steps:
                self.losses.append(self.train_step())
                bar.update()
                if self.step % _SAVE_EVERY == 0 or self.step == self.plan.steps:
                    now = time.process_time()
                    self.cpu_seconds += now - start
                    start = now
                    bar.set_postfix(loss=f"{np.mean(self.losses[-_SAVE_EVERY:]):.3f}")
                    if checkpoint is not None:
                        self.save(checkpoint)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that is needed to go on, through a temporary file."""
        state = {
            "kind": self.kind,
            "plan_steps": self.plan.steps,
            "step": self.step,
            "cpu_seconds": self.cpu_seconds,
            "losses": self.losses,
            "progress": [self.progress.losses.tolist(), self.progress.n_hues, self.progress.grown],
            "model": self.model.state_dict(),
            "optimizers": [o.state_dict() for o in self.optimizers],
        }
        partial = Path(path).with_suffix(".part")
        torch.save(state, partial)
        partial.replace(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take up a training of the same kind and length that `save` wrote, or raise."""
        state = torch.load(path, weights_only=True)
        kind, steps = state["kind"], state["plan_steps"]
        if (kind, steps) != (self.kind, self.plan.steps):
            raise ValueError(
                f"path={str(path)!r} holds a {kind} planned for {steps} steps, not a {self.kind} "
                f"for {self.plan.steps}; name another checkpoint"
            )
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.cpu_seconds = state["step"], state["cpu_seconds"]
        self.losses = state["losses"]
        losses, self.progress.n_hues, self.progress.grown = state["progress"]
        self.progress.losses = np.array(losses)
