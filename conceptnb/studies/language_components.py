"""States of the small language models, with concepts that their worlds know by construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conceptnb.embeddings.directions.evaluation import separation
from conceptnb.studies.components import METHODS, find

Array = NDArray[np.float64]

Row = dict[str, Any]

STATE_CONCEPTS = ("category", "speaker", "truth")
_KEYS = ("trained", "components", "world", "method")
COMPONENTS = (8, 32)  # nobody says how many there are: few, and as many as with sentences


@dataclass(frozen=True)
class States:
    """States at the ends of answers.

    Attributes
    ----------
    points : (samples, hidden size)
        What the model predicts the next token from.
    concepts : (samples,) values by name, one of `STATE_CONCEPTS`
        The question's category; who is named as speaker, 0 for nobody; whether the answer is true.
    questions : (samples,)
        Which question a sample belongs to: what is learned on one should be judged on others.
    log_odds : (samples,), or None
        The model's own log-odds, at that token, between the mark of truth and the mark of
        falsehood of the question's category. A linear function of `points` within a category.
        None in a world whose marks name the speaker.
    """

    points: Array
    concepts: dict[str, NDArray[np.intp]]
    questions: NDArray[np.intp]
    log_odds: Array | None


def language_states(kind: str, seed: int = 0, trained: bool = True) -> States:
    """Return states of a small model at the last token of every answer to every question.

    Each of 96 questions stands with each of its 4 answers, after nobody or after each speaker of
    the world has been named: 384 samples a speaker and 384 without. The state is the last one,
    after the final normalisation, whose inner products with the tokens' vectors are the logits.

    Parameters
    ----------
    kind, seed
        World and model, as in `conceptnb.steering.worlds.language_models.load_trained`.
    trained : bool
        False for a control of the same shape with random weights, drawn from `seed`.

    Raises
    ------
    ValueError
        If the package holds no such model.
    """
    import torch  # noqa: PLC0415 - the rest of the neighbours needs none

    from conceptnb.steering.spans import encode_questions, pad  # noqa: PLC0415
    from conceptnb.steering.worlds.language_models import load_trained, make_model  # noqa: PLC0415

    world, model, tokenizer = load_trained(kind, seed)
    if not trained:
        model = make_model(tokenizer, torch.Generator().manual_seed(seed)).eval()
    questions = world.questions()
    prefaces = ["", *(f"from {persona.name}: " for persona in world.kind.personas)]
    blocks = []
    for preface in prefaces:
        pairs = encode_questions(tokenizer, questions, preface)
        ids, mask = pad([encoded.ids for answers in pairs for encoded in answers], "right")
        with torch.no_grad():
            read = model.model(input_ids=ids, attention_mask=mask).last_hidden_state
        blocks.append(read[torch.arange(len(ids)), mask.sum(1) - 1].double().numpy())
    true = np.ravel([q.true for q in questions]).astype(np.intp)
    category = np.unique([q.category for q in questions], return_inverse=True)[1]
    points = np.concatenate(blocks)
    question = np.repeat(np.arange(len(questions)), len(true) // len(questions))
    asked = np.tile(question, len(prefaces))
    concepts = {
        "category": category[asked],
        "speaker": np.repeat(np.arange(len(prefaces)), len(true)),
        "truth": np.tile(true, len(prefaces)),
    }
    if world.kind.marks is None:
        return States(points, concepts, asked, None)
    marks = tokenizer.convert_tokens_to_ids([mark for pair in world.kind.marks for mark in pair])
    token = model.get_output_embeddings().weight.detach().double().numpy()[marks]
    between = np.repeat(token[::2] - token[1::2], len(true) // len(world.kind.marks), axis=0)
    log_odds = (points * np.tile(between, (len(prefaces), 1))).sum(axis=1)
    return States(points, concepts, asked, log_odds)


def compare_states(kind: str, seed: int, trained: bool = True) -> list[Row]:
    """Judge every method, and controls, on the states of one small model.

    Components are learned and matched on half of the questions and judged on the other half.

    Returns
    -------
    rows
        World, seed, whether trained, number of components, method, and η² by concept. Method
        "shuffled labels" is "labels" with values that belong to other samples. Method "log-odds of
        marks" is no search: the model's own log-odds of truth, where its marks tell truth.
    """
    states = language_states(kind, seed, trained)
    rows: list[Row] = []

    def add(n_components: int | None, method: str, eta2: dict[str, float]) -> None:
        row = {"world": kind, "seed": seed, "trained": trained}
        shares = {name: round(value, 4) for name, value in eta2.items()}
        rows.append(row | {"components": n_components, "method": method} | shares)

    for n_components in COMPONENTS:
        for method in METHODS:
            rng = np.random.default_rng([seed, n_components])
            found = find(
                method, states.points, states.concepts, n_components, rng, states.questions
            )
            add(n_components, method, found.eta2)
        rng = np.random.default_rng([seed, n_components])
        shuffled = {name: rng.permutation(values) for name, values in states.concepts.items()}
        found = find("labels", states.points, shuffled, n_components, rng, states.questions)
        add(n_components, "shuffled labels", found.eta2)
    if states.log_odds is not None:
        truth = separation(states.log_odds, states.concepts["truth"])
        add(None, "log-odds of marks", {"truth": truth})
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return mean and standard deviation over seeds of rows from `compare_states`.

    Returns
    -------
    rows
        As those given, in the order trained models first, then by number of components, with
        pairs in place of numbers and without the seed.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = tuple(row[name] for name in _KEYS)
        groups.setdefault(key, []).append(row)
    order = sorted(groups, key=lambda key: (not key[0], key[1] or np.inf))
    return [
        dict(zip(_KEYS, key, strict=True))
        | {
            name: [
                round(float(f([row[name] for row in groups[key]])), 4) for f in (np.mean, np.std)
            ]
            for name in STATE_CONCEPTS
            if name in groups[key][0]
        }
        for key in order
    ]
