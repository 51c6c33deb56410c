"""The edit, against plain torch, against biases, and against another library."""

import copy

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from conceptnb.steering.attention import find_heads
from conceptnb.steering.intervention import Intervention
from conceptnb.steering.spans import pad

OUTPUTS = {  # where each family's output projection is, written down and not searched for
    "llama": "model.layers.{}.self_attn.o_proj",
    "qwen2": "model.layers.{}.self_attn.o_proj",
    "gpt_neox": "gpt_neox.layers.{}.attention.dense",
    "gpt2": "transformer.h.{}.attn.c_proj",
}


@pytest.fixture(params=sorted(OUTPUTS))
def family(request):
    return request.param


def draw(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 0.5 * torch.randn(find_heads(model).shape, generator=generator)


class plainly:  # noqa: N801 - reads as a statement
    """The edit as a few lines of torch: the projection's output moves by W δ."""

    def __init__(self, model, family, offsets):
        self.model, self.offsets, self.name = model, offsets, OUTPUTS[family]

    def __enter__(self):
        self.handles = []
        for layer, offset in enumerate(self.offsets):
            module = self.model.get_submodule(self.name.format(layer))
            weight = module.weight if isinstance(module, torch.nn.Linear) else module.weight.T
            moved = (weight @ offset.flatten()).detach()
            self.handles.append(
                module.register_forward_hook(lambda _, __, out, moved=moved: out + moved)
            )

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


@torch.no_grad()
def test_logits_padded_or_not_cached_or_not(models, family):
    model = models[family]
    offsets = draw(model)
    rows = [[5, 9, 4], [7, 3, 8, 6, 11, 4, 10]]
    for side in ("left", "right"):
        ids, mask = pad(rows, side)
        places = (mask.cumsum(1) - 1).clamp(min=0)
        given = {"input_ids": ids, "attention_mask": mask, "position_ids": places}
        with Intervention(offsets).apply(model):
            ours = model(**given).logits
        with plainly(model, family, offsets):
            theirs = model(**given).logits
            alone = [model(input_ids=torch.tensor([row])).logits[0] for row in rows]
        torch.testing.assert_close(ours[mask.bool()], theirs[mask.bool()], atol=1e-5, rtol=0)
        torch.testing.assert_close(ours[mask.bool()], torch.cat(alone), atol=1e-5, rtol=0)
    row = torch.tensor(rows[1:])
    with Intervention(offsets).apply(model):
        first = model(input_ids=row[:, :4], use_cache=True)
        rest = model(input_ids=row[:, 4:], past_key_values=first.past_key_values).logits
    cached = torch.cat([first.logits, rest], 1)[0]
    torch.testing.assert_close(cached, alone[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("use_cache", [False, True])
def test_generation_by_beams_and_by_sampling(models, family, beams, sample, use_cache):
    model = models[family]
    offsets = draw(model)
    ids, mask = pad([[5, 9, 4], [7, 3, 8, 6]], "left")
    options = {"max_new_tokens": 5, "num_beams": beams, "do_sample": sample, "pad_token_id": 0,
               "eos_token_id": None, "use_cache": use_cache, "output_scores": True,
               "return_dict_in_generate": True}  # fmt: skip
    found = []
    for steered in (Intervention(offsets).apply(model), plainly(model, family, offsets)):
        with steered, torch.random.fork_rng():
            torch.manual_seed(3)
            found.append(model.generate(ids, attention_mask=mask, **options))
    ours, theirs = found
    assert torch.equal(ours.sequences, theirs.sequences)
    for one, other in zip(ours.scores, theirs.scores, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


@torch.no_grad()
def test_baked_into_a_plain_checkpoint(model, tmp_path):
    """`model` goes through all families, those with grouped-query attention among them."""
    ids = torch.tensor([[5, 9, 4, 7, 3, 8, 6]])
    steer = Intervention(draw(model))
    before = model(input_ids=ids).logits
    with steer.apply(model):
        steered = model(input_ids=ids).logits
    if model.config.model_type == "mistral":
        with pytest.raises(ValueError, match="no biases at model"):
            steer.bake(model)
        return
    baked = steer.bake(model)
    torch.testing.assert_close(baked(input_ids=ids).logits, steered, atol=1e-5, rtol=0)
    assert torch.equal(model(input_ids=ids).logits, before)
    assert not any(module._forward_pre_hooks for module in baked.modules())
    baked.save_pretrained(tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(plain(input_ids=ids).logits, steered, atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_mistral_without_window_becomes_a_llama(models):
    config = copy.deepcopy(models["mistral"].config)
    config.sliding_window = None
    model = type(models["mistral"])(config).eval()
    model.load_state_dict(models["mistral"].state_dict())
    ids = torch.tensor([[5, 9, 4, 7, 3, 8, 6]])
    steer = Intervention(draw(model))
    with steer.apply(model):
        steered = model(input_ids=ids).logits
    baked = steer.bake(model)
    assert baked.config.model_type == "llama"
    torch.testing.assert_close(baked(input_ids=ids).logits, steered, atol=1e-5, rtol=0)


def test_what_cannot_be_baked_is_refused(llama, models):
    with pytest.raises(ValueError, match="select one row"):
        Intervention(draw(llama)[None]).bake(llama)
    with pytest.raises(ValueError, match="fit the intervention on this model"):
        Intervention(draw(models["qwen3"])).bake(llama)


def test_a_saved_vector_says_what_it_is(llama, tmp_path):
    file = tmp_path / "vector.safetensors"
    steer = Intervention(draw(llama))
    steer.save(file, model="tiny", technique="mass mean")
    assert torch.equal(Intervention.load(file).offsets, steer.offsets)
    with safe_open(file, "pt") as opened:
        assert opened.metadata()["technique"] == "mass mean"
        assert opened.metadata()["axes"] == "layers heads width"
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"vector\.safetensors holds no intervention"):
        Intervention.load(file)


@torch.no_grad()
def test_pyvene_makes_the_same_edit(models):
    pyvene = pytest.importorskip("pyvene")
    model = models["gpt2"]
    offsets = draw(model)
    ids = torch.tensor([[5, 9, 4, 7, 3]])

    def adding(layer):
        def edit(base, source):  # the whole row of heads of one layer
            return base + offsets[layer].flatten()

        return edit

    config = pyvene.IntervenableConfig(
        [
            {"layer": layer, "component": "attention_value_output", "intervention": adding(layer)}
            for layer in range(len(offsets))
        ]
    )
    peer = pyvene.IntervenableModel(config, model=model)
    theirs = peer({"input_ids": ids}, unit_locations=None)[1].logits
    with Intervention(offsets).apply(model):
        ours = model(input_ids=ids).logits
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
