"""Directions from words against a construction whose answer is known, and on a small CLIP model."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from conceptnb.embeddings.words import (
    concept_from_words,
    read_captions,
    words_beside_labels,
)

DIMENSION = 24
VALUES = {"size": ("large", "medium", "small"), "kind": ("ball", "cube")}


@pytest.fixture(scope="module")
def world():
    """Images and texts in one space: a vector per word, noise, and a gap between the two kinds."""
    rng = np.random.default_rng(0)
    spoken = ["a", "the", "photo", "of", *VALUES["size"], *VALUES["kind"]]
    words = {word: rng.normal(size=DIMENSION) for word in spoken}
    gap = 3 * rng.normal(size=DIMENSION)

    def embed_texts(texts):
        return np.stack([gap + sum(words[word] for word in text.split()) for text in texts])

    labels = {name: rng.choice(values, 400) for name, values in VALUES.items()}
    Z = np.stack([words[s] + words[k] for s, k in zip(*labels.values(), strict=True)])
    return embed_texts, Z + 0.3 * rng.normal(size=Z.shape), labels


def captions(factor, values=None):
    return {value: [f"a photo of {value}", f"the {value}"] for value in values or VALUES[factor]}


def test_captions_are_averaged_at_unit_length(world):
    embed, Z, _ = world
    found = concept_from_words(embed, captions("kind"))
    rows = [embed(texts) for texts in captions("kind").values()]
    means = [(row / np.linalg.norm(row, axis=1)[:, None]).mean(axis=0) for row in rows]
    points = np.stack([mean / np.linalg.norm(mean) for mean in means])
    np.testing.assert_allclose(found.points, points, rtol=1e-12)
    gap = points[1] - points[0]
    np.testing.assert_allclose(found.towards("cube", "ball"), gap / np.linalg.norm(gap))
    np.testing.assert_allclose(found.axis, gap / np.linalg.norm(gap))
    cosines = Z @ points.T
    assert (found.predict(Z) == found.values[cosines.argmax(axis=1)]).all()


def test_right_words_read_what_labels_read_and_wrong_ones_do_not(world):
    embed, Z, labels = world
    words = {name: concept_from_words(embed, captions(name)) for name in VALUES}
    found = words_beside_labels(words, Z, labels, np.random.default_rng(0))
    for one in found.values():
        assert one.cosine > 0.9 and one.auc > 0.98 and one.auc_labels > 0.98
        assert one.cosine_other < 0.4 and one.auc_other < 0.75
        assert one.eta2 > 0.6 and one.accuracy_labels > 0.9
    swapped = concept_from_words(embed, {"ball": ["a photo of cube"], "cube": ["a photo of ball"]})
    wrong = words_beside_labels({"kind": swapped}, Z, labels, np.random.default_rng(0))["kind"]
    assert wrong.cosine < -0.9 and wrong.auc < 0.02
    assert np.isnan(wrong.auc_other) and np.isnan(wrong.cosine_other)


def test_areas_are_those_of_scikit_learn(world):
    embed, Z, labels = world
    Z = Z.round(0) + 0.1  # so that there are ties
    concept = concept_from_words(embed, captions("size"))
    found = words_beside_labels({"size": concept}, Z, labels, np.random.default_rng(3))["size"]
    rng = np.random.default_rng(np.random.default_rng(3).integers(2**32))
    test = np.sort(rng.permutation(len(Z))[len(Z) // 2 :])
    B, b = Z[test] / np.linalg.norm(Z[test], axis=1)[:, None], labels["size"][test]
    areas = []
    for start, end in combinations(VALUES["size"], 2):
        shown = np.isin(b, [start, end])
        areas.append(roc_auc_score(b[shown] == end, B[shown] @ concept.towards(end, start)))
    assert found.auc == pytest.approx(np.mean(areas), abs=1e-3)  # scaling may break a tie


def test_what_does_not_fit_is_refused(world):
    embed, Z, labels = world
    with pytest.raises(ValueError, match="needs two"):
        concept_from_words(embed, captions("kind", ["ball"]))
    with pytest.raises(ValueError, match=r"captions\['ball'\] must be a list"):
        concept_from_words(embed, {"cube": ["a cube"], "ball": []})
    with pytest.raises(ValueError, match="one embedding"):
        concept_from_words(embed, {"cube": ["a cube"], "ball": ["a cube"]})
    concept = concept_from_words(embed, captions("kind"))
    with pytest.raises(ValueError, match="end='cone' must be one of"):
        concept.towards("cone", "ball")
    with pytest.raises(ValueError, match="labels have size, kind"):
        words_beside_labels({"hue": concept}, Z, labels, np.random.default_rng(0))
    odd = {"kind": np.where(labels["kind"] == "cube", "cone", "ball")}
    with pytest.raises(ValueError, match="kind='cone' is not among the captions"):
        words_beside_labels({"kind": concept}, Z, odd, np.random.default_rng(0))


def test_templates_are_filled_with_the_values(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text(
        "factor,value,caption\nkind,*,a {}\nkind,cube,\nkind,ball,a round thing\n"
        "size,*,a {} thing\nsize,*,something {}\n"
    )
    labels = pd.DataFrame({"kind": ["ball", "cube"], "size": ["small", "large"]})
    assert read_captions(path, labels) == {
        "kind": {"ball": ["a round thing", "a ball"], "cube": ["a cube"]},
        "size": {"large": ["a large thing", "something large"],
                 "small": ["a small thing", "something small"]},
    }  # fmt: skip
    with pytest.raises(ValueError, match="0 values of 'size'"):
        read_captions(path)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("kind,*,a thing\n", "row 2: a template says by {}"),
        ("kind,ball,a ball\nhue,red,red\n", "row 3: the labels have no factor 'hue'"),
        ("kind,ball,a ball\n", "'cube' has no caption"),
        ("kind,,a ball\n", "row 2: factor or value is empty"),
    ],
)
def test_captions_that_do_not_fit_are_refused(rows, said, tmp_path):
    (tmp_path / "c.csv").write_text("factor,value,caption\n" + rows)
    with pytest.raises(ValueError, match=said):
        read_captions(tmp_path / "c.csv", pd.DataFrame({"kind": ["ball", "cube"]}))
