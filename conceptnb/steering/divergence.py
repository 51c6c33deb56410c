"""How far steering moves a model on neutral text: cross-entropy and KL (Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.steering.attention import input_device
from conceptnb.steering.intervention import Steering
from conceptnb.steering.spans import pad


class NeutralTexts:
    """Neutral texts, the original model's predictions on them, and what steering changes.

    Parameters
    ----------
    texts : sequence of str
        Texts that have nothing to do with the questions.
    max_tokens : int
        Longer texts are cut after this many tokens (128 in the paper's source).
    batch_size : int
        Texts per forward pass.

    Raises
    ------
    ValueError
        If there is no text, or one has fewer than two tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        texts: Sequence[str],
        max_tokens: int = 128,
        batch_size: int = 16,
    ) -> None:
        if not texts:
            raise ValueError("texts is empty; give at least one neutral text")
        self.model = model
        self.texts = list(texts)
        self._batches = []
        for start in range(0, len(texts), batch_size):
            part = self.texts[start : start + batch_size]
            ids, mask = pad([tokenizer(text)["input_ids"][:max_tokens] for text in part], "right")
            if int(mask.sum(1).min()) < 2:
                raise ValueError(
                    "texts holds a text of fewer than two tokens, which predicts nothing"
                )
            with torch.no_grad():
                self._batches.append((part, ids, mask, self._predict(ids, mask)))

    def _predict(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities of the next token, shape (texts, positions - 1, vocabulary)."""
        device = input_device(self.model)
        logits = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        return logits[:, :-1].float().log_softmax(-1)

    @torch.no_grad()
    def measure(
        self, steering: Steering | None = None, contexts: Sequence[str] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return cross-entropy and KL(original ‖ steered), with every position steered.

        Parameters
        ----------
        contexts : sequence of str, optional
            What a steering matrix takes λ from. By default each text itself, as in the
            paper's code. Given questions, taken in turn, each text is read under the very
            edit that answers one of them: a matrix does not escape because a text shares no
            word with what its embedding knows.

        Returns
        -------
        ce, kl
            Of each text, shape (texts,), means over its tokens in nats.
        """
        if contexts is not None and len(contexts) == 0:
            raise ValueError("contexts is empty: give at least one text, or None")
        contexts = self.texts if contexts is None else contexts
        ce, kl, done = [], [], 0
        for texts, ids, mask, original in self._batches:
            if steering is None:
                steered = original
            else:
                about = [contexts[(done + i) % len(contexts)] for i in range(len(texts))]
                with steering.for_texts(about).apply(self.model):
                    steered = self._predict(ids, mask)
            real = mask[:, 1:].to(original.device)
            tokens = ids[:, 1:, None].to(original.device)
            surprise = -steered.gather(-1, tokens)[..., 0]
            distance = (original.exp() * (original - steered)).sum(-1)
            done += len(texts)
            ce.append(((surprise * real).sum(1) / real.sum(1)).cpu().numpy())
            kl.append(((distance * real).sum(1) / real.sum(1)).cpu().numpy())
        return np.concatenate(ce), np.concatenate(kl)
