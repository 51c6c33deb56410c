"""Vectors from pairs of texts: closed forms, the peers' formulas, invariances, files, refusals."""

import copy
import json
import pickle

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from conceptnb.steering.pair_vectors import (
    MeanDifference,
    PrincipalComponent,
    Probe,
    ResidualVector,
    fit_steering_vector,
    held_out_agreement,
)
from conceptnb.steering.pairs import encode_pairs, encode_text, read_pairs
from conceptnb.steering.spans import pad

ESTIMATORS = [
    MeanDifference(),
    PrincipalComponent(),
    PrincipalComponent(centred=True),
    Probe(),
    Probe(penalty=0.1, centred=False),
]
TEMPLATE = (
    "{% for m in messages %}{{ m.role }} {{ m.content }} . {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


@pytest.fixture(scope="module")
def pairs(corpus):
    questions = corpus.questions()[::8]
    return [
        tuple(f"{q.prompt()} {q.answers[q.true.index(side)]}" for side in (True, False))
        for q in questions
    ]


@torch.no_grad()
def states(model, tokenizer, texts, layer):
    """What a layer hands on at the last token, text by text: transformers' own hidden states."""
    found = []
    for text in texts:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        found.append(model(ids, output_hidden_states=True).hidden_states[layer + 1][0, -1])
    return torch.stack(found).double().numpy()


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.fixture(scope="module")
def read(llama, tokenizer, pairs):
    return [states(llama, tokenizer, side, 1) for side in zip(*pairs, strict=True)]


def test_the_step_is_the_mean_difference_one_deviation_long(llama, tokenizer, pairs, read):
    wanted, unwanted = read
    vector = fit_steering_vector(llama, tokenizer, pairs, layers=1)
    difference = wanted.mean(0) - unwanted.mean(0)  # as steering-vectors' mean aggregator
    step = vector.steps[1].astype(float)
    assert vector.layers == (1,) and cosine(step, difference) > 0.99999
    along = np.concatenate(read) @ difference / np.linalg.norm(difference)
    assert np.linalg.norm(step) == pytest.approx(along.std(), rel=1e-4)


def test_components_are_those_of_the_peers(llama, tokenizer, pairs, read):
    wanted, unwanted = read
    both = np.concatenate([wanted - unwanted, unwanted - wanted])  # as steering-vectors'
    for centred, rows in ((False, both), (True, wanted - unwanted)):  # as repeng's pca_diff
        peer = PCA(n_components=1).fit(rows).components_[0]
        peer *= np.sign(((wanted - unwanted) @ peer).mean())
        found = fit_steering_vector(
            llama, tokenizer, pairs, layers=1, estimator=PrincipalComponent(centred=centred)
        )
        assert cosine(found.steps[1].astype(float), peer) > 0.99999


def test_a_probe_is_sklearns_on_centred_pairs(read):
    wanted, unwanted = read
    half = (wanted - unwanted) / 2
    scale = np.sqrt((half**2).sum(1).mean())
    peer = LogisticRegression(C=4.0, fit_intercept=False, max_iter=2000).fit(
        np.concatenate([half, -half]) / scale, [1] * len(half) + [0] * len(half)
    )
    found = Probe(penalty=0.25).direction(wanted, unwanted)
    assert cosine(found, peer.coef_[0]) > 0.99999


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_directions_turn_with_the_labels_and_ignore_origin_scale_and_order(estimator, rng):
    wanted, unwanted = rng.normal(size=(2, 12, 5)) + np.array([[[1.0]], [[0.0]]])
    first = estimator.direction(wanted, unwanted)
    assert cosine(first, -estimator.direction(unwanted, wanted)) > 1 - 1e-6
    order, moved = rng.permutation(12), rng.normal(size=5)
    same = estimator.direction(7 * wanted[order] + moved, 7 * unwanted[order] + moved)
    assert cosine(first, same) > 1 - 1e-6
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert cosine(first @ turn, estimator.direction(wanted @ turn, unwanted @ turn)) > 1 - 1e-6


def test_what_a_pair_is_about_does_not_count_where_pairs_are_centred(rng):
    about = 50 * rng.normal(size=(12, 5))
    wanted, unwanted = rng.normal(size=(2, 12, 5)) + np.array([[[1.0]], [[0.0]]])
    for estimator in ESTIMATORS[:4]:
        plain = estimator.direction(wanted, unwanted)
        assert cosine(plain, estimator.direction(wanted + about, unwanted + about)) > 1 - 1e-6


def test_agreement_is_of_pairs_that_were_left_out(rng):
    same = np.broadcast_to(rng.normal(size=(1, 1, 3)), (10, 1, 3))
    noise = rng.normal(size=(10, 1, 3))
    unwanted = np.zeros((10, 3, 3))
    wanted = np.concatenate([same, -same, noise], axis=1)
    found = held_out_agreement(wanted, unwanted, MeanDifference())
    np.testing.assert_allclose(found[:2], 1)
    moved = []
    for i in range(10):  # five folds, each fifth pair
        rest = [k for k in range(10) if k % 5 != i % 5]
        direction = noise[rest, 0].mean(0)
        moved.append(noise[i, 0] @ direction / np.linalg.norm(direction))
    assert found[2] == pytest.approx(np.mean(moved) / np.sqrt(np.mean(np.square(moved))))


@torch.no_grad()
def test_strength_one_means_the_same_in_a_model_with_a_larger_stream(llama, tokenizer, pairs):
    """Normed before each use, a stream ten times as large computes the same."""
    large = copy.deepcopy(llama)
    parts = [large.model.embed_tokens]
    for layer in large.model.layers:
        parts += [layer.self_attn.o_proj, layer.mlp.down_proj]
    for part in parts:
        part.weight.mul_(10)
    ids = torch.tensor([tokenizer(pairs[0][0])["input_ids"]])
    logits = []
    for model in (llama, large):
        vector = fit_steering_vector(model, tokenizer, pairs, layers=1)
        with vector.apply(model, 2.0):
            logits.append(model(ids).logits)
    torch.testing.assert_close(*logits, rtol=0, atol=1e-3)


@torch.no_grad()
def test_text_is_that_of_a_plain_hook(llama, tokenizer, pairs):
    vector = fit_steering_vector(llama, tokenizer, pairs, layers=1)
    ids, mask = pad([tokenizer(text)["input_ids"] for text, _ in pairs[:3]], "left")
    options = {"attention_mask": mask, "max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    with vector.apply(llama, strength=3.0):
        ours = llama.generate(ids, **options)
    step = 3.0 * torch.tensor(vector.steps[1])

    def add(_, __, out):
        return (out[0] + step, *out[1:]) if isinstance(out, tuple) else out + step

    handle = llama.model.layers[1].register_forward_hook(add)
    theirs = llama.generate(ids, **options)
    handle.remove()
    assert torch.equal(ours, theirs)
    assert not torch.equal(ours, llama.generate(ids, **options))


def test_layers_all_one_some_or_chosen(llama, tokenizer, pairs):
    every = fit_steering_vector(llama, tokenizer, pairs, layers=slice(None))
    assert every.layers == (0, 1, 2) and every.agreement.shape == (3,)
    one = fit_steering_vector(llama, tokenizer, pairs, layers=-1)
    assert one.layers == (2,)
    np.testing.assert_array_equal(every.at(2).steps[2], one.steps[2])
    assert fit_steering_vector(llama, tokenizer, pairs, layers=[2, 0]).layers == (0, 2)
    usual = fit_steering_vector(llama, tokenizer, pairs)
    assert usual.layers == (int(np.argmax(every.agreement)),)
    assert fit_steering_vector(llama, tokenizer, pairs[:3]).layers == (1,)
    edit = every.intervention(llama, 2.0).offsets
    for layer in range(3):
        np.testing.assert_allclose(edit[layer, 0], 2 * every.steps[layer], rtol=1e-6)


@torch.no_grad()
def test_a_baked_model_needs_no_hooks(llama, tokenizer, pairs):
    vector = fit_steering_vector(llama, tokenizer, pairs, layers=1)
    ids = torch.tensor([tokenizer(pairs[0][0])["input_ids"]])
    with vector.apply(llama, -2.0):
        expected = llama(ids).logits
    torch.testing.assert_close(vector.bake(llama, -2.0)(ids).logits, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_chats_are_read_where_the_answer_ends(llama, tokenizer, corpus):
    chatting = type(tokenizer)(tokenizer_object=tokenizer.backend_tokenizer, pad_token="<pad>")
    question = corpus.questions()[0]
    chat = [
        {"role": "user", "content": question.text},
        {"role": "assistant", "content": question.answers[0]},
    ]
    with pytest.raises(ValueError, match="no chat template"):
        encode_text(chatting, chat)
    chatting.chat_template = TEMPLATE
    answered, asked = encode_text(chatting, chat), encode_text(chatting, chat[:1])
    said = f"user {question.text} . assistant"
    whole = [f"{said} {question.answers[k]}" for k in (0, -1)]
    plain = chatting([said, *whole], add_special_tokens=False)["input_ids"]
    assert [asked, answered] == plain[:2]
    other = [chat[0], {"role": "assistant", "content": question.answers[-1]}]
    vector = fit_steering_vector(llama, chatting, [(chat, other)], layers=1)
    seen = []
    handle = llama.model.layers[1].register_forward_hook(lambda _, __, out: seen.append(out))
    for ids in plain[1:]:
        llama(torch.tensor([ids]))
    handle.remove()
    ends = [(out if isinstance(out, torch.Tensor) else out[0])[0, -1].numpy() for out in seen]
    assert cosine(vector.steps[1], ends[0] - ends[1]) > 0.99999


def test_safetensors_come_back_bit_by_bit(llama, tokenizer, pairs, tmp_path):
    vector = fit_steering_vector(llama, tokenizer, pairs, layers=[1, 2])
    vector.save(tmp_path / "v.safetensors", model="a llama")
    again = ResidualVector.load(tmp_path / "v.safetensors")
    assert again.layers == (1, 2)
    for layer in again.layers:
        np.testing.assert_array_equal(again.steps[layer], vector.steps[layer])
    np.testing.assert_array_equal(again.agreement, vector.agreement)


def test_a_control_vector_is_what_llama_cpp_reads(llama, tokenizer, pairs, tmp_path):
    gguf = pytest.importorskip("gguf")
    vector = fit_steering_vector(llama, tokenizer, pairs, layers=slice(1, None))
    vector.save_gguf(tmp_path / "v.gguf", "llama", strength=1.5)
    reader = gguf.GGUFReader(str(tmp_path / "v.gguf"))
    assert reader.get_field("general.architecture").contents() == "controlvector"
    assert reader.get_field("controlvector.model_hint").contents() == "llama"
    assert reader.get_field("controlvector.layer_count").contents() == 2
    held = {tensor.name: tensor for tensor in reader.tensors}
    assert sorted(held) == ["direction.1", "direction.2"]
    for layer in (1, 2):
        tensor = held[f"direction.{layer}"]
        assert tensor.tensor_type == gguf.GGMLQuantizationType.F32
        assert list(tensor.shape) == [llama.config.hidden_size]
        np.testing.assert_array_equal(tensor.data, 1.5 * vector.steps[layer])
    again = ResidualVector.load(tmp_path / "v.gguf")
    np.testing.assert_array_equal(again.steps[2], 1.5 * vector.steps[2])
    with pytest.raises(ValueError, match="layer 0"):
        fit_steering_vector(llama, tokenizer, pairs, layers=0).save_gguf(tmp_path / "0.gguf", "x")
    assert not (tmp_path / "0.gguf").exists()


def test_vectors_of_repeng_and_steering_vectors_are_read(llama, tmp_path, rng):
    gguf = pytest.importorskip("gguf")
    made = {k: rng.normal(size=32).astype(np.float32) for k in (2, 1)}
    writer = gguf.GGUFWriter(str(tmp_path / "repeng.gguf"), "controlvector")  # its export's steps
    writer.add_string("controlvector.model_hint", "llama")
    writer.add_uint32("controlvector.layer_count", len(made))
    for layer, direction in made.items():
        writer.add_tensor(f"direction.{layer}", direction)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    torch.save({k: torch.tensor(v) for k, v in made.items()}, tmp_path / "activations.pt")
    stacked = np.stack([np.zeros(32, np.float32), made[1], made[2]])
    torch.save(torch.tensor(stacked), tmp_path / "stacked.pt")  # as hidden-directions
    for name in ("repeng.gguf", "activations.pt", "stacked.pt"):
        vector = ResidualVector.load(tmp_path / name)
        assert vector.layers == (1, 2)
        edit = vector.intervention(llama, 0.5).offsets
        for layer, direction in made.items():
            np.testing.assert_allclose(edit[layer, 0], 0.5 * direction, rtol=1e-6)


class Harm:
    def __reduce__(self):
        return (exec, ("import pathlib; pathlib.Path('harm').touch()",))


def test_no_file_runs_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(Harm(), "vector.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(Harm()))
    torch.save([1, 2], "list.pt")
    torch.save({"a": torch.ones(3)}, "names.pt")
    for name in ("vector.pt", "plain.pkl", "list.pt", "names.pt"):
        with pytest.raises(ValueError, match=name) as caught:
            ResidualVector.load(name)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "harm").exists()


def test_files_that_hold_no_vector(tmp_path, llama):
    gguf = pytest.importorskip("gguf")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + b"\3\0\0\0")
    writer = gguf.GGUFWriter(str(tmp_path / "model.gguf"), "llama")
    writer.add_tensor("direction.1", np.ones(3, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match="cut"):
        ResidualVector.load(tmp_path / "cut.gguf")
    with pytest.raises(ValueError, match="no control vector"):
        ResidualVector.load(tmp_path / "model.gguf")
    with pytest.raises(FileNotFoundError):
        ResidualVector.load(tmp_path / "none.gguf")
    with pytest.raises(ValueError, match="width"):
        ResidualVector({1: np.ones(5)}).apply(llama)
    with pytest.raises(ValueError, match="layers"):
        ResidualVector({7: np.ones(32)}).apply(llama)


def test_pairs_that_teach_nothing_are_refused(llama, tokenizer, pairs):
    for bad, said in (
        ([], "empty"),
        (["text"], "pair 1"),
        ([pairs[0], ("is it so ?", "is it so ?")], "pair 2"),
        ([pairs[0], (pairs[0][0] * 400, pairs[0][1])], "tokens"),
    ):
        with pytest.raises(ValueError, match=said):
            encode_pairs(llama, tokenizer, bad)
    for layers in (3, -4, [], 1.5, slice(9, None)):
        with pytest.raises(ValueError, match="layers"):
            fit_steering_vector(llama, tokenizer, pairs, layers=layers)


def test_pair_files(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text('positive,negative\nyes,no\n"so, yes",never\n', encoding="utf-8")
    assert read_pairs(file) == [("yes", "no"), ("so, yes", "never")]
    file.write_text("prompt,positive,negative\nwell?,yes,no\n", encoding="utf-8")
    user = {"role": "user", "content": "well?"}
    chats = [tuple([user, {"role": "assistant", "content": x}] for x in ("yes", "no"))]
    assert read_pairs(file) == chats
    lines = tmp_path / "pairs.jsonl"
    lines.write_text(json.dumps(dict(zip(("positive", "negative"), chats[0], strict=True))))
    assert read_pairs(lines) == chats
    for text, said in (
        ("positive,other\nyes,no\n", "lacks the columns"),
        ("positive,negative\nyes,\n", "row 2"),
        ("positive,negative\nyes,no\nno,no\n", "row 3.*the same"),
        ("positive,negative\nyes,no\nyes,no\n", "row 3.*row 2"),
        ("prompt,positive,negative\n,yes,no\n", "row 2: prompt"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            read_pairs(file)
