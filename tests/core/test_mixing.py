"""Mixings: the authors' architecture, exact Jacobians, and what injectivity checks can see."""

import numpy as np
import pytest

from conceptnb.core.mixing import LinearMixing, MLPMixing, check_injectivity


def rng():
    return np.random.default_rng(0)


def test_linear_mixing_is_the_matrix():
    W = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]])
    mixing = LinearMixing(W)
    assert (mixing.d_z, mixing.d_x) == (2, 3)
    np.testing.assert_array_equal(mixing([[1.0, 0.0], [0.0, 1.0]]), W.T)
    np.testing.assert_array_equal(mixing.jacobian(np.zeros((4, 2)))[3], W)


def test_linear_weights_fill_torchs_default_range():
    weight = LinearMixing.random(25, 4000, rng()).weight
    assert np.abs(weight).max() <= 0.2
    assert weight.std() == pytest.approx(0.2 / np.sqrt(3), rel=0.01)


def test_mlp_equals_a_torch_network():
    torch = pytest.importorskip("torch")
    mixing = MLPMixing.random(5, 7, rng())
    Z = rng().normal(size=(50, 5))
    act = torch.nn.LeakyReLU(0.2)
    (W1, W2, W3), (b1, b2, b3) = (
        [torch.from_numpy(a) for a in group] for group in (mixing.weights, mixing.biases)
    )
    linear = torch.nn.functional.linear
    hidden = act(linear(torch.from_numpy(Z), W1, b1))
    hidden = hidden + act(linear(hidden, W2, b2))
    np.testing.assert_allclose(mixing(Z), linear(hidden, W3, b3).numpy(), atol=1e-12)
    assert [w.shape for w in mixing.weights] == [(16, 5), (16, 16), (7, 16)]


def test_mlp_jacobian_equals_finite_differences():
    mixing = MLPMixing.random(4, 6, rng())
    Z = rng().normal(size=(20, 4))
    step = 1e-7
    numeric = np.stack(
        [(mixing(Z + step * e) - mixing(Z - step * e)) / (2 * step) for e in np.eye(4)], axis=2
    )
    np.testing.assert_allclose(mixing.jacobian(Z), numeric, atol=1e-6)


def test_slope_one_makes_the_mlp_affine():
    mixing = MLPMixing.random(3, 5, rng(), slope=1.0)
    Z = rng().normal(size=(9, 3))
    origin = mixing(np.zeros((1, 3)))
    np.testing.assert_allclose(mixing(2 * Z) - origin, 2 * (mixing(Z) - origin), atol=1e-12)


def test_same_seed_same_mixing():
    for kind in (LinearMixing, MLPMixing):
        Z = rng().normal(size=(3, 4))
        np.testing.assert_array_equal(
            kind.random(4, 6, np.random.default_rng(3))(Z),
            kind.random(4, 6, np.random.default_rng(3))(Z),
        )


def test_linear_injectivity_is_decided_by_the_smallest_singular_value():
    Z = rng().normal(size=(100, 2))
    report = check_injectivity(LinearMixing(np.array([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]])), Z)
    assert report.verdict == "injective"
    assert report.smallest_singular_value == pytest.approx(0.5)
    singular = check_injectivity(LinearMixing(np.ones((3, 2))), Z)
    assert singular.verdict == "not injective"
    assert not singular


@pytest.mark.parametrize(
    ("d_z", "d_x", "possible"), [(3, 4, True), (15, 18, True), (20, 22, False)]
)
def test_paper_mlp_can_be_injective_up_to_its_width(d_z, d_x, possible):
    """Rows of Table 7 with d_z > 16 lie outside Assumption 1."""
    report = check_injectivity(MLPMixing.random(d_z, d_x, rng()), rng().normal(size=(200, d_z)))
    assert bool(report) is possible
    assert report.verdict == ("no violation found" if possible else "not injective")


def test_fewer_observations_than_latents_is_never_injective():
    report = check_injectivity(LinearMixing(np.eye(2, 3)), rng().normal(size=(10, 3)))
    assert report.verdict == "not injective"
    assert "passes through 2" in report.reason


def test_distant_collision_is_found_where_the_jacobian_has_full_rank():
    class Folded:
        """x = |z| twice: full rank off zero, but z and -z collide."""

        d_z, d_x = 1, 2

        def __call__(self, Z):
            return np.abs(np.asarray(Z)) @ np.ones((1, 2))

        def jacobian(self, Z):
            return np.sign(np.asarray(Z))[:, :, None] * np.ones((1, 2, 1))

    report = check_injectivity(Folded(), [[-1.0], [1.0], [2.0]])
    assert report.smallest_singular_value == pytest.approx(np.sqrt(2))
    assert report.verdict == "not injective"


class Power:
    """x = z^k, whose Jacobian vanishes at 0: injective for odd k only."""

    d_z = d_x = 1

    def __init__(self, k):
        self.k = k

    def __call__(self, Z):
        return np.asarray(Z) ** self.k

    def jacobian(self, Z):
        return self.k * np.asarray(Z)[:, :, None] ** (self.k - 1)


def test_a_singular_jacobian_does_not_make_a_smooth_map_not_injective():
    """z³ is injective, though its inverse has no derivative at 0; z² is not."""
    Z = np.array([[-1.0], [-1e-6], [0.0], [1e-6], [0.5], [1.0]])
    cube, square = (check_injectivity(Power(k), Z) for k in (3, 2))
    assert cube.verdict == "no violation found"
    assert "decides nothing" in cube.reason
    assert square.verdict == "not injective"
    assert "share an observation" in square.reason
    assert cube.smallest_singular_value == square.smallest_singular_value == 0


def test_a_network_that_is_singular_where_it_is_linear_is_not_injective():
    flat = MLPMixing((np.diag([1.0, 0.0]), np.zeros((2, 2)), np.eye(2)), (np.zeros(2),) * 3)
    report = check_injectivity(flat, rng().normal(size=(10, 2)))
    assert report.verdict == "not injective"
    assert "loses rank" in report.reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearMixing.random(0, 3, rng()), "d_z must be at least 1"),
        (lambda: MLPMixing.random(2, 3, rng(), width=0), "width must be at least 1"),
        (lambda: MLPMixing.random(2, 3, rng(), slope=0.0), "slope is 0.0"),
        (lambda: LinearMixing(np.zeros(3)), r"weight must have 2 axes"),
        (lambda: LinearMixing(np.eye(2))(np.zeros((4, 3))), r"Z must have shape"),
        (lambda: LinearMixing(np.eye(2))([[np.nan, 0.0]]), "Z holds 1 entries that are NaN"),
        (lambda: check_injectivity(LinearMixing(np.eye(2)), np.zeros((5, 2))), "1 distinct rows"),
        (
            lambda: MLPMixing((np.eye(3), np.eye(2), np.eye(3)), (np.zeros(3),) * 3),
            "weights have shapes",
        ),
        (
            lambda: MLPMixing((np.eye(3), np.eye(3), np.eye(3)), (np.zeros(2),) * 3),
            "biases have shapes",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
