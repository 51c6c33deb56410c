"""The residual stream beside the heads: where else could a verdict stand? (Appendix E.1).

The paper steers and reads head activations only. A head that carries nothing may belong
to a model that knows; this is the comparison that tells the two cases apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.activations import Activations
from conceptnb.steering.questions import Question, check_questions
from conceptnb.steering.spans import encode_pair, pad


def collect_states(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    batch_size: int = 64,
) -> Activations:
    """Residual stream at the last token of ``Q: {question} A: {answer}``, for every answer.

    Parameters
    ----------
    model, tokenizer
        The language model, not steered.
    questions
        Questions with unique ids.
    batch_size
        Pairs a forward pass.

    Returns
    -------
    Activations
        In the place of heads, shape (rows, layers + 1, 1, hidden size): the embedding,
        then what each layer hands on. Probes take it as they take head activations.
    """
    check_questions(list(questions))
    pairs = [
        (q.id, true, encode_pair(tokenizer, q.prompt(), answer).ids)
        for q in questions
        for answer, true in zip(q.answers, q.true, strict=True)
    ]
    blocks = []
    for start in range(0, len(pairs), batch_size):
        ids, mask = pad([row for _, _, row in pairs[start : start + batch_size]], "right")
        with torch.no_grad():
            states = model(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                output_hidden_states=True,
                logits_to_keep=1,
            ).hidden_states
        rows, last = torch.arange(len(ids)), mask.sum(1) - 1
        blocks.append(torch.stack([state[rows, last].float().cpu() for state in states], 1))
    return Activations(
        np.array([name for name, _, _ in pairs]),
        np.array([true for _, true, _ in pairs]),
        torch.cat(blocks)[:, :, None].numpy(),
    )
