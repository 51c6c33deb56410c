"""A language model spread over devices by accelerate: its hooks and ours meet."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from conceptnb.steering.activations import collect_activations
from conceptnb.steering.attention import find_heads, input_device
from conceptnb.steering.divergence import NeutralTexts
from conceptnb.steering.generation import generate_answers
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.scoring import AnswerScorer
from tests.steering.conftest import build


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def pair(request, tokenizer, tmp_path_factory):
    """Load a tiny random model twice: whole, and with layers and embedding on disk."""
    folder = tmp_path_factory.mktemp(request.param)
    whole = build(request.param, len(tokenizer))
    whole.save_pretrained(folder)
    layers = {"llama": "model.layers", "gpt2": "transformer.h"}[request.param]
    embedding = {"llama": "model.embed_tokens", "gpt2": "transformer.wte"}[request.param]
    names = dict.fromkeys(name for name, _ in whole.named_children())
    trunk = {f"{n}.{m}": "cpu" for n in names for m, _ in whole.get_submodule(n).named_children()}
    trunk = {name: where for name, where in trunk.items() if name != layers}
    places = trunk | {f"{layers}.{i}": "disk" if i else "cpu" for i in range(3)}
    places |= {embedding: "disk", "lm_head": "disk"}
    spread = AutoModelForCausalLM.from_pretrained(
        folder, device_map=places, offload_folder=folder / "offload"
    ).eval()
    assert "disk" in spread.hf_device_map.values() and "cpu" in spread.hf_device_map.values()
    assert any(parameter.device.type == "meta" for parameter in spread.parameters())
    return whole, spread


def test_memory_limits_put_layers_on_disk_and_answers_stay_the_same(tokenizer, corpus, tmp_path):
    whole = build("llama", len(tokenizer))
    whole.save_pretrained(tmp_path)
    size = sum(parameter.nbytes for parameter in whole.parameters())
    spread = AutoModelForCausalLM.from_pretrained(
        tmp_path,
        device_map="auto",
        max_memory={"cpu": size // 2},
        offload_folder=tmp_path / "offload",
    ).eval()
    assert {"cpu", "disk"} <= set(spread.hf_device_map.values())
    questions = corpus.questions()[::24]
    steer = Intervention(torch.randn(find_heads(whole).shape))
    for steering in (None, steer):
        one, other = (
            AnswerScorer(m, tokenizer, questions, memory=0).score(steering) for m in (whole, spread)
        )
        for question in questions:
            np.testing.assert_allclose(one[question.id], other[question.id], atol=1e-5)


def test_log_probabilities_under_an_intervention_are_those_of_the_whole_model(
    pair, tokenizer, corpus
):
    whole, spread = pair
    questions = corpus.questions()[::24]
    assert find_heads(spread) == find_heads(whole)
    assert input_device(spread).type == "cpu"
    generator = torch.Generator().manual_seed(0)
    steer = Intervention(
        torch.randn((len(questions), *find_heads(whole).shape), generator=generator)
    )

    class ByText:
        def for_texts(self, texts):
            of = {question.text: row for row, question in enumerate(questions)}
            return steer.select(torch.tensor([of[text] for text in texts]))

    plain, one, other = (
        AnswerScorer(model, tokenizer, questions, memory=0).score(steering)
        for model, steering in ((whole, None), (whole, ByText()), (spread, ByText()))
    )
    for question in questions:
        np.testing.assert_allclose(one[question.id], other[question.id], atol=1e-5)
        assert np.abs(plain[question.id] - one[question.id]).max() > 1e-2


def test_activations_divergence_and_text_are_those_of_the_whole_model(pair, tokenizer, corpus):
    questions = corpus.questions()[::24]
    steer = Intervention(0.3 * torch.ones(find_heads(pair[0]).shape))
    texts = ["in the morning mira walked to the mill and found a small boat."]
    for of in ("heads", "states"):
        one, other = (collect_activations(m, tokenizer, questions, of=of) for m in pair)
        np.testing.assert_allclose(one.heads, other.heads, atol=1e-5)
    (ce, kl), (ce_spread, kl_spread) = (
        NeutralTexts(m, tokenizer, texts).measure(steer) for m in pair
    )
    np.testing.assert_allclose(kl, kl_spread, atol=1e-5)
    np.testing.assert_allclose(ce, ce_spread, atol=1e-5)
    assert kl[0] > 0
    said, again = (generate_answers(m, tokenizer, questions, steer) for m in pair)
    assert said == again


@torch.no_grad()
def test_weights_that_wait_outside_the_model_are_steered_as_they_are_inside(tokenizer, corpus):
    accelerate = pytest.importorskip("accelerate")
    whole, away = (build("llama", len(tokenizer)) for _ in range(2))
    away = accelerate.cpu_offload(away, execution_device=torch.device("cpu"))
    assert all(parameter.device.type == "meta" for parameter in away.parameters())
    questions = corpus.questions()[::24]
    steer = Intervention(torch.randn(find_heads(whole).shape))
    one, other = (AnswerScorer(m, tokenizer, questions).score(steer) for m in (whole, away))
    for question in questions:
        np.testing.assert_allclose(one[question.id], other[question.id], atol=1e-5)
