"""``conceptnb reproduce real-heads``: what SmolLM2's heads know, and what it says when steered.

The design, fixed before the first run:

- Each third question of TruthfulQA (``--every 3``, those of `steering_real`), its best answer and
  first two false ones; activations at the last token, those of a head divided by one number, so
  that a probe's penalty means the same everywhere. Two folds by question, one split. A question's
  score is the mean of the shares of true answers called true and of false ones called false.
- The best head is chosen by a fifth of the training questions, then fitted to all of them. All
  heads jointly: logistic regression on standardised activations, C = .001, not tuned. The headline
  is whether each lies above each control, by the 95 % interval of the paired difference over
  questions: labels shuffled; TF-IDF of the answer; random weights, on one in three of these.
- Transfer: two folds of categories; and to statements made here, and to their negations. Appendix
  E.2, item 2: orthogonal probes at the best head; cosines of δ and Σ⁻¹δ with the probe's weights θ.
- The first question of each category is answered greedily with at most 24 tokens, unsteered and
  under mass mean and the steering matrix (TF-IDF) on 48 heads at α = 2 and 4, learned from the
  questions above without the asked ones: tokens, repeated word pairs, perplexity unsteered.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conceptnb.results.runner import Plan, Row, Sample, Task
from conceptnb.steering.activations import Activations, collect_activations
from conceptnb.steering.generation import generate_answers
from conceptnb.steering.language_models import find_language_model, load_language_model
from conceptnb.steering.probes import fit_probe, fit_probes, orthogonal_probes
from conceptnb.steering.questions import Question
from conceptnb.steering.scoring import AnswerScorer
from conceptnb.steering.spans import encode_questions
from conceptnb.steering.techniques import MASS_MEAN, MATRIX, TECHNIQUES, Training
from conceptnb.steering.truth_directions import mass_mean
from conceptnb.steering.truthfulqa import read_truthfulqa
from conceptnb.studies.steering_subject import fingerprint_of

_HEADS, _NEW_TOKENS, _SAMPLED_EVERY = 48, 24, 40
_Head = Sequence[int]
_Folds = Sequence[tuple[Sequence[Question], Sequence[Question]]]
_CITIES = (
    "Oslo Norway Spain, Lima Peru Kenya, Cairo Egypt Chile, Hanoi Vietnam Italy, "
    "Lyon France Japan, Kyoto Japan Brazil, Nairobi Kenya Greece, Porto Portugal Canada, "
    "Munich Germany Peru, Toronto Canada Egypt, Milan Italy Norway, Mumbai India France"
)
_ORDERED = (
    "an hour, a minute, longer; a whale, a mouse, heavier; a mountain, a hill, higher; "
    "the Sun, the Moon, larger; a year, a month, longer; a train, a bicycle, faster; "
    "a lake, a puddle, deeper; a century, a decade, longer; an elephant, a rabbit, heavier; "
    "a kilometre, a metre, longer; a ton, a gram, heavier; a planet, a pebble, larger"
)


def _known(model: str, every: int, untrained: bool, fingerprint: str, wrong: str = "") -> list[Row]:
    """Probe the heads on each `every`-th question; `wrong` names what tests do badly."""
    del fingerprint  # of weights and questions: in the arguments, and so in the task's key
    questions = [_few_answers(question) for question in read_truthfulqa()[0][::every]]
    whole = not (wrong or untrained or every == _SAMPLED_EVERY)
    affirmed, negated = (_made(False), _made(True)) if whole else ([], [])
    asked = sorted([*questions, *affirmed, *negated], key=lambda question: len(question.text))
    language_model, tokenizer = load_language_model(model)
    if untrained:
        torch.manual_seed(0)
        language_model = type(language_model)(language_model.config).eval()
    read = collect_activations(language_model, tokenizer, asked, batch_size=16)
    scale = read.heads.std(axis=(0, 3), keepdims=True)  # cosines stay as they are
    read = replace(read, heads=read.heads / np.maximum(scale, 1e-12))
    mixed = read.shuffled(np.random.default_rng(0))
    own = _folds(questions, [question.id for question in questions])
    if wrong == "tested on training questions":
        own = [(train, train) for train, _ in own]
    found = _probed(mixed if wrong == "labels shuffled" else read, own, not untrained)
    rows = [{"tested on": "questions"} | found]
    if whole:
        few = questions[::3]
        texts = [answer for question in asked for answer in question.answers]
        words = TfidfVectorizer().fit_transform(texts).toarray()[:, None, None]
        by_category = _folds(questions, [question.category for question in questions])
        tests = {
            "questions, labels shuffled": (mixed, own),
            "questions, words of the answer": (replace(read, heads=words), own),
            "one question in three": (read, _folds(few, [question.id for question in few])),
            "other categories": (read, by_category),
            "statements made here": (read, [(questions, affirmed)]),
            "their negations": (read, [(questions, negated)]),
        }
        rows += [{"tested on": name} | _probed(*each) for name, each in tests.items()]
    world = {"world": Path(model).name, "every": every, "untrained": untrained, "seed": 0}
    return [world | row for row in rows]


def _probed(read: Activations, folds: _Folds, geometry: bool = False) -> Row:
    """Return the scores of tested questions: by the best head, by all jointly, and by each."""
    parts, chosen, shape = [], [], []
    for train, test in folds:
        fit, check = read.select(train), read.select(test)
        probes = fit_probes(read, train, np.random.default_rng(0))
        mine = int(probes.accuracy.argmax())
        best = divmod(mine, probes.accuracy.shape[1])
        logistic = LogisticRegression(C=1e-3, max_iter=1000, class_weight="balanced")
        joint = make_pipeline(StandardScaler(), logistic)
        joint.fit(fit.heads.reshape(len(fit.true), -1), fit.true)
        right = [joint.predict(check.heads.reshape(len(check.true), -1)) == check.true]
        for layer, head in np.ndindex(*probes.accuracy.shape):
            one = fit_probe(fit.heads[:, layer, head], fit.true)
            right.append(one.predict(check.heads[:, layer, head]) == check.true)
        per_question = _per_question(np.array(right), check, test)
        parts.append(per_question[[1 + mine, *range(len(right))]])
        chosen.append(list(best))
        if geometry:
            shape.append(_geometry(fit, check, train, probes.weights, best))
    scores = np.concatenate(parts, axis=1)
    means = scores.mean(axis=1)
    quarters = ["".join(str(round(4 * float(x))) for x in scores[i]) for i in (0, 1)]
    row: Row = {
        "best": float(means[0]),
        "joint": float(means[1]),
        "heads_mean": float(means[2:].mean()),
    }
    row |= {"chosen": chosen, "tested": len(scores[0]), "heads": means[2:].round(4).tolist()}
    row |= {"best_quarters": quarters[0], "joint_quarters": quarters[1]}
    if geometry:
        row |= {key: np.mean([each[key] for each in shape], axis=0).tolist() for key in shape[0]}
    return row


def _per_question(right: np.ndarray, check: Activations, test: Sequence[Question]) -> np.ndarray:
    """Return the score of each tested question, (probes, questions), of (probes, rows)."""
    found = []
    for question in test:
        mine = check.ids == question.id
        shares = [right[:, mine & (check.true == kind)].mean(axis=1) for kind in (True, False)]
        found.append(np.mean(shares, axis=0))
    return np.stack(found, axis=1)


def _geometry(
    fit: Activations, check: Activations, train: Sequence[Question], theta: np.ndarray, best: _Head
) -> dict[str, float | list[float]]:
    """Return how δ and θ lie in the heads, and what orthogonal probes of the best head read."""
    delta, differences = mass_mean(fit, train), fit.differences(train)
    covariance = fit.covariance()
    width = delta.shape[-1]
    level = np.trace(covariance, axis1=2, axis2=3)[..., None, None] / width + 1e-12
    whitened = np.linalg.solve(covariance + 1e-3 * level * np.eye(width), delta[..., None])
    along = np.linalg.eigvalsh(np.einsum("qlhi,qlhj->lhij", differences, differences))
    found: dict[str, float | list[float]] = {
        "cosine": float(np.median(_cosine(delta, theta))),
        "cosine_best": float(_cosine(delta, theta)[tuple(best)]),
        "cosine_whitened": float(np.median(_cosine(whitened[..., 0], theta))),
        "first_direction": float(np.median(along[..., -1] / along.sum(-1))),
    }
    if len(train) > width:
        here, held_out = (part.heads[:, best[0], best[1]] for part in (fit, check))
        found["orthogonal"] = orthogonal_probes(here, fit.true, held_out, check.true, 8)[1].tolist()
    return found


def _cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return (one * other).sum(-1) / np.maximum(lengths, 1e-12)


def _said(
    model: str,
    every: int,
    alphas: list[float],
    methods: list[str],
    asked: int,
    fingerprint: str,
    shuffle_labels: bool = False,
) -> list[Row]:
    """Answer the first question of each of the first `asked` categories, steered or not."""
    del fingerprint  # as above
    questions = read_truthfulqa()[0]
    first = list({question.category: question for question in questions[::-1]}.values())
    first = sorted(first, key=questions.index)[:asked]
    known = {question.id for question in first}
    train = [_few_answers(q) for q in questions[::every] if q.id not in known]
    train.sort(key=lambda question: len(question.text))
    language_model, tokenizer = load_language_model(model)
    read = collect_activations(language_model, tokenizer, train, batch_size=16)
    if shuffle_labels:
        read = read.shuffled(np.random.default_rng(0))
    rng = np.random.default_rng(0)
    training = Training.on(train, read, language_model, tokenizer, rng)
    mask = training.probes.top(_HEADS)
    steerings = [
        (method, alpha, TECHNIQUES[method](training, rng).steer(alpha, mask))
        for method in methods
        for alpha in alphas
    ]
    rows = []
    for method, alpha, steering in [("unsteered", 0.0, None), *steerings]:
        texts = generate_answers(language_model, tokenizer, first, steering, _NEW_TOKENS)
        texts = [re.sub(r"^(\s|A:)+", "", text) for text in texts]  # it may repeat the prompt's A:
        answers = [re.split(r"\n|Q:", text)[0].strip() for text in texts]
        pairs = [
            replace(question, answers=(answer or ".", "no"), true=(True, False), best=0)
            for question, answer in zip(first, answers, strict=True)
        ]
        encoded = zip(answers, encode_questions(tokenizer, pairs), strict=True)
        tokens = [(len(each[0].ids) - each[0].start) * bool(said) for said, each in encoded]
        scored = AnswerScorer(language_model, tokenizer, pairs).score()
        nats = [-float(scored[q.id][0]) * (n > 0) for q, n in zip(pairs, tokens, strict=True)]
        repeated = [_repeated(answer) for answer in answers]
        rows.append(
            {"world": Path(model).name, "every": every, "asked": len(first), "seed": 0}
            | {"method": method, "alpha": alpha, "tokens": float(np.mean(tokens))}
            | {"repeated": float(np.mean(repeated))}
            | {"perplexity": float(np.exp(sum(nats) / max(sum(tokens), 1)))}
            | {"tokens_each": tokens, "repeated_each": [round(x, 4) for x in repeated]}
            | {"nats_each": [round(x, 3) for x in nats], "answers": answers}
            | {"questions": [question.text for question in first]}
        )
    return rows


def _repeated(answer: str) -> float:
    """Return the share of an answer's word pairs that occurred in it before."""
    pairs = list(itertools.pairwise(answer.lower().split()))
    return 1 - len(set(pairs)) / len(pairs) if pairs else 0.0


