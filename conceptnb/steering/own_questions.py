"""A list of questions with right and wrong answers -> probes and steering (Appendix E)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.activations import collect_activations
from conceptnb.steering.attention import find_heads
from conceptnb.steering.comparison import Fold, Settings
from conceptnb.steering.guards import refuse_what_is_steered_wrongly
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.questions import PromptStyle, Question, check_questions, refuse_few
from conceptnb.steering.scoring import ChoiceScores, choice_scores
from conceptnb.steering.spans import Encoded, encode_questions
from conceptnb.steering.steer import SteeringVector
from conceptnb.steering.techniques import MASS_MEAN, MATRIX, TECHNIQUES, Training
from conceptnb.steering.truth_directions import mass_mean

NOT_STEERED = "not steered"
_USUAL = ("random direction", MASS_MEAN, MATRIX)


@dataclass(frozen=True, eq=False)
class SteeringReport:
    """What steering does to answers that it was not fitted to, and what speaks against it.

    Parameters
    ----------
    scores : dict of str to ChoiceScores
        By technique; each question was scored by what the other half taught.
    probe_accuracy : ndarray of shape (layers, heads)
        Balanced accuracy of probes for truth on held-out questions, mean of both halves.
    vector : Intervention
        The mass mean shift, learned from all questions: to save, to apply to new prompts, to bake.
    """

    questions: list[Question]
    scores: dict[str, ChoiceScores]
    probe_accuracy: np.ndarray
    vector: Intervention
    warnings: list[str] = field(default_factory=list)

    def summary(self) -> pd.DataFrame:
        """Return MC1, MC2 and the gain in MC1 by technique; its error is that of `paired_gain`."""
        rows = []
        for name, found in self.scores.items():
            gain, error = paired_gain(found.mc1, self.scores[NOT_STEERED].mc1)
            said = "" if name == NOT_STEERED else f"{gain:+.3f} ± {error:.3f}"
            rows.append((name, f"{found.mc1.mean():.3f}", f"{found.mc2.mean():.3f}", said))
        return pd.DataFrame(rows, columns=["technique", "MC1", "MC2", "gain in MC1"])

    def by_question(self) -> pd.DataFrame:
        """Return a row for each question: its text, and MC1 and MC2 by technique."""
        rows = pd.DataFrame({"question": [question.text for question in self.questions]})
        for name, found in self.scores.items():
            rows[f"MC1, {name}"], rows[f"MC2, {name}"] = found.mc1, found.mc2
        return rows


def paired_gain(steered: np.ndarray, baseline: np.ndarray) -> tuple[float, float]:
    """Return the mean difference over questions, and its standard error."""
    difference = np.asarray(steered, dtype=float) - np.asarray(baseline, dtype=float)
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def steer_questions(
    questions: Sequence[Question],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    n_heads: int = 16,
    alpha: float = 2.0,
    techniques: Sequence[str] = _USUAL,
    seed: int = 0,
    prompt: PromptStyle = "paper",
) -> SteeringReport:
    """Fit probes and steering on one half of the questions, and score the other half; both ways.

    Parameters
    ----------
    n_heads : int
        Heads that are steered, those with the best probes.
    alpha : float
        Strength in standard deviations, fixed: nothing is chosen on the questions scored.
    techniques : sequence of str
        Names from `conceptnb.steering.techniques.TECHNIQUES`.
    prompt : str
        Style of the prompts: see `encode_questions`.

    Raises
    ------
    ValueError
        If there are fewer than 16 questions, or a technique is not known.
    """
    known = list(questions)
    check_questions(known)
    refuse_few(known, "questions")
    if unknown := [name for name in techniques if name not in TECHNIQUES]:
        raise ValueError(f"techniques={unknown} are not known; there are {list(TECHNIQUES)}")
    if not np.isfinite(alpha) or n_heads < 1:
        raise ValueError(f"alpha={alpha} has to be finite, and n_heads={n_heads} 1 or more")
    refuse_what_is_steered_wrongly(model)
    layers, heads, _ = find_heads(model).shape
    if n_heads > layers * heads:
        raise ValueError(f"n_heads={n_heads}: the model has {layers * heads} heads (--heads)")
    refuse_long_prompts(model, encode_questions(tokenizer, known, style=prompt))
    activations = collect_activations(model, tokenizer, known, prompt=prompt)
    settings = Settings(heads=(n_heads,), alphas=(alpha,), prompt=prompt)
    answered: dict[str, dict[str, np.ndarray]] = {name: {} for name in (NOT_STEERED, *techniques)}
    accuracy = []
    for index in range(settings.folds):
        fold = Fold(model, tokenizer, known, activations, settings, seed, index)
        accuracy.append(fold.training.probes.accuracy)
        answered[NOT_STEERED] |= fold.scorer.score()
        for name in techniques:
            _, _, [(_, steering)] = fold.fit(TECHNIQUES[name], list(TECHNIQUES).index(name))
            answered[name] |= fold.scorer.score(steering)
    scores = {name: choice_scores(known, found) for name, found in answered.items()}
    rng = np.random.default_rng(seed)
    whole = Training.on(known, activations, model, tokenizer, rng)
    vector = SteeringVector.along(mass_mean(whole.activations, known), whole.activations)
    steering = vector.steer(alpha, whole.probes.top(n_heads))
    report = SteeringReport(known, scores, np.mean(accuracy, axis=0), steering)
    report.warnings.extend([*_about_questions(known, tokenizer), *_about_results(report)])
    return report


def refuse_long_prompts(model: PreTrainedModel, encoded: Sequence[Sequence[Encoded]]) -> None:
    """Raise ValueError where a prompt and its answer are longer than the model's positions."""
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None) or np.inf
    for number, pairs in enumerate(encoded, start=1):
        if (length := max(len(pair.ids) for pair in pairs)) > most:
            raise ValueError(
                f"question {number} with its longest answer has {length} tokens, and this "
                f"{type(model).__name__} reads {most}: shorten it, or what stands before it"
            )


