"""Cross-validated comparison of steering methods on one model (Table 6, for any model).

Every fold is worked from its training questions alone: probes, head ranking,
directions, matrices, σ, embeddings, and the choice of K and α. Its other
questions are then scored over the whole grid of α, which gives the
accuracy-KL frontier, with the chosen α marked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.core.files import write_text
from conceptnb.steering.activations import Activations, collect_activations
from conceptnb.steering.divergence import NeutralTexts
from conceptnb.steering.matrices import MatrixSteering
from conceptnb.steering.methods import Fitted, Training
from conceptnb.steering.probes import fit_probes, split_questions
from conceptnb.steering.questions import Question, check_questions
from conceptnb.steering.scoring import AnswerScorer, ChoiceScores, choice_scores

BASELINE = "baseline"


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    heads
        Numbers of heads K to choose from.
    alphas
        Strengths α to choose from, and points of the frontier.
    folds
        Folds of cross-validation (two in the paper).
    seeds
        Seeds of the split into folds (three in the paper).
    preface
        Text before every prompt when answers are scored.
    batch_size
        Questions or texts a forward pass.
    """

    heads: tuple[int, ...] = (8, 16)
    alphas: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
    folds: int = 2
    seeds: tuple[int, ...] = (0, 1, 2)
    preface: str = ""
    batch_size: int = 64


def make_folds(
    questions: Sequence[Question], folds: int, rng: np.random.Generator
) -> list[list[Question]]:
    """Split questions at random into ``folds`` parts of nearly equal size.

    Raises
    ------
    ValueError
        If there are not at least four questions a fold.
    """
    if folds < 2 or len(questions) < 4 * folds:
        raise ValueError(
            f"{len(questions)} questions cannot make {folds} folds; "
            "give at least 2 folds and 4 questions a fold"
        )
    order = rng.permutation(len(questions))
    return [[questions[i] for i in part] for part in np.array_split(order, folds)]


