"""What the benchmark of training compares: the ordinary loop learns what `fit` learns."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from benchmarks import learning  # noqa: E402
from conceptnb.core.problems import Setting, draw_problem  # noqa: E402
from conceptnb.core.scores import r2  # noqa: E402
from conceptnb.learning.data import stack  # noqa: E402
from conceptnb.learning.fitting import fit  # noqa: E402
from conceptnb.learning.recipes import AUTHORS  # noqa: E402
from conceptnb.learning.training import TrainingConfig  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("loader", [True, False])
def test_stacked_training_learns_what_an_ordinary_loop_learns(loader):
    """Same protocol one problem at a time: losses and R² agree within noise of the seed."""
    problem = draw_problem(Setting("linear", 2, 3, 4), 6, samples=1000)
    data = stack([problem.X], problem.environment, problem.design.M > 0)
    config = TrainingConfig(epochs=60, batch_size=512)
    encoder, loss = learning.train_one_at_a_time(
        data, linear=True, seed=6, config=config, loader=loader
    )
    with torch.no_grad():
        alone = r2(problem.valuations(), encoder(data.x[0]).numpy())
    found = fit([problem], replace(AUTHORS, training=config))
    stacked = r2(problem.valuations(), found.transform([problem.X])[0])
    assert abs(alone - stacked) < 0.05
    assert found.held_out_loss[0, 0] == pytest.approx(loss, abs=0.03)