def _few_answers(question: Question) -> Question:
    keep = [question.best, *(i for i, true in enumerate(question.true) if not true)][:3]
    answers = tuple(question.answers[i] for i in keep)
    return replace(question, answers=answers, true=(True, False, False)[: len(keep)], best=0)


def _made(negated: bool) -> list[Question]:
    """Return statements of cities and quantities, a true and a false one for each, or negations."""
    found = []
    for entry in _CITIES.split(", "):
        city, country, other = entry.split()
        said = [f"{city} is {{}}in {country}.", f"{city} is {{}}in {other}."]
        found.append((f"Where is {city}?", said))
    for entry in _ORDERED.split("; "):
        one, other, more = entry.split(", ")
        said = [f"{one} is {{}}{more} than {other}.", f"{other} is {{}}{more} than {one}."]
        found.append((f"Which is {more}, {one} or {other}?", said))
    word = "not " if negated else ""
    return [
        Question(
            f"{'negated' if negated else 'made'} {i}",
            text,
            tuple(answer.format(word)[0].upper() + answer.format(word)[1:] for answer in said),
            (not negated, negated),
            int(negated),
        )
        for i, (text, said) in enumerate(found)
    ]


def _folds(questions: Sequence[Question], groups: Sequence[str]) -> _Folds:
    """Return two folds, each trained on the other, that keep groups of questions together."""
    names = np.random.default_rng(0).permutation(sorted(set(groups)))
    inside = np.isin(groups, names[: len(names) // 2])
    one, other = ([questions[int(i)] for i in np.flatnonzero(part)] for part in (inside, ~inside))
    return [(one, other), (other, one)]


def plans(args: SimpleNamespace) -> list[Plan]:
    """Return the results files that the options ask for."""
    questions, edition = read_truthfulqa()
    source = find_language_model(args.model)
    shared = {"model": args.model, "fingerprint": fingerprint_of(source, questions)}
    known = Task(_known, shared | {"every": args.every, "untrained": False})
    steered = {"alphas": [2.0, 4.0], "methods": [MASS_MEAN, MATRIX], "asked": 99}
    said = Task(_said, shared | {"every": args.every} | steered)
    few = known.but(every=_SAMPLED_EVERY)
    short = said.but(every=_SAMPLED_EVERY, alphas=[4.0], methods=[MASS_MEAN], asked=4)
    badly = ("labels shuffled", "tested on training questions")
    badly_known = {what: few.but(wrong=what) for what in badly}
    badly_said = {
        "the direction is reversed": short.but(alphas=[-4.0]),
        "labels are shuffled": short.but(shuffle_labels=True),
    }
    notes = {
        "model": args.model,
        "data": f"{edition}, Apache-2.0; one question in {args.every}",
        "sampled": f"tests compute again the runs on one question in {_SAMPLED_EVERY}",
    }
    score = {"score": "mean of the share of true called true, and of false called false"}
    text = {"perplexity": "of the answers, under the unsteered model"}
    columns = ("best", "joint", "heads_mean", "cosine")
    measures = ("tokens", "repeated", "perplexity")
    sample = Sample(few, columns, badly_known, by=("every", "untrained"))
    tasks = [known, known.but(untrained=True, every=3 * args.every), few]
    sample_said = Sample(short, measures, badly_said, by=("every", "asked", "method"))
    return [
        Plan("real_heads", tasks, _heads_rows, [0], notes | score, sample),
        Plan("real_answers", [said, short], _answers_rows, [0], notes | text, sample_said),
    ]


def _heads_rows(runs: list[Row]) -> list[Row]:
    """Return the scores by what is tested, each with the standard error over questions."""
    return [
        {"weights": "random" if run["untrained"] else "trained", "tested on": run["tested on"]}
        | {"questions": run["tested"]}
        | {"best head": _mean_and_error(run["best_quarters"])}
        | {"all heads": _mean_and_error(run["joint_quarters"])}
        | {"mean of heads": round(run["heads_mean"], 4)}
        for run in runs
        if run["every"] != _SAMPLED_EVERY
    ]


def _mean_and_error(quarters: str) -> list[float]:
    values = np.array([int(x) / 4 for x in quarters])
    return [round(float(x), 4) for x in (values.mean(), values.std(ddof=1) / len(values) ** 0.5)]


def _answers_rows(runs: list[Row]) -> list[Row]:
    return [
        {"technique": run["method"], "α": run["alpha"]}
        | {name: round(run[name], 3) for name in ("tokens", "repeated", "perplexity")}
        for run in runs
        if run["every"] != _SAMPLED_EVERY
    ]
