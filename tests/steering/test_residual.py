"""Edits of the residual stream against plain torch, and offsets of concepts against algebra."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from scipy.linalg import solve
from transformers import (
    AutoModelForCausalLM,
    Gemma3nForCausalLM,
    Gemma3nTextConfig,
    OPTConfig,
    OPTForCausalLM,
)

from conceptnb.core.concepts import Concept
from conceptnb.embeddings.directions import ConceptDirections
from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.residual import (
    ResidualIntervention,
    collect_residual,
    find_layers,
    offset_of,
    residual_at_end,
)
from conceptnb.steering.scoring import AnswerScorer
from conceptnb.steering.spans import encode_questions, pad

LAYERS = {  # where each family's layers are, written down and not searched for
    "gpt2": "transformer.h.{}",
    "gpt_neox": "gpt_neox.layers.{}",
}
ROWS = [[5, 9, 4], [7, 3, 8, 6, 11, 4, 10]]


def layer_of(model, layer):
    return model.get_submodule(LAYERS.get(model.config.model_type, "model.layers.{}").format(layer))


def draw(model, batch=(), seed=0):
    shape = (*batch, model.config.num_hidden_layers, 1, model.config.hidden_size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class plainly:  # noqa: N801 - reads as a statement
    """The edit as a few lines of torch: what a layer returns moves by its offset."""

    def __init__(self, model, offsets):
        self.model, self.offsets = model, offsets

    def __enter__(self):
        self.handles = []
        for layer, offset in enumerate(self.offsets[..., 0, :].unbind(-2)):

            def edit(_, __, out, offset=offset):
                moved = offset[:, None] if offset.dim() == 2 else offset
                return (out[0] + moved, *out[1:]) if isinstance(out, tuple) else out + moved

            self.handles.append(layer_of(self.model, layer).register_forward_hook(edit))

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


@torch.no_grad()
def logits(model, ids, **given):
    return model(input_ids=ids, **given).logits


@torch.no_grad()
def test_a_llama_computed_by_hand(llama):
    ids, offsets = torch.tensor(ROWS[1:]), draw(llama)
    inner = llama.model
    x = inner.embed_tokens(ids)
    rotation = inner.rotary_emb(x, torch.arange(ids.shape[1])[None])
    for layer, offset in zip(inner.layers, offsets, strict=True):
        x = layer(x, position_embeddings=rotation) + offset
    expected = inner.norm(x) @ llama.lm_head.weight.T
    with ResidualIntervention(offsets).apply(llama):
        torch.testing.assert_close(logits(llama, ids), expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_gpt2_computed_by_hand(models):
    model, ids = models["gpt2"], torch.tensor(ROWS[1:])
    inner, offsets = model.transformer, draw(model)
    x = inner.wte(ids) + inner.wpe(torch.arange(ids.shape[1]))
    hidden = torch.full((7, 7), -1e9).triu(1)[None, None]
    for block, offset in zip(inner.h, offsets, strict=True):
        x = x + block.attn(block.ln_1(x), attention_mask=hidden)[0]
        x = x + block.mlp(block.ln_2(x)) + offset
    with ResidualIntervention(offsets).apply(model):
        found = logits(model, ids)
    torch.testing.assert_close(found, inner.ln_f(x) @ model.lm_head.weight.T, atol=1e-5, rtol=0)


@torch.no_grad()
def test_logits_padded_or_not_cached_or_not(model):
    steer = ResidualIntervention(draw(model, (2,)))
    alone = []
    for row, offsets in zip(ROWS, steer.offsets, strict=True):
        with plainly(model, offsets):
            alone.append(logits(model, torch.tensor([row]))[0])
    for side in ("left", "right"):
        ids, mask = pad(ROWS, side)
        places = (mask.cumsum(1) - 1).clamp(min=0)
        with steer.apply(model):
            ours = logits(model, ids, attention_mask=mask, position_ids=places)
        torch.testing.assert_close(ours[mask.bool()], torch.cat(alone), atol=2e-5, rtol=0)
    row = torch.tensor(ROWS[1:])
    with steer.select(torch.tensor([1])).apply(model):
        first = model(input_ids=row[:, :4], use_cache=True)
        rest = logits(model, row[:, 4:], past_key_values=first.past_key_values)
    torch.testing.assert_close(torch.cat([first.logits, rest], 1)[0], alone[1], atol=2e-5, rtol=0)


@pytest.mark.parametrize(
    ("beams", "sample", "cache"), [(1, False, True), (1, True, False), (3, False, False)]
)
def test_generation_with_cache_and_without(model, beams, sample, cache):
    offsets = draw(model)
    ids, mask = pad(ROWS, "left")
    options = {"max_new_tokens": 5, "num_beams": beams, "do_sample": sample, "pad_token_id": 0,
               "eos_token_id": None, "output_scores": True, "return_dict_in_generate": True,
               "attention_mask": mask}  # fmt: skip
    ours, theirs = (ResidualIntervention(offsets).apply(model), plainly(model, offsets))
    found = []
    for steered, cached in ((ours, cache), (theirs, True)):
        with steered, torch.random.fork_rng():
            torch.manual_seed(3)
            found.append(model.generate(ids, use_cache=cached, **options))
    assert torch.equal(found[0].sequences, found[1].sequences)
    for one, other in zip(found[0].scores, found[1].scores, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=0)
    plain = model.generate(ids, **options)
    assert not torch.equal(plain.scores[0], found[0].scores[0])


@pytest.mark.parametrize("cache", [True, False])
def test_last_means_the_prompts_end_and_then_the_new_token(llama, cache):
    ids, steer = torch.tensor(ROWS[1:]), ResidualIntervention(draw(llama))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None,
               "attention_mask": torch.ones_like(ids), "use_cache": cache}  # fmt: skip
    with steer.apply(llama, "last"):
        generated = llama.generate(ids, **options)
    for end in range(7, 11):  # what an edit from the prompt's end on, or of one token, gives
        edited = torch.arange(end)[None] >= (6 if cache else end - 1)
        with steer.apply(llama, edited):
            assert logits(llama, generated[:, :end])[0, -1].argmax() == generated[0, end]


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_position_is_found_under_padding(model, side):
    steer = ResidualIntervention(draw(model, (2,)))
    ids, mask = pad(ROWS, side)
    places = (mask.cumsum(1) - 1).clamp(min=0)
    with steer.apply(model, "last"):
        batched = logits(model, ids, attention_mask=mask, position_ids=places)
    for i, row in enumerate(ROWS):
        with steer.select(torch.tensor([i])).apply(
            model, torch.arange(len(row))[None] == len(row) - 1
        ):
            alone = logits(model, torch.tensor([row]))[0]
        torch.testing.assert_close(batched[i][mask[i].bool()], alone, atol=2e-5, rtol=0)


def test_one_layer_alone_is_edited_and_the_model_restored(model):
    ids = torch.tensor(ROWS[1:])
    before, tokens, hooks = logits(model, ids), [ROWS[1]], hooks_of(model)
    plain = residual_at_end(model, tokens)[0, :, 0]
    steer = ResidualIntervention.after(model, 1, np.arange(model.config.hidden_size) / 9)
    seen = []
    with steer.apply(model):
        handle = layer_of(model, 1).register_forward_hook(
            lambda _, __, out: seen.append(out[0] if isinstance(out, tuple) else out)
        )
        first = residual_at_end(model, tokens)[0, 0, 0]
        handle.remove()
    np.testing.assert_array_equal(first, plain[0])
    np.testing.assert_allclose(
        seen[0][0, -1].numpy() - plain[1], np.arange(model.config.hidden_size) / 9, atol=1e-5
    )
    assert torch.equal(logits(model, ids), before)
    with pytest.raises(RuntimeError, match="midway"), steer.apply(model):
        raise RuntimeError("midway")
    assert torch.equal(logits(model, ids), before)
    assert hooks_of(model) == hooks


def hooks_of(model):
    """Return the hooks of each module: other tests may have left theirs."""
    return [(*m._forward_hooks, *m._forward_pre_hooks) for m in model.modules()]


@torch.no_grad()
def test_states_are_what_the_layers_return(model, corpus, tokenizer):
    questions = corpus.questions()[::40]
    found = collect_residual(model, tokenizer, questions, batch_size=5)
    pairs = [x.ids for part in encode_questions(tokenizer, questions) for x in part]
    assert found.heads.shape == (12, 3, 1, model.config.hidden_size)
    assert found.ids.tolist() == [q.id for q in questions for _ in q.answers]
    assert found.true.tolist() == [true for q in questions for true in q.true]
    for row, tokens in zip(found.heads, pairs, strict=True):
        ids = torch.tensor([tokens])
        states = model(input_ids=ids, output_hidden_states=True).hidden_states[1:-1]
        expected = torch.stack([state[0, -1] for state in states])
        torch.testing.assert_close(torch.from_numpy(row[:-1, 0]), expected, atol=1e-4, rtol=1e-4)
        norm = {"gpt2": "transformer.ln_f", "gpt_neox": "gpt_neox.final_layer_norm"}
        last = model.get_submodule(norm.get(model.config.model_type, "model.norm"))
        said = model.get_output_embeddings()(last(torch.from_numpy(row[-1])))
        plain = logits(model, ids)[0, -1:]
        if cap := getattr(model.config, "final_logit_softcapping", None):
            said = cap * torch.tanh(said / cap)
        torch.testing.assert_close(said, plain, atol=1e-4, rtol=1e-4)


def test_scorers_take_them(llama, corpus, tokenizer):
    questions = corpus.questions()[:3]
    steer = ResidualIntervention(draw(llama))
    found = AnswerScorer(llama, tokenizer, questions, edit="all").score(steer)
    for question, pairs in zip(questions, encode_questions(tokenizer, questions), strict=True):
        with plainly(llama, steer.offsets):
            for score, pair in zip(found[question.id], pairs, strict=True):
                each = logits(llama, torch.tensor([pair.ids]))[0].log_softmax(-1)
                steps = range(pair.start - 1, len(pair.ids) - 1)
                expected = sum(each[i, pair.ids[i + 1]].item() for i in steps)
                assert abs(score - expected) < 1e-4


def test_sums_and_multiples_stay_in_the_stream(llama):
    one, two = (ResidualIntervention(draw(llama, seed=seed)) for seed in (0, 5))
    ids = torch.tensor(ROWS[1:])
    both = 2.0 * (one + two * 0.25)
    assert type(both) is ResidualIntervention
    assert torch.equal(both.offsets, 2 * one.offsets + 0.5 * two.offsets)
    with (2.0 * one).apply(llama), (0.5 * two).apply(llama):
        nested = logits(llama, ids)
    with both.apply(llama):
        torch.testing.assert_close(logits(llama, ids), nested, atol=1e-5, rtol=0)
    heads = Intervention(torch.zeros(find_heads(llama).shape))
    for add in (lambda: one + heads, lambda: heads + one):
        with pytest.raises(TypeError, match="nest `with` blocks"):
            add()
    assert one.select(torch.tensor([0])) is one


def test_saved_and_loaded(llama, tmp_path):
    file = tmp_path / "steer.safetensors"
    steer = ResidualIntervention(draw(llama, (2,)))
    steer.save(file, model="tiny")
    found = ResidualIntervention.load(file)
    assert type(found) is ResidualIntervention
    assert torch.equal(found.offsets, steer.offsets)
    with safe_open(file, "pt") as opened:
        assert opened.metadata()["model"] == "tiny"
        assert "residual stream" in opened.metadata()["format"]
    with pytest.raises(ValueError, match="holds no intervention"):
        Intervention.load(file)
    Intervention(torch.zeros(3, 1, 32)).save(file)
    with pytest.raises(ValueError, match="holds no offsets of a residual stream"):
        ResidualIntervention.load(file)


@torch.no_grad()
def test_baked_into_a_plain_checkpoint_or_refused(model, tmp_path):
    ids = torch.tensor(ROWS[1:])
    steer, before = ResidualIntervention(draw(model)), logits(model, ids)
    with steer.apply(model):
        steered = logits(model, ids)
    if model.config.model_type not in ("llama", "qwen2", "gpt2", "gpt_neox"):
        with pytest.raises(ValueError, match="no biases at model"):
            steer.bake(model)
        return
    steer.bake(model).save_pretrained(tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(logits(plain, ids), steered, atol=1e-5, rtol=0)
    assert torch.equal(logits(model, ids), before)
    assert not getattr(model.config, "mlp_bias", False)


def test_a_bias_that_a_norm_changes_is_refused():
    config = OPTConfig(
        vocab_size=50, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, word_embed_proj_dim=32, do_layer_norm_before=False,
    )  # fmt: skip
    model = OPTForCausalLM(config).eval()
    steer = ResidualIntervention(torch.full((2, 1, 32), 0.5) * torch.arange(32))
    with pytest.raises(ValueError, match="changes what the last linear map of a layer returns"):
        steer.bake(model)


def test_errors_say_what_to_do(llama, models, monkeypatch):
    steer = ResidualIntervention(draw(llama))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="offsets holds entries that are NaN or infinite"):
            bad * steer
    with pytest.raises(ValueError, match="the residual stream is one head"):
        ResidualIntervention(torch.zeros(find_heads(llama).shape))
    with (
        pytest.raises(ValueError, match="fit the intervention on this model"),
        ResidualIntervention(torch.zeros(2, 1, 32)).apply(llama),
    ):
        pass
    for wrong in ("first", [True] * 7, None, torch.ones(2, 7)):
        with (
            pytest.raises(ValueError, match="'all', 'last' or a boolean"),
            steer.apply(llama, wrong),
        ):
            pass
    for layer, offset in ((3, np.zeros(32)), (-1, np.zeros(32)), (0, np.zeros(31)), (0, 0.0)):
        with pytest.raises(ValueError, match=r"a layer from 0 to 2, and a shape of \(32,\)"):
            ResidualIntervention.after(llama, layer, offset)
    with (
        pytest.raises(ValueError, match=r"select\(rows\)"),
        ResidualIntervention(draw(llama, (3,))).apply(llama),
    ):
        logits(llama, torch.tensor([[3], [4]]))
    for texts in ([], [[3], []]):
        with pytest.raises(ValueError, match="texts holds no text, or one without a token"):
            residual_at_end(llama, texts)
    with pytest.raises(ValueError, match="select one row"):
        ResidualIntervention(draw(llama, (1,))).bake(llama)
    for change, said in ((torch.compile, "compiled"), (lambda m: m.train(), "training mode")):
        with pytest.raises(ValueError, match=said), steer.apply(change(copy.deepcopy(llama))):
            pass
    deaf, plain = copy.deepcopy(llama), copy.deepcopy(llama)
    find_layers(deaf)
    monkeypatch.setattr(deaf, "forward", plain.forward)
    with pytest.raises(RuntimeError, match="ran and was not steered"), steer.apply(deaf):
        logits(deaf, torch.tensor(ROWS[1:]))


def test_layers_with_several_states_are_refused():
    config = Gemma3nTextConfig(
        vocab_size=50, vocab_size_per_layer_input=50, hidden_size=32, intermediate_size=48,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        hidden_size_per_layer_input=8, num_kv_shared_layers=0, laurel_rank=4,
        activation_sparsity_pattern=[0.0] * 3, layer_types=["full_attention"] * 3,
    )  # fmt: skip
    model = Gemma3nForCausalLM(config).eval()
    with pytest.raises(ValueError, match="do not hand on one state"):
        find_layers(model)


def test_layers_that_read_another_state_are_refused(llama):
    odd = copy.deepcopy(llama)
    odd.model.layers[1].register_forward_pre_hook(lambda _, args: (args[0] + 1, *args[1:]))
    with pytest.raises(ValueError, match="do not hand on one state"):
        find_layers(odd)


# Offsets of concepts


@st.composite
def cases(draw):
    d = draw(st.integers(1, 7))
    k = draw(st.integers(1, d))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    root = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-1, 1, size=d)
    return rng.normal(size=(k, d)), root @ root.T + 1e-2 * np.eye(d), rng.normal(size=k), rng


@given(cases())
@settings(deadline=None)
def test_the_offset_changes_valuations_exactly_and_disturbs_least(case):
    A, sigma, delta, rng = case
    v = offset_of(delta, A, sigma)
    np.testing.assert_allclose(A @ v, delta, rtol=1e-6, atol=1e-6)
    inverse = np.linalg.inv(sigma)
    # The stationary point of the Lagrangian, solved as one linear system.
    k, d = A.shape
    system = np.block([[inverse, -A.T], [A, np.zeros((k, k))]])
    expected = solve(system, np.r_[np.zeros(d), delta])[:d]
    np.testing.assert_allclose(v, expected, rtol=1e-4, atol=1e-6 * np.abs(v).max())
    # No other offset with these valuations disturbs less.
    others = (
        v + rng.normal(size=(20, d)) @ Concept(A, delta).directions.T @ Concept(A, delta).directions
        if k < d
        else v[None]
    )
    assert (np.einsum("ni,ij,nj->n", others, inverse, others) >= v @ inverse @ v * (1 - 1e-6)).all()


def test_concepts_texts_and_singular_covariances():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2, 5))
    root = rng.normal(size=(5, 3))
    deltas = rng.normal(size=(4, 2))
    found = offset_of(deltas, Concept(A, [0.0, 1.0]), root @ root.T)
    np.testing.assert_allclose(found @ A.T, deltas, atol=1e-10)
    for row, delta in zip(found, deltas, strict=True):
        # In the coordinates of the root, the least of all solutions.
        np.testing.assert_allclose(row, root @ np.linalg.lstsq(A @ root, delta)[0], atol=1e-10)
    np.testing.assert_allclose(
        offset_of(deltas[0], A, np.eye(5)), np.linalg.pinv(A) @ deltas[0], atol=1e-10
    )


def test_the_discriminant_of_two_values_gives_the_difference_of_means():
    """As A is a multiple of Σ⁻¹(m₁ − m₀), Σ Aᵀ(A Σ Aᵀ)⁻¹ A(m₁ − m₀) = m₁ − m₀."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2 == 0
    Z = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) + np.outer(labels, np.arange(6.0))
    fitted = ConceptDirections(shrinkage=0).fit(Z, labels)
    means = [Z[labels == value].mean(0) for value in (False, True)]
    within = np.cov((Z - np.where(labels[:, None], means[1], means[0])).T)
    delta = fitted.concept(True).b - fitted.concept(False).b
    for sigma in (within, np.cov(Z.T)):
        found = offset_of(delta, fitted.concept(True), sigma)
        np.testing.assert_allclose(found, means[1] - means[0], atol=1e-8)


def test_what_gives_no_offset_is_refused():
    A, sigma = np.eye(2, 3), np.eye(3)
    for delta, covariance in ((np.ones(3), sigma), (np.ones(2), np.eye(2)), (1.0, sigma)):
        with pytest.raises(ValueError, match=r"needs \(2,\) or \(texts, 2\), and \(3, 3\)"):
            offset_of(delta, A, covariance)
    for covariance in (np.diag([1.0, 1.0, -1.0]), np.triu(np.ones((3, 3)))):
        with pytest.raises(ValueError, match="covariance is not symmetric with eigenvalues"):
            offset_of(np.ones(2), A, covariance)
    with pytest.raises(ValueError, match="covariance is zero along a row of the concept"):
        offset_of(np.ones(2), A, np.diag([1.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="rows of concept are linearly dependent"):
        offset_of(np.ones(2), np.ones((2, 3)), sigma)
    with pytest.raises(ValueError, match="delta holds 1 entries that are NaN"):
        offset_of([np.nan, 0.0], A, sigma)
