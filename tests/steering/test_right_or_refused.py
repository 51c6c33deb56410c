"""What could run past an edit, or take it to another place: right, or refused by name."""

import copy
import threading
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from transformers import CompileConfig

from conceptnb.steering.attention import find_heads
from conceptnb.steering.residual import find_layers
from tests.steering.hooked import IDS, KINDS, build, draw, hooked, logits

# Compiled code


def generate(model, **options):
    mask = torch.ones_like(IDS)
    return model.generate(
        IDS, attention_mask=mask, max_new_tokens=8, do_sample=False, pad_token_id=0, **options
    )[0].tolist()


@pytest.fixture
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["plain", "steered"])
@pytest.mark.parametrize("by", ["options", "model"])
def test_compiled_decoding_is_steered_too(kind, first, by, fresh):
    model = build()
    steer = draw(model, kind)
    plain, wanted = generate(model), generate(hooked(model, steer))
    assert plain != wanted
    compiled = CompileConfig(backend="eager", fullgraph=False)
    compiled._compile_all_devices = True  # as on a GPU
    static = {"cache_implementation": "static", "compile_config": compiled}
    if by == "model":
        for name, value in static.items():
            setattr(model.generation_config, name, value)
        static = {}
    for steered in (first == "steered", first == "plain", first == "steered"):
        with steer.apply(model) if steered else nullcontext():
            assert generate(model, **static) == (wanted if steered else plain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["one layer", "a block", "inner", "forward", "wrapped layer"])
