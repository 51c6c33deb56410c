"""One fold of a comparison of techniques: learn from some questions, be tested on the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.activations import Activations
from conceptnb.steering.intervention import Steering
from conceptnb.steering.probes import split_questions
from conceptnb.steering.questions import PromptStyle, Question
from conceptnb.steering.scoring import AnswerScorer, choice_scores
from conceptnb.steering.techniques import Technique, Training

VALIDATION = 0.3
"""Share of the training questions by which K and α are chosen."""


@dataclass(frozen=True)
class Settings:
    """How techniques are compared.

    Parameters
    ----------
    heads, alphas : tuple
        Numbers of heads K and strengths α to choose from.
    folds : int
        Folds of the cross-validation (two in the paper).
    preface, prompt : str
        Text before every prompt when answers are scored, and their style: see `Question.prompt`.
    budget : float
        KL, in nats per token, that a chosen K and α may spend at the most.
    batch_size : int
        Texts per forward pass.
    """

    heads: tuple[int, ...] = (8, 16)
    alphas: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
    folds: int = 2
    preface: str = ""
    prompt: PromptStyle = "paper"
    budget: float = math.inf
    batch_size: int = 64


class Fold:
    """A fold of a cross-validation over questions (Table 6, for any model).

    Probes, head ranking, directions, matrices, σ, embeddings, and the choice of K heads and
    strength α come from the training questions alone.

    Parameters
    ----------
    questions, activations
        All of them, from which the folds are drawn.
    seed : int
        Of the split into folds.
    index : int
        Which fold is tested.

    Attributes
    ----------
    train, test : list of Question
    training : Training
        What the training questions teach.
    scorer : AnswerScorer
        Of the tested questions.

    Raises
    ------
    ValueError
        If there are not at least two folds of four questions, or there is no such fold.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        questions: Sequence[Question],
        activations: Activations,
        settings: Settings,
        seed: int,
        index: int,
    ) -> None:
        folds = settings.folds
        if folds < 2 or len(questions) < 4 * folds or not 0 <= index < folds:
            raise ValueError(
                f"fold {index} of {len(questions)} questions in {folds} folds: give at least 2 "
                "folds, 4 questions per fold, and the number of a fold from 0 on"
            )
        order = np.random.default_rng(seed).permutation(len(questions))
        parts = [[questions[i] for i in part] for part in np.array_split(order, folds)]
        self.test = parts.pop(index)
        self.train = [question for part in parts for question in part]
        self.settings = settings
        self._key = [seed, index]
        self._model, self._tokenizer, self._activations = model, tokenizer, activations
        self.training = self._teach(self.train, 1)
        self.scorer = self._score(self.test)

    def fit(
        self,
        technique: Technique,
        stream: int,
        alphas: Sequence[float] | None = None,
        spent: Callable[[Steering], float] | None = None,
    ) -> tuple[int, float, list[tuple[float, Steering]]]:
        """Fit a technique, and choose K and α.

        Parameters
        ----------
        technique : callable
            From `conceptnb.steering.techniques`.
        stream : int
            Number of the technique; its random draws depend on this, the seed and the fold.
        alphas : sequence of float, optional
            Strengths of this technique; by default those of the settings.
        spent : callable, optional
            KL of an intervention, in nats per token; needed where the settings have a budget.

        Returns
        -------
        heads, alpha
            K and α of the highest MC1, then MC2, on held-out training questions within budget.
        steerings
            Each α with the intervention of that strength, on K heads.

        Raises
        ------
        ValueError
            If the settings have a budget and `spent` is not given, or there are several K and α
            and none is within the budget; a single K and α is taken whatever it spends.
        """
        if spent is None and self.settings.budget < math.inf:
            raise ValueError(
                f"spent is None, and budget={self.settings.budget}: give the KL of an intervention"
            )
        key = [*self._key, 3 + stream]
        strengths = self.settings.alphas if alphas is None else tuple(alphas)
        heads, alpha = self._choose(technique, key, strengths, spent)
        fitted = technique(self.training, np.random.default_rng(key))
        mask = self.training.probes.top(heads)
        return heads, alpha, [(a, fitted.steer(a, mask)) for a in strengths]

    def _choose(
        self,
        technique: Technique,
        key: list[int],
        alphas: Sequence[float],
        spent: Callable[[Steering], float] | None,
    ) -> tuple[int, float]:
        grid = [(k, a) for k in self.settings.heads for a in alphas]
        if len(grid) == 1:
            return grid[0]
        training, held_out, judge = self._validation
        fitted = technique(training, np.random.default_rng(key))
        steerings = {(k, a): fitted.steer(a, training.probes.top(k)) for k, a in grid}
        if spent is not None:
            kl = {setting: spent(steering) for setting, steering in steerings.items()}
            grid = [setting for setting in grid if kl[setting] <= self.settings.budget]
            if not grid:
                raise ValueError(
                    f"budget={self.settings.budget}: the least KL of any K and α is "
                    f"{min(kl.values()):.2g}; give a larger budget or a smaller α"
                )

        def merit(setting: tuple[int, float]) -> tuple[float, float]:
            scores = choice_scores(held_out, judge.score(steerings[setting]))
            return scores.mc1.mean(), scores.mc2.mean()

        return max(grid, key=merit) if len(grid) > 1 else grid[0]

    @cached_property
    def _validation(self) -> tuple[Training, list[Question], AnswerScorer]:
        """What a part of the training questions teaches, and the others, to choose K and α by."""
        rng = np.random.default_rng([*self._key, 0])
        inner, held_out = split_questions(self.train, VALIDATION, rng)
        return self._teach(inner, 2), held_out, self._score(held_out)

    def _teach(self, questions: Sequence[Question], stream: int) -> Training:
        rng = np.random.default_rng([*self._key, stream])
        return Training.on(questions, self._activations, self._model, self._tokenizer, rng)

    def _score(self, questions: Sequence[Question]) -> AnswerScorer:
        preface, prompt = self.settings.preface, self.settings.prompt
        return AnswerScorer(self._model, self._tokenizer, questions, preface, prompt=prompt)
