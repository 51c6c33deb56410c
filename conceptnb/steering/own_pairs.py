"""A list of pairs and a list of prompts -> a steering vector, and what it does to the model."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.attention import input_device
from conceptnb.steering.divergence import NeutralTexts
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.pair_vectors import (
    Estimator,
    ResidualVector,
    fit_steering_vector,
    usual_layer,
)
from conceptnb.steering.pairs import Pair, Text, encode_pairs, encode_text
from conceptnb.steering.spans import pad

STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""At which a report measures what steering does to neutral text."""
_BATCH = 8

Once = Callable[[str, Callable[[], Any]], Any]
"""Returns what is kept under a name, or else what a function returns, in the types of JSON."""


@dataclass(frozen=True, eq=False)
class PairReport:
    """What a vector from pairs does to generated text, and what it costs on neutral text.

    Parameters
    ----------
    vector : ResidualVector
        Of the one layer that is steered.
    layers : DataFrame
        By layer: the agreement of held-out pairs, and the length of the step of strength 1.
    disturbance : DataFrame
        By strength: perplexity and KL(original ‖ steered) on neutral text, in nats per token, and
        the KL under a random direction of the same length.
    generated : DataFrame
        Each prompt, in order and none left out: its text not steered, steered, and in reverse.
    """

    vector: ResidualVector
    layers: pd.DataFrame
    disturbance: pd.DataFrame
    generated: pd.DataFrame
    warnings: list[str] = field(default_factory=list)


@torch.no_grad()
def generate_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Text],
    steering: Intervention | None = None,
    new_tokens: int = 40,
) -> list[str]:
    """Return what a model says greedily after prompts, texts or chats; all positions are steered.

    Raises ValueError as `encode_text`.
    """
    ids, mask = pad([encode_text(tokenizer, prompt) for prompt in prompts], "left")
    filler = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    with nullcontext() if steering is None else steering.apply(model):
        found = model.generate(  # type: ignore[operator]
            ids.to(input_device(model)),
            attention_mask=mask.to(input_device(model)),
            max_new_tokens=new_tokens,
            do_sample=False,
            pad_token_id=filler,
        )
    return tokenizer.batch_decode(found[:, ids.shape[1] :], skip_special_tokens=True)


def steer_pairs(
    pairs: Sequence[Pair],
    prompts: Sequence[Text],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    estimator: Estimator | None = None,
    layer: int | None = None,
    strength: float = 2.0,
    new_tokens: int = 40,
    seed: int = 0,
    once: Once = lambda _, compute: compute(),
) -> PairReport:
    """Fit a vector to pairs, generate with it, and measure what it does to neutral texts.

    Parameters
    ----------
    prompts : sequence of texts or chats
        What the model continues, not steered, with `strength` and with ``-strength``.
    texts : sequence of str
        Neutral texts.
    layer : int, optional
        Counted from 0; by default chosen by `fit_steering_vector`.
    once : callable
        Keeps finished parts, so that a run which was stopped goes on: called with a name and a
        function.

    Raises
    ------
    ValueError
        As `fit_steering_vector` and `NeutralTexts`; or if there is no prompt, or a number is not
        what it should be.
    """
    if not prompts or not np.isfinite(strength) or strength == 0 or new_tokens < 1:
        raise ValueError(
            f"give one of prompts={len(prompts)} or more, a finite strength={strength} other than "
            f"0, and new_tokens={new_tokens} of 1 or more"
        )
    _refuse_long(model, tokenizer, prompts, new_tokens)
    every = fit_steering_vector(model, tokenizer, pairs, estimator=estimator, layers=slice(None))
    n_layers = len(every.layers)
    if layer is None:
        layer = usual_layer(every.agreement, n_layers)
    elif layer not in every.layers:
        raise ValueError(f"layer={layer}: give one from 0 to {n_layers - 1} (--layer)")
    vector = every.at(layer)
    layers = pd.DataFrame(
        {
            "layer": every.layers,
            "agreement of held-out pairs": every.agreement if every.agreement.size else np.nan,
            "length of a step": [float(np.linalg.norm(every.steps[k])) for k in every.layers],
        }
    )
    generated = _generated(model, tokenizer, prompts, vector, strength, new_tokens, once)
    neutral = NeutralTexts(model, tokenizer, texts)
    disturbance = _disturbances(model, neutral, vector, strength, seed, once)
    report = PairReport(vector, layers, disturbance, generated)
    report.warnings.extend(_about_pairs(model, tokenizer, pairs))
    report.warnings.extend(_about_results(report, layer, strength))
    return report