def test_compiled_parts_are_refused(kind, what, fresh):
    model = build()
    steer = draw(model, kind)
    if what == "forward":
        model.forward = torch.compile(model.forward, backend="eager")
    elif what == "wrapped layer":
        model.model.layers[1] = torch.compile(model.model.layers[1], backend="eager")
    else:
        layer = model.model.layers[1]
        part = {"one layer": layer, "a block": layer.self_attn, "inner": model.model}[what]
        part.compile(backend="eager")
    with pytest.raises(ValueError, match="is compiled, and hooks do not run"), steer.apply(model):
        logits(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_step_of_ones_own_is_steered_and_compiled_again_after(kind, fresh):
    model, ran = build(), []

    def backend(graph, _):
        ran.append(graph)
        return graph.forward

    step = torch.compile(lambda ids: model(input_ids=ids, use_cache=False).logits, backend=backend)
    steer = draw(model, kind)
    with torch.no_grad():
        plain = step(IDS)
        assert ran
        with steer.apply(model), steer.apply(model):
            twice = step(IDS)
        torch.testing.assert_close(twice, logits(hooked(model, 2 * steer)), rtol=0, atol=1e-5)
        count = len(ran)
        torch.testing.assert_close(step(IDS), plain)
        assert len(ran) == count


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_compiled_inside_a_block_is_noticed_on_leaving(kind, fresh):
    model = build()
    steer = draw(model, kind)
    with pytest.raises(ValueError, match="is compiled"), steer.apply(model):
        model.model.layers[0].compile(backend="eager")
    other = build()
    with pytest.raises(ValueError, match="training mode"), steer.apply(other):
        other.train()


# Hooks that do not run


class Another(nn.Module):
    """Put in a module's place, as quantisation and adapters do it; computes the same."""

    def __init__(self, inner):
        super().__init__()
        self.compute = inner.forward
        self.eval()

    def forward(self, *args, **kwargs):
        return self.compute(*args, **kwargs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [0, 1])
def test_one_layer_that_is_not_edited_is_noticed(kind, layer):
    model = build()
    steer, layers = draw(model, kind), model.model.layers
    said = rf"hooks of layers \[{layer}\] did not run"
    with pytest.raises(RuntimeError, match=said), steer.apply(model):
        if kind == "heads":
            layers[layer].self_attn.o_proj = Another(layers[layer].self_attn.o_proj)
        else:
            layers[layer] = Another(layers[layer])
        logits(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_pass_that_is_not_edited_is_noticed(kind):
    model = build()
    steer = draw(model, kind)
    with pytest.raises(RuntimeError, match="did not run"), steer.apply(model):
        logits(model)
        plain = copy.deepcopy(model.model.layers[1])
        for part in plain.modules():
            part._forward_hooks.clear()
            part._forward_pre_hooks.clear()
        model.model.layers[1] = plain
        logits(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_that_breaks_off_is_not_blamed(kind):
    model = build()
    steer = draw(model, kind)
    wanted = logits(hooked(model, steer))
    with steer.apply(model):
        with pytest.raises(IndexError):
            logits(model, torch.tensor([[99999]]))
        torch.testing.assert_close(logits(model), wanted, rtol=0, atol=1e-5)


# Where texts end


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_last_token_is_found_however_the_mask_is_given(kind):
    model = build()
    steer = draw(model, kind)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    edited = torch.arange(6)[None] == 3
    with steer.apply(model, edited):
        wanted = logits(model, attention_mask=mask)[0, :4]
    whole = torch.ones(6, 6, dtype=torch.bool).tril() & mask.bool()
    added = torch.zeros(6, 6).masked_fill(~whole, torch.finfo(torch.float32).min)
    with steer.apply(model, "last"):
        for given in (mask, whole[None, None], added[None, None]):
            found = logits(model, attention_mask=given)[0, :4]
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
        found = model(IDS, mask).logits[0, :4]
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
        inner = model.model(input_ids=IDS, attention_mask=mask).last_hidden_state
        torch.testing.assert_close(model.lm_head(inner)[0, :4], wanted, rtol=0, atol=1e-5)
        # Without a mask the text ends at the end, whatever ran before.
        found = logits(model)
    with steer.apply(model, torch.arange(6)[None] == 5):
        torch.testing.assert_close(found, logits(model), rtol=0, atol=1e-5)


def test_texts_packed_in_one_row_have_no_last_token_that_is_known():
    model = build()
    places = torch.tensor([[0, 1, 2, 0, 1, 2]])
    alone = model.model.layers[0].self_attn.o_proj
    for run in (lambda: logits(model, position_ids=places), lambda: alone(torch.zeros(1, 3, 32))):
        with (
            pytest.raises(ValueError, match="nothing here says where a text ends"),
            draw(model).apply(model, "last"),
        ):
            run()


def test_each_thread_sees_its_own_mask():
    model = build()
    steer, wanted, found = draw(model), {}, {}
    masks = [torch.tensor([[1] * k + [0] * (6 - k)]) for k in (2, 3, 4, 5)]
    with steer.apply(model, "last"):
        for k, mask in enumerate(masks):
            wanted[k] = logits(model, attention_mask=mask)[0, : mask.sum()]
    meeting = threading.Barrier(len(masks))

    def meet(*_):
        meeting.wait()

    def run(k):
        found[k] = logits(model, attention_mask=masks[k])[0, : masks[k].sum()]

    handle = model.model.layers[0].self_attn.q_proj.register_forward_pre_hook(meet)
    with steer.apply(model, "last"):
        threads = [threading.Thread(target=run, args=(k,)) for k in range(len(masks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    handle.remove()
    for k, value in wanted.items():
        torch.testing.assert_close(found[k], value, rtol=0, atol=1e-5)


# The site of heads


def test_a_map_that_does_not_end_its_block_is_no_output_projection():
    """JetMoe's experts come after its last linear map, which is that of keys and values."""
    jetmoe = build(
        "jetmoe", kv_channels=8, num_key_value_heads=4, num_local_experts=4, num_experts_per_tok=2
    )
    with pytest.raises(ValueError, match=r"do not end in one linear map.*kv_proj runs last"):
        find_heads(jetmoe)


class After(nn.Module):
    """An output projection with something before it or behind it."""

    def __init__(self, inner, before=None, behind=None):
        super().__init__()
        self.inner, self.before, self.behind = inner, before, behind

    def forward(self, x):
        x = self.inner(x if self.before is None else self.before(x))
        return x if self.behind is None else self.behind(x)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"before": nn.Linear(32, 32)}, "do not end in one linear map"),  # as DeepSeek-V4's groups
        ({"before": nn.Sequential(nn.Linear(32, 32), nn.Flatten(0, 1))}, "do not end in one"),
        ({"behind": nn.SiLU()}, "do not end in one linear map"),
        ({"behind": nn.RMSNorm(32)}, "do not end in one linear map"),
    ],
)
def test_a_projection_with_something_about_it_is_refused(change, said):
    model = build()
    for layer in model.model.layers:
        layer.self_attn.o_proj = After(layer.self_attn.o_proj, **change)
    with pytest.raises(ValueError, match=said):
        find_heads(model.eval())


def test_a_width_that_is_not_that_of_the_heads_values_is_refused():
    model = build(head_dim=16)
    model.config.head_dim = 8
    with pytest.raises(ValueError, match=r"4 blocks of width 16, but .* values of width \[8\]"):
        find_heads(model)


# Weights of another kind


class Packed(nn.Linear):
    """Weights of eight bits with a scale for each row: a linear map all the same."""

    def __init__(self, inner):
        super().__init__(inner.in_features, inner.out_features, bias=False, device="meta")
        del self.weight
        scale = inner.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("weight", (inner.weight.detach() / scale).round().to(torch.int8))
        self.eval()

    def forward(self, x):
        return nn.functional.linear(x, self.weight * self.scale)


def quantised(kind):
    model = build()
    for layer in model.model.layers:
        packed = Packed(layer.self_attn.o_proj)
        layer.self_attn.o_proj = packed if kind == "a linear map" else Another(packed)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_quantised_weights_are_steered_as_any_others(kind):
    model = quantised("a linear map")
    steer = draw(model, kind)
    with steer.apply(model):
        found = logits(model)
    torch.testing.assert_close(found, logits(hooked(model, steer)), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=r"weights of .* are quantised"):
        steer.bake(model)


def test_maps_that_are_no_linear_maps_of_torch_are_refused():
    model = quantised("a class of its own")
    with pytest.raises(ValueError, match="do not end in one linear map"):
        find_heads(model)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_checkpointing_needs_training_mode_and_is_refused_in_it(kind):
    model = build()
    model.gradient_checkpointing_enable()
    steer = draw(model, kind)
    with steer.apply(model):
        ours = model(input_ids=IDS).logits
        ours.square().mean().backward()
    plain = hooked(build(), steer)
    plain(input_ids=IDS).logits.square().mean().backward()
    torch.testing.assert_close(
        model.lm_head.weight.grad, plain.lm_head.weight.grad, rtol=1e-4, atol=1e-6
    )
    model.model.layers[1].train()  # one part is enough
    with pytest.raises(ValueError, match="training mode"):
        find_layers(model)


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_tokens_are_those_of_a_model_with_the_same_hooks(kind):
    model = build()
    steer = draw(model, kind, 0.3)
    options = {"max_new_tokens": 12, "do_sample": True, "top_p": 0.9, "temperature": 0.8,
               "pad_token_id": 0, "attention_mask": torch.ones_like(IDS)}  # fmt: skip
    found = []
    with steer.apply(model), torch.random.fork_rng():
        torch.manual_seed(4)
        found.append(model.generate(IDS, **options))
    for one in (hooked(model, steer), model):
        with torch.random.fork_rng():
            torch.manual_seed(4)
            found.append(one.generate(IDS, **options))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
