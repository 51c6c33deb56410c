"""Commands from their first word to their last line, at a tiny size."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from conceptnb import results
from conceptnb.commands.cli import main
from conceptnb.embeddings import sentences
from conceptnb.embeddings.sentences import stored
from conceptnb.results import store
from conceptnb.studies import theory_tables


def test_a_table_of_the_theory_is_computed_and_listed(tmp_path, monkeypatch, capsys):
    plan = theory_tables._PLANS["nested"]
    tiny = dataclasses.replace(plan, tasks=[plan.tasks[0].but(seeds=[0, 1])], seeds=[0, 1])
    monkeypatch.setitem(theory_tables._PLANS, "nested", tiny)
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    out = tmp_path / "theory_nested.json"
    words = ["reproduce", "theory", "--part", "nested", "--jobs", "1", "--out", str(out)]
    assert main(words) == 0
    table = results.read(out)
    assert [run["seed"] for run in table.runs] == table.seeds == [0, 1]
    assert table.rows
    capsys.readouterr()
    assert main(["results"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("theory_nested: current: computed on ")
    assert "spread not measured: `conceptnb results --spread theory_nested`" in said
    results.save(dataclasses.replace(table, spread={"columns": []}), out)
    assert main(["results"]) == 0
    assert "spread not measured" not in capsys.readouterr().out
    changed = json.loads(out.read_text(encoding="utf-8"))
    changed["runs"][0]["M_right"] = not changed["runs"][0]["M_right"]
    out.write_text(json.dumps(changed), encoding="utf-8")
    assert main(["results", "theory_nested"]) == 1
    assert "theory_nested: broken" in capsys.readouterr().out
    assert main(["results", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


@pytest.fixture
def sentence_model(tmp_path):
    """The folder of a random BERT that knows the words of the sentences."""
    words = sorted({word for text in sentences.grid().texts for word in text.split()})
    names = {name: i for i, name in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(names, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    folder = tmp_path / "model"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(names),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def test_sentences_are_embedded_by_the_model_that_is_named(
    tmp_path, sentence_model, monkeypatch, capsys
):
    whole = sentences.grid()
    few = dataclasses.replace(whole, texts=whole.texts[:8], values=whole.values[:8])
    monkeypatch.setattr(stored, "grid", lambda: few)
    out = tmp_path / "embeddings.safetensors"
    assert main(["embed-sentences", "--model", str(sentence_model), "--out", str(out)]) == 0
    assert "not those that were published" in capsys.readouterr().out
    kept = stored.load_embeddings(out)
    assert kept.record["command"] == "conceptnb embed-sentences"
    for rows in kept.embeddings.values():
        assert rows.shape == (8, 16)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    assert not np.allclose(*kept.embeddings.values(), atol=0.1)