def _about_questions(
    questions: list[Question], tokenizer: PreTrainedTokenizerBase
) -> Iterator[str]:
    if len(questions) < 100:
        error = f"± {0.5 / np.sqrt(len(questions)):.2f} at best (one standard error)"
        yield f"{len(questions)} questions: MC1 is known to {error}."
    longest = float(np.mean([_best_is_longest(q) for q in questions]))
    chance = float(np.mean([1 / len(q.answers) for q in questions]))
    if longest > min(0.9, 2 * chance):
        yield (
            f"In {longest:.0%} of the questions the best answer is the longest (chance: "
            f"{chance:.0%}): a probe can learn length instead of truth."
        )
    if tokenizer.unk_token_id is not None:
        tokens = np.concatenate([tokenizer(q.text)["input_ids"] for q in questions])
        unknown = float(np.mean(tokens == tokenizer.unk_token_id))
        if unknown > 0.02:
            said = "of the questions' tokens are unknown to this model: it cannot read them."
            yield f"{unknown:.0%} {said}"


def _best_is_longest(question: Question) -> bool:
    wrong = (a for a, true in zip(question.answers, question.true, strict=True) if not true)
    return len(question.answers[question.best]) > max(map(len, wrong))


def _best_by_chance(report: SteeringReport) -> float:
    """Return a bound on the expected best of all heads, if none tells truth.

    The largest of N normal variables is below sqrt(2 ln N) deviations on average. A balanced
    accuracy deviates by that of its two shares, over the fifth of the questions held out.
    """
    true = np.concatenate([question.true for question in report.questions])
    held_out = 0.2 * np.array([true.sum(), (~true).sum()])
    deviation = np.sqrt((0.25 / held_out).sum()) / 2
    return float(0.5 + np.sqrt(2 * np.log(report.probe_accuracy.size)) * deviation)


def _about_results(report: SteeringReport) -> Iterator[str]:
    baseline = report.scores[NOT_STEERED].mc1
    if baseline.mean() > 0.95:
        yield f"MC1 is {baseline.mean():.2f} without steering: there is nothing to gain."
    best, by_chance = float(report.probe_accuracy.max()), _best_by_chance(report)
    if best < max(0.6, by_chance):
        yield (
            f"No head tells truth (best probe {best:.2f}; chance is 0.5, and the best of "
            f"{report.probe_accuracy.size} heads reaches up to {by_chance:.2f} by chance)."
        )
    for name, found in report.scores.items():
        gain, error = paired_gain(found.mc1, baseline)
        surely = gain > 2 * error
        if name == "random direction" and surely:
            yield (
                f"A random direction gains {gain:+.3f}: the change comes from disturbing the "
                "model, and not from the direction."
            )
        elif name not in ("random direction", NOT_STEERED) and not surely:
            yield f"{name}: no gain beyond two standard errors ({gain:+.3f} ± {error:.3f})."
