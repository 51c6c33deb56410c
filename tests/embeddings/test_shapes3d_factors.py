import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conceptnb.embeddings import shapes3d as s3


@given(st.lists(st.integers(0, s3.N_IMAGES - 1), min_size=1, max_size=30))
def test_index_and_factors_determine_each_other(index):
    factors = s3.index_to_factors(index)
    np.testing.assert_array_equal(s3.factors_to_index(factors), index)


def test_the_grid_is_the_published_one(published_labels):
    assert np.prod(s3.SIZES) == s3.N_IMAGES
    # the last factor varies fastest, and the published values are evenly spaced
    labels = published_labels(s3.index_to_factors([0, 1, 15, 60, 480, s3.N_IMAGES - 1]))
    step = 0.5 / 7
    expected = [
        [0, 0, 0, 0.75, 0, -30],
        [0, 0, 0, 0.75, 0, -30 + 60 / 14],
        [0, 0, 0, 0.75, 1, -30],
        [0, 0, 0, 0.75 + step, 0, -30],
        [0, 0, 0.1, 0.75, 0, -30],
        [0.9, 0.9, 0.9, 1.25, 3, 30],
    ]
    np.testing.assert_allclose(labels, expected, atol=1e-12)


def test_held_out_triples_leave_every_pair_of_values_in_training():
    factors = s3.index_to_factors(np.arange(s3.N_IMAGES))
    held = s3.held_out_combinations(factors)
    held = held.reshape(s3.SIZES)
    by_triple = held.transpose(2, 3, 4, 0, 1, 5).reshape(320, -1)
    assert (by_triple.all(axis=1) == by_triple.any(axis=1)).all()  # whole triples, no leak
    assert by_triple.all(axis=1).sum() == 32
    for i in range(6):
        for j in range(i):
            others = tuple(k for k in range(6) if k not in (i, j))
            assert (~held).any(axis=others).all()


def test_captions_say_every_attribute_and_leave_open_what_is_asked():
    row = [[3, 4, 5, 6, 2, 0]]
    assert s3.captions(row) == ["huge aqua ball on green floor by mint wall seen from -30°"]
    (vague,) = s3.captions(row, vague=("shape", "wall_hue"))
    assert vague == "huge aqua thing on green floor by coloured wall seen from -30°"
    everything = s3.captions(s3.sample_factors(500, np.random.default_rng(0)))
    assert len(set(everything)) == 500  # different factors, different captions
    assert {word for c in everything for word in c.split()} <= set(s3.VOCABULARY)


def test_captions_leave_open_what_is_drawn_for_each():
    rng = np.random.default_rng(0)
    is_open = rng.random((2000, 6)) < 0.25
    texts = s3.captions(s3.sample_factors(2000, rng), left_open=is_open)
    assert ["thing" in text.split() for text in texts] == is_open[:, 4].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: s3.factor_index("colour"), "floor_hue"),
        (lambda: s3.check_factors(np.zeros((2, 5))), r"\(n, 6\)"),
        (lambda: s3.check_factors([[0, 0, 0, 0.75, 0, 0]]), "whole numbers"),
        (lambda: s3.check_factors([[0, 0, 0, 8, 0, 0]]), "scale takes 0 to 7"),
        (lambda: s3.index_to_factors([s3.N_IMAGES]), "480000"),
        (lambda: s3.captions([[0] * 6], vague=("hue",)), "hue"),
        (lambda: s3.captions([[0] * 6], left_open=[False] * 6), "left_open"),
        (lambda: s3.sample_factors(0, np.random.default_rng(0)), "n=0"),
        (lambda: s3.Renderer(0), "size"),
        (lambda: s3.Renderer(8, supersample=0), "supersample"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()