class Study:
    """A language model, its questions and neutral texts, ready to compare methods.

    Parameters
    ----------
    model, tokenizer
        The language model.
    questions
        Questions with unique ids.
    texts
        Neutral texts for cross-entropy and KL.
    methods
        Name to function, from ``conceptnb.steering.methods``.
    plan
        Grids, folds and seeds.
    checkpoints
        Folder in which finished stages are kept; a study of the same plan and
        questions resumes from there.
    progress
        Show progress bars.

    Attributes
    ----------
    cpu_seconds
        CPU time of all folds so far, whether computed now or in a run before.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        questions: Sequence[Question],
        texts: Sequence[str],
        methods: dict[str, Callable[[Training, np.random.Generator], Fitted]],
        plan: Plan | None = None,
        checkpoints: Path | None = None,
        progress: bool = False,
    ) -> None:
        check_questions(list(questions))
        self.model, self.tokenizer = model, tokenizer
        self.questions, self.texts = list(questions), list(texts)
        self.methods = methods
        self.plan = plan or Plan()
        self.checkpoints = checkpoints
        self.progress = progress
        self.cpu_seconds = 0.0
        self._neutral: NeutralTexts | None = None
        if checkpoints is not None:
            self._claim(checkpoints)

    def run(self) -> list[dict[str, Any]]:
        """Run or resume everything.

        Returns
        -------
        list of dict
            One row a split seed and method, as :meth:`split_rows` gives them.
        """
        activations = self.activations()
        bar = tqdm(self.plan.seeds, disable=not self.progress, desc="split seeds")
        return [row for seed in bar for row in self.split_rows(activations, seed)]

    def activations(self) -> Activations:
        """Head activations of all questions (first stage)."""
        path = self._path("activations.safetensors")
        if path is None or not path.is_file():
            found = collect_activations(
                self.model, self.tokenizer, self.questions, self.plan.batch_size, self.progress
            )
            if path is None:
                return found
            _save_activations(found, self.questions, path)
        return _load_activations(self.questions, path)

    def split_rows(
        self,
        activations: Activations,
        seed: int,
        only: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """All folds of one split, one row a method.

        Parameters
        ----------
        activations
            From :meth:`activations`.
        seed
            Seed of the split.
        only
            Names of the methods to run; by default all.

        Returns
        -------
        list of dict
            ``split_seed``, ``method``; ``fold`` (the fold that tested each question,
            one digit a question); ``heads`` and ``alpha`` chosen in each fold;
            ``mc1``, ``mc2``, ``mc3``, ``ce``, ``kl``, ``kl_asked`` at the chosen α;
            and ``curve``, one entry an α: ``ce``, ``kl`` and ``kl_asked`` of each
            fold and ``right``, a digit a question. ``kl`` takes λ from the neutral
            text itself, ``kl_asked`` from a question of the tested fold.
        """
        folds = make_folds(self.questions, self.plan.folds, np.random.default_rng(seed))
        names = [BASELINE, *self.methods] if only is None else list(only)
        parts = [self._fold(activations, folds, seed, i, names) for i in range(len(folds))]
        of = {q.id: str(i) for i, fold in enumerate(folds) for q in fold}
        fold_of = "".join(of[q.id] for q in self.questions)
        return [
            {"split_seed": seed, "method": name, "fold": fold_of}
            | self._pool([part[name] for part in parts])
            for name in names
        ]

    def _fold(
        self,
        activations: Activations,
        folds: list[list[Question]],
        seed: int,
        index: int,
        names: Sequence[str],
    ) -> dict[str, Any]:
        """Test one fold with what the others teach."""
        path = self._path(f"split-{seed}-fold-{index}.json")
        if path is not None and path.is_file():
            kept = json.loads(path.read_text())
            self.cpu_seconds += kept["cpu_seconds"]
            return kept["methods"]
        started = time.process_time()
        train = [q for i, fold in enumerate(folds) if i != index for q in fold]
        test = folds[index]
        inner, validation = split_questions(train, 0.3, np.random.default_rng([seed, index, 0]))
        scorer, judge = self._scorer(test), self._scorer(validation)
        outer = self._training(activations, train, [seed, index, 1])
        small = self._training(activations, inner, [seed, index, 2])
        found: dict[str, Any] = {}
        for name in tqdm(names, disable=not self.progress, desc="methods", leave=False):
            if name == BASELINE:
                found[name] = {
                    "heads": 0,
                    "alpha": 0.0,
                    "curve": [self._point(scorer, test, None, 0.0)],
                }
                continue
            key = [seed, index, 3 + list(self.methods).index(name)]
            trial = self.methods[name](small, np.random.default_rng(key))
            heads, alpha = self._choose(trial, small, judge, validation)
            fitted = self.methods[name](outer, np.random.default_rng(key))
            mask = outer.probes.top(heads)
            curve = [self._point(scorer, test, fitted.steer(a, mask), a) for a in self.plan.alphas]
            found[name] = {"heads": heads, "alpha": alpha, "curve": curve}
        spent = time.process_time() - started
        self.cpu_seconds += spent
        if path is not None:
            write_text(path, json.dumps({"cpu_seconds": spent, "methods": found}))
        return found

    def _scorer(self, questions: Sequence[Question]) -> AnswerScorer:
        plan = self.plan
        return AnswerScorer(
            self.model, self.tokenizer, questions, plan.preface, batch_size=plan.batch_size
        )

    def _training(
        self, activations: Activations, questions: Sequence[Question], key: list[int]
    ) -> Training:
        mine = activations.select(questions)
        probes = fit_probes(mine, questions, np.random.default_rng(key))
        return Training(mine, questions, probes, self.model, self.tokenizer)

    def _choose(
        self, fitted: Fitted, training: Training, judge: AnswerScorer, held_out: Sequence[Question]
    ) -> tuple[int, float]:
        """K and α of the highest MC1 on held-out training questions; MC2 decides ties."""
        grid = [(k, a) for k in self.plan.heads for a in self.plan.alphas]
        if len(grid) == 1:
            return grid[0]

        def merit(setting: tuple[int, float]) -> tuple[float, float]:
            heads, alpha = setting
            steering = fitted.steer(alpha, training.probes.top(heads))
            scores = choice_scores(held_out, judge.score(steering))
            return scores.mc1.mean(), scores.mc2.mean()

        return max(grid, key=merit)

    def _point(
        self, scorer: AnswerScorer, test: Sequence[Question], steering: Any, alpha: float
    ) -> dict[str, Any]:
        scores: ChoiceScores = choice_scores(test, scorer.score(steering))
        moved = asked = self._texts().measure(steering)
        if isinstance(steering, MatrixSteering):  # a vector edits every text alike
            asked = self._texts().measure(steering, [question.text for question in test])
        return {
            "alpha": alpha,
            "ce": moved.ce,
            "kl": moved.kl,
            "kl_asked": asked.kl,
            "mc2": scores.mc2.mean(),
            "mc3": scores.mc3.mean(),
            "right": {name: int(x) for name, x in zip(scores.ids, scores.mc1, strict=True)},
        }

    def _texts(self) -> NeutralTexts:
        if self._neutral is None:
            self._neutral = NeutralTexts(
                self.model, self.tokenizer, self.texts, batch_size=self.plan.batch_size
            )
        return self._neutral

    def _pool(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """One row from the folds of a split; each question was tested in one of them."""
        curve = []
        for points in zip(*(part["curve"] for part in parts), strict=True):
            right = {name: x for point in points for name, x in point["right"].items()}
            curve.append(
                {
                    "alpha": points[0]["alpha"],
                    "ce": [round(point["ce"], 5) for point in points],
                    "kl": [round(point["kl"], 5) for point in points],
                    "kl_asked": [round(point["kl_asked"], 5) for point in points],
                    "right": "".join(str(right[q.id]) for q in self.questions),
                }
            )
        chosen = [
            next(point for point in part["curve"] if point["alpha"] == part["alpha"])
            for part in parts
        ]
        sizes = [len(point["right"]) for point in chosen]
        mean = {
            key: float(np.average([point[key] for point in chosen], weights=sizes))
            for key in ("mc2", "mc3", "ce", "kl", "kl_asked")
        }
        hits = [x for point in chosen for x in point["right"].values()]
        return {
            "heads": [part["heads"] for part in parts],
            "alpha": [part["alpha"] for part in parts],
            "mc1": float(np.mean(hits)),
            **{key: round(value, 5) for key, value in mean.items()},
            "curve": curve,
        }

    def _path(self, name: str) -> Path | None:
        return None if self.checkpoints is None else self.checkpoints / name

    def _claim(self, folder: Path) -> None:
        """Start a checkpoint folder, or check that it belongs to this very study."""
        mine = json.dumps(
            {
                "model": self.model.config.to_dict(),
                "questions": [asdict(q) for q in self.questions],
                "texts": self.texts,
                "methods": list(self.methods),
                "plan": asdict(self.plan),
            },
            sort_keys=True,
            default=str,
        )
        path = folder / "study.json"
        if path.is_file() and path.read_text() != mine:
            raise ValueError(
                f"{folder} holds the checkpoints of another study; choose another folder, or "
                "delete it to start over"
            )
        write_text(path, mine)


def _save_activations(found: Activations, questions: Sequence[Question], path: Path) -> None:
    """Keep activations with the row's question as a number; ids return on loading."""
    number = {question.id: i for i, question in enumerate(questions)}
    rows = np.array([number[str(name)] for name in found.ids], dtype=np.int64)
    part = path.with_suffix(".part")
    save_file({"question": rows, "true": found.true, "heads": found.heads}, str(part))
    part.replace(path)


def _load_activations(questions: Sequence[Question], path: Path) -> Activations:
    kept = load_file(str(path))
    ids = np.array([question.id for question in questions])[kept["question"]]
    return Activations(ids, kept["true"], kept["heads"])
