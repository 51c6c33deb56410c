"""Interventions on tiny random models of every family."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from conceptnb.steering.attention import find_heads, record_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.spans import pad


def offsets(model, batch=None, seed=0):
    shape = find_heads(model).shape if batch is None else (batch, *find_heads(model).shape)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def tokens(model, shape=(2, 7)):
    high = model.config.vocab_size
    return torch.randint(3, high, shape, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def logits(model, ids, **kwargs):
    return model(input_ids=ids, **kwargs).logits


def test_heads_are_what_enters_the_output_projection(model):
    layout = find_heads(model)
    assert layout.n_layers == model.config.num_hidden_layers
    assert layout.n_heads == model.config.num_attention_heads
    # Adding to the projection's input adds its image to the projection's output.
    projection = model.get_submodule(layout.projections[0])
    steer = Intervention(offsets(model))
    seen = []
    hook = projection.register_forward_hook(lambda _, inputs, out: seen.append((inputs[0], out)))
    ids = tokens(model)
    logits(model, ids)
    with steer.apply(model):
        logits(model, ids)
    hook.remove()
    (x, y), (x_steered, y_steered) = seen
    torch.testing.assert_close(x_steered - x, steer.offsets[0].flatten().expand_as(x))
    image = projection(steer.offsets[0].reshape(1, -1)) - projection(torch.zeros(1, x.shape[-1]))
    torch.testing.assert_close(y_steered - y, image.expand_as(y), atol=1e-5, rtol=1e-4)


def test_record_reads_the_position_asked_for(model):
    layout = find_heads(model)
    ids = tokens(model)
    seen = {}
    hooks = [
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, inputs, layer=layer: seen.__setitem__(layer, inputs[0])
        )
        for layer, name in enumerate(layout.projections)
    ]
    rows, positions = torch.tensor([1, 0]), torch.tensor([3, 6])
    with record_heads(model, rows, positions) as record:
        logits(model, ids)
    for hook in hooks:
        hook.remove()
    for layer in range(layout.n_layers):
        torch.testing.assert_close(record[:, layer].flatten(1), seen[layer][rows, positions])


def test_steering_changes_outputs_and_leaves_nothing_behind(model):
    ids = tokens(model)
    before = logits(model, ids)
    with Intervention(offsets(model)).apply(model):
        steered = logits(model, ids)
    assert (steered - before).abs().max() > 1e-2
    assert torch.equal(logits(model, ids), before)


def test_alpha_zero_changes_nothing_at_all(model):
    ids = tokens(model)
    before = logits(model, ids)
    with (0.0 * Intervention(offsets(model))).apply(model):
        assert torch.equal(logits(model, ids), before)


def test_hooks_are_removed_after_an_error(llama):
    ids = tokens(llama)
    before = logits(llama, ids)
    with pytest.raises(RuntimeError, match="midway"), Intervention(offsets(llama)).apply(llama):
        raise RuntimeError("midway")
    assert torch.equal(logits(llama, ids), before)
    assert not any(module._forward_pre_hooks for module in llama.modules())


def test_nested_and_added_interventions_agree(llama):
    ids = tokens(llama)
    one, two = Intervention(offsets(llama)), Intervention(offsets(llama, seed=5))
    with one.apply(llama), two.apply(llama):
        nested = logits(llama, ids)
    with (one + two).apply(llama):
        torch.testing.assert_close(logits(llama, ids), nested, atol=1e-5, rtol=1e-4)


def test_each_text_gets_its_own_offsets(model):
    ids = tokens(model, (3, 6))
    steer = Intervention(offsets(model, batch=3))
    with steer.apply(model):
        together = logits(model, ids)
    for row in range(3):
        with Intervention(steer.offsets[row]).apply(model):
            alone = logits(model, ids[row : row + 1])
        torch.testing.assert_close(together[row], alone[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("positions", ["all", "last"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(model, positions, side):
    rows = [tokens(model, (1, n))[0].tolist() for n in (4, 7)]
    ids, mask = pad(rows, side)
    places = (mask.cumsum(1) - 1).clamp(min=0)
    steer = Intervention(offsets(model, batch=2))
    with steer.apply(model, positions):
        batched = logits(model, ids, attention_mask=mask, position_ids=places)
    for i, row in enumerate(rows):
        with steer.select(torch.tensor([i])).apply(model, positions):
            alone = logits(model, torch.tensor([row]))[0, -1]
        end = mask[i].nonzero()[-1].item()
        torch.testing.assert_close(batched[i, end], alone, atol=1e-4, rtol=1e-4)


def test_generation_with_cache_equals_generation_without(model):
    ids = tokens(model)
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    steer = Intervention(offsets(model, batch=2))
    with steer.apply(model):
        cached = model.generate(ids, attention_mask=torch.ones_like(ids), **settings)
        whole = model.generate(
            ids, attention_mask=torch.ones_like(ids), use_cache=False, **settings
        )
    assert torch.equal(cached, whole)
    plain = model.generate(ids, attention_mask=torch.ones_like(ids), **settings)
    assert not torch.equal(cached, plain)


def test_last_position_under_generate_is_the_prompts_end_then_every_new_token(llama):
    ids = tokens(llama, (1, 5))
    steer = Intervention(offsets(llama))
    settings = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    with steer.apply(llama, "last"):
        generated = llama.generate(ids, attention_mask=torch.ones_like(ids), **settings)
    # The same in one pass: edit from the prompt's last token on.
    edited = torch.arange(generated.shape[1])[None] >= 4
    with steer.apply(llama, edited):
        step_by_step = logits(llama, generated)
    assert torch.equal(step_by_step[0, 4:-1].argmax(-1), generated[0, 5:])


@pytest.mark.parametrize(
    "how", [{"prompt_lookup_num_tokens": 2}, {"prefill_chunk_size": 2}, {"assistant_model": True}]
)
def test_every_position_is_steered_however_tokens_are_found(llama, how):
    """Greedy decoding is the same by prompt lookup, in chunks and with an assistant."""
    ids, steer = tokens(llama, (1, 7)), Intervention(offsets(llama))
    if "assistant_model" in how:
        how = {"assistant_model": copy.deepcopy(llama)}  # not steered: it only proposes
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    mask = torch.ones_like(ids)
    with steer.apply(llama):
        expected = llama.generate(ids, attention_mask=mask, **settings)
        found = llama.generate(ids, attention_mask=mask, **settings, **how)
    assert torch.equal(found, expected)
    assert not torch.equal(expected, llama.generate(ids, attention_mask=mask, **settings))


def test_beams_take_selected_rows(llama):
    ids = tokens(llama)
    steer = Intervention(offsets(llama, batch=2))
    beams = {"num_beams": 2, "max_new_tokens": 2, "pad_token_id": 0, "eos_token_id": None}
    with (
        pytest.raises(ValueError, match=r"select\(rows\)"),
        steer.apply(llama),
    ):
        llama.generate(ids, attention_mask=torch.ones_like(ids), **beams)
    with steer.select(torch.tensor([0, 0, 1, 1])).apply(llama):
        assert llama.generate(ids, attention_mask=torch.ones_like(ids), **beams).shape == (2, 9)


def test_saved_and_loaded(llama, tmp_path):
    steer = Intervention(offsets(llama, batch=2))
    steer.save(tmp_path / "steer.safetensors")
    assert torch.equal(Intervention.load(tmp_path / "steer.safetensors").offsets, steer.offsets)


def test_half_precision_models_stay_in_half_precision(llama):
    model = type(llama)(llama.config).to(torch.bfloat16).eval()
    with Intervention(offsets(model)).apply(model):
        assert logits(model, tokens(model)).dtype == torch.bfloat16


def test_errors_say_what_to_do(llama, models):
    with (
        pytest.raises(ValueError, match="fit the intervention on this model"),
        Intervention(offsets(models["qwen3"])).apply(llama),
    ):
        pass
    with (
        pytest.raises(ValueError, match="'all', 'last' or a boolean"),
        Intervention(offsets(llama)).apply(llama, "first"),
    ):
        pass
    for wrong in ([True] * 7, np.ones((2, 7), bool), None, torch.ones(2, 7)):
        with (
            pytest.raises(ValueError, match="'all', 'last' or a boolean"),
            Intervention(offsets(llama)).apply(llama, wrong),
        ):
            pass
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="offsets holds entries that are NaN or infinite"):
            bad * Intervention(offsets(llama))
    with pytest.raises(ValueError, match="layers, heads, width"):
        Intervention(torch.zeros(3, 4))
    encoder_decoder = T5ForConditionalGeneration(
        T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    ).eval()
    with pytest.raises(ValueError, match="decoder-only"):
        find_heads(encoder_decoder)


def test_every_thread_that_runs_the_model_is_steered(llama):
    """As the documentation of `apply` says; a model of its own leaves a thread alone."""
    ids, own = tokens(llama), copy.deepcopy(llama)
    before = logits(llama, ids)
    with ThreadPoolExecutor(1) as other, Intervention(offsets(llama)).apply(llama):
        steered, plain = (other.submit(logits, m, ids).result() for m in (llama, own))
    assert (steered - before).abs().max() > 1e-2
    assert torch.equal(plain, before)
    assert torch.equal(logits(llama, ids), before)


def test_the_last_position_is_that_of_each_pass(llama):
    """A pass over two new tokens edits the second of them, with a past and without one."""
    ids, steer = tokens(llama, (1, 7)), Intervention(offsets(llama))
    edited = torch.arange(7)[None] == 6
    with steer.apply(llama, edited):
        expected = logits(llama, ids)[:, -1]
    with steer.apply(llama, "last"):
        torch.testing.assert_close(logits(llama, ids)[:, -1], expected)
    with torch.no_grad():
        past = llama(input_ids=ids[:, :5], use_cache=True).past_key_values
    with steer.apply(llama, "last"):
        found = logits(llama, ids[:, 5:], past_key_values=past, attention_mask=torch.ones_like(ids))
    torch.testing.assert_close(found[:, -1], expected, atol=1e-5, rtol=1e-4)


def test_a_model_that_runs_past_its_hooks_is_noticed(llama, monkeypatch):
    deaf, steer = copy.deepcopy(llama), Intervention(offsets(llama))
    find_heads(deaf)
    plain = copy.deepcopy(llama)
    monkeypatch.setattr(deaf, "forward", plain.forward)
    with pytest.raises(RuntimeError, match="ran and was not steered"), steer.apply(deaf):
        logits(deaf, tokens(deaf))
    with steer.apply(deaf):
        pass  # nothing ran
