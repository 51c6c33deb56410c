"""The small language models of the book, which stand in for LLaMA-7B in Appendix E.

Llamas of 0.55 million parameters with a vocabulary of whole words, trained on toy corpora.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_model
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from conceptnb.steering.toy_corpora import ToyCorpus, make_toy_corpus

_MODELS = Path(__file__).resolve().parent / "models"
_PAD, _BOS, _EOS, _UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"


def make_tokenizer(corpus: ToyCorpus) -> PreTrainedTokenizerFast:
    """Return a tokenizer of the corpus's words; ``?`` and ``.`` are words of their own."""
    words = [_PAD, _BOS, _EOS, _UNKNOWN, *corpus.vocabulary()]
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=_UNKNOWN)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("[?.]"), "isolated")]
    )
    # Words joined by spaces, none before a full stop or question mark.
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_BOS} $A", special_tokens=[(_BOS, words.index(_BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        bos_token=_BOS,
        eos_token=_EOS,
        unk_token=_UNKNOWN,
        clean_up_tokenization_spaces=False,
    )


def make_small_model(
    tokenizer: PreTrainedTokenizerFast, generator: torch.Generator
) -> LlamaForCausalLM:
    """Return an untrained Llama of 4 layers and 8 heads of width 16, drawn from `generator`."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=4,
        num_attention_heads=8,
        head_dim=16,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    # transformers has drawn the matrices from the global generator.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:  # not the norms' scales
                parameter.normal_(0.0, 0.1, generator=generator)
    return model


def small_models() -> dict[tuple[str, int], Path]:
    """Return the folder of every model in the package, by kind of toy corpus and seed."""
    found = {}
    for path in sorted(_MODELS.glob("*/model.safetensors")):
        kind, _, seed = path.parent.name.rpartition("-")
        found[kind, int(seed)] = path.parent
    return found


def load_small_model(
    kind: str, seed: int = 0
) -> tuple[ToyCorpus, LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Load a toy corpus, a model trained on it (single precision, evaluation mode), its tokenizer.

    `kind` and `seed` are those of `small_models`.

    Raises
    ------
    ValueError
        If there is no such corpus, or the package holds no such model.
    """
    corpus = make_toy_corpus(kind)
    folder = small_models().get((kind, seed))
    if folder is None:
        raise ValueError(
            f"no model of the toy corpus {kind!r} with seed {seed} in {_MODELS}; train one with "
            f"`conceptnb train-language-model --corpus {kind} --seeds {seed}`"
        )
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder)).float().eval()
    load_model(model, folder / "model.safetensors")
    return corpus, model, PreTrainedTokenizerFast.from_pretrained(folder)