def _generated(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Text],
    vector: ResidualVector,
    strength: float,
    new_tokens: int,
    once: Once,
) -> pd.DataFrame:
    shown = {"not steered": 0.0, f"{strength:+g}": strength, f"{-strength:+g}": -strength}
    said: dict[str, list[str]] = {name: [] for name in shown}
    for start in range(0, len(prompts), _BATCH):
        some = prompts[start : start + _BATCH]
        for name, size in shown.items():
            edit = vector.intervention(model, size) if size else None
            write = partial(generate_texts, model, tokenizer, some, edit, new_tokens)
            said[name] += once(f"text {start} {size}", write)
    return pd.DataFrame({"prompt": [_plain(prompt) for prompt in prompts]} | said)


def _disturbances(
    model: PreTrainedModel,
    neutral: NeutralTexts,
    vector: ResidualVector,
    strength: float,
    seed: int,
    once: Once,
) -> pd.DataFrame:
    [layer] = vector.layers
    drawn = np.random.default_rng(seed).standard_normal(len(vector.steps[layer]))
    drawn *= np.linalg.norm(vector.steps[layer]) / np.linalg.norm(drawn)
    random = ResidualVector({layer: drawn.astype(np.float32)})
    strengths, rows = [0.0, *sorted({*STRENGTHS, abs(strength)})], []
    for size in strengths:
        edits = [x.intervention(model, size) for x in (vector, random)]
        rows.append(once(f"kl {size}", partial(_disturbance, neutral, *edits)))
    columns = ["perplexity", "KL", "KL, random direction"]
    return pd.DataFrame(rows, columns=columns).assign(strength=strengths)[["strength", *columns]]


def _disturbance(
    neutral: NeutralTexts, steering: Intervention, random: Intervention
) -> list[float]:
    """Return perplexity and KL when steered, and KL under a random direction."""
    surprise, kl = neutral.measure(steering)
    return [
        float(np.exp(surprise.mean())),
        float(kl.mean()),
        float(neutral.measure(random)[1].mean()),
    ]


def _plain(prompt: Text) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(said["content"] for said in prompt)


def _refuse_long(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Text],
    new_tokens: int,
) -> None:
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None) or np.inf
    for number, prompt in enumerate(prompts, start=1):
        if (length := len(encode_text(tokenizer, prompt))) + new_tokens > most or not length:
            raise ValueError(
                f"prompt {number} has {length} tokens, and with {new_tokens} new ones this "
                f"{type(model).__name__} reads 1 to {most}: shorten it, or give fewer --tokens"
            )


def _about_pairs(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair]
) -> Iterator[str]:
    wanted, unwanted = encode_pairs(model, tokenizer, pairs)
    if len(pairs) < 16:
        yield f"{len(pairs)} pairs: what they share by accident is in the vector, too."
    longer = np.sign([len(a) - len(b) for a, b in zip(wanted, unwanted, strict=True)])
    for name, sign in (("longer", 1), ("shorter", -1)):
        if (share := float((longer == sign).mean())) > 0.9 and len(pairs) > 1:
            yield (
                f"In {share:.0%} of the pairs the wanted text is the {name} one: the vector may "
                "carry length."
            )
    ends = [{ids[-1] for ids in side} for side in (wanted, unwanted)]
    if len(pairs) > 1 and len(ends[0]) == len(ends[1]) == 1 and ends[0] != ends[1]:
        words = [repr(tokenizer.decode([*end])) for end in ends]
        yield (
            f"All wanted texts end with the token {words[0]} and all others with {words[1]}: the "
            "vector may carry that word alone."
        )
    if tokenizer.unk_token_id is not None:
        tokens = np.concatenate([*wanted, *unwanted])
        if (unknown := float(np.mean(tokens == tokenizer.unk_token_id))) > 0.02:
            yield f"{unknown:.0%} of the pairs' tokens are unknown to this model."


def _about_results(report: PairReport, layer: int, strength: float) -> Iterator[str]:
    if report.vector.agreement.size and report.vector.agreement[layer] < 0.5:
        yield (
            f"Held-out pairs hardly agree on the direction in layer {layer} "
            f"({report.vector.agreement[layer]:.2f}, where 1 is the same step in each): more "
            "pairs, or pairs that differ in one thing, would help."
        )
    rows = report.disturbance.set_index("strength")
    kl, random = rows.loc[abs(strength), ["KL", "KL, random direction"]]
    if kl > 1:
        yield (
            f"At strength {strength:g} neutral text is disturbed by {kl:.2g} nats per token: a "
            "smaller strength keeps the text sound."
        )
    elif kl < 0.01:
        yield (
            f"At strength {strength:g} neutral text is hardly disturbed ({kl:.1g} nats per token): "
            "a larger one may be needed to see anything."
        )
    if kl > 0.01 and random > kl:
        yield "A random direction of the same length disturbs neutral text more than the vector."
    same = int((report.generated["not steered"] == report.generated[f"{strength:+g}"]).sum())
    if same:
        yield f"{same} of {len(report.generated)} texts are the same as without steering."
