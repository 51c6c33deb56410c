"""One runner: any backend, killed or not, the same file."""

import dataclasses
import json
import os
import time

import numpy as np
import pytest
from joblib import Parallel, delayed

from conceptnb import results
from conceptnb.commands import reproduce as commands
from conceptnb.commands.options import option
from conceptnb.commands.reproduce import Study
from conceptnb.results import runner
from conceptnb.results.runner import Plan, Task
from conceptnb.results.summarise import summary
from tests.conftest import without_times


def tasks(count=4):
    """Tasks that any process can run: means of a few numbers, by a function of the package."""
    return [
        Task(
            summary,
            {
                "runs": [{"seed": k, "x": float(k)}, {"seed": k, "x": float(k * k)}],
                "by": ["seed"],
                "columns": ["x"],
            },
        )
        for k in range(count)
    ]


def as_they_are(runs):
    return runs


as_they_are.__module__ = "conceptnb.results.summarise"  # where the package would have it


def plan(**changed):
    settings = {"file": "demo", "tasks": tasks(), "summarise": as_they_are, "seeds": range(4)}
    return Plan(**{**settings, **changed})


@pytest.fixture
def study(monkeypatch):
    """A study of the four tasks, as `conceptnb reproduce demo`."""

    def plans(args):
        return [plan(tasks=tasks(args.seeds), summarise=summarise, seeds=range(args.seeds))]

    def summarise(runs):
        return [{"seed": run["seed"], "x": run["x_mean"]} for run in runs]

    summarise.__module__ = "conceptnb.results.summarise"  # where the package would have it
    made = Study("demo", "", "A demonstration.", option("--seeds", type=int, default=4))
    monkeypatch.setattr(made, "plans", plans)
    monkeypatch.setitem(commands.reproduce.commands, "demo", made)
    return made


def reproduce(words):
    """Run `conceptnb reproduce demo`, and raise what it refuses."""
    with commands.reproduce.commands["demo"].make_context("demo", [*words]) as ctx:
        return ctx.command.invoke(ctx)


def content(path):
    return json.dumps(without_times(results.read(path)))


@pytest.mark.parametrize("words", [["--jobs", "1"], ["--jobs", "2"], ["--backend", "sequential"]])
def test_workers_and_backends_change_nothing(study, tmp_path, words):
    alone, other = tmp_path / "a" / "demo.json", tmp_path / "b" / "demo.json"
    assert reproduce(["--out", str(alone), "--jobs", "1"]) == 0
    assert reproduce(["--out", str(other), *words]) == 0
    assert content(alone) == content(other)
    assert [row["x"] for row in results.read(other).rows] == [0.0, 1.0, 3.0, 6.0]


KEPT = []


def keeping(seed):
    KEPT.append(np.ones(20_000_000))  # 160 MB
    time.sleep(1.1)  # loky looks once per second
    return [{"seed": seed, "process": os.getpid()}]


@pytest.mark.slow
def test_a_worker_that_keeps_much_for_later_tasks_is_not_replaced():
    tasks = (Task(keeping, {"seed": seed}) for seed in range(8))
    parallel = Parallel(n_jobs=2, backend="loky")
    found = parallel(delayed(runner._keyed)(str(k), task) for k, task in enumerate(tasks))
    assert len({rows[0]["process"] for _, rows, _ in found}) == 2


@pytest.mark.slow
def test_a_dask_cluster_on_this_machine_gives_the_same(study, tmp_path):
    pytest.importorskip("distributed")
    alone, other = tmp_path / "a" / "demo.json", tmp_path / "b" / "demo.json"
    reproduce(["--out", str(alone), "--jobs", "1"])
    reproduce(["--out", str(other), "--backend", "dask", "--jobs", "2"])
    assert content(alone) == content(other)


def test_finished_tasks_are_not_computed_again(study, tmp_path, monkeypatch):
    folder = tmp_path / "parts"
    words = ["--jobs", "1", "--checkpoints", str(folder)]
    reproduce(["--seeds", "2", "--out", str(tmp_path / "two.json"), *words])
    kept = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(kept) == 2
    reproduce(["--out", str(tmp_path / "four.json"), *words])
    assert len(list(folder.iterdir())) == 4
    assert all((folder / name).stat().st_mtime_ns == when for name, when in kept.items())
    assert [row["seed"] for row in results.read(tmp_path / "four.json").rows] == [0, 1, 2, 3]


def test_a_damaged_task_is_refused_by_name(study, tmp_path):
    folder, words = tmp_path / "parts", ["--checkpoints", str(tmp_path / "parts"), "--jobs", "1"]
    reproduce(["--out", str(tmp_path / "one.json"), *words])
    damaged = sorted(folder.iterdir())[0]
    damaged.write_text('{"rows": [', encoding="utf-8")
    with pytest.raises(ValueError, match=f"{damaged.name} is damaged"):
        reproduce(["--out", str(tmp_path / "two.json"), *words])


def test_a_task_whose_rows_were_edited_is_refused_by_name(study, tmp_path):
    folder, words = tmp_path / "parts", ["--checkpoints", str(tmp_path / "parts"), "--jobs", "1"]
    reproduce(["--out", str(tmp_path / "one.json"), *words])
    edited = sorted(folder.iterdir())[0]
    part = json.loads(edited.read_text(encoding="utf-8"))
    part["rows"][0]["x_mean"] = 99.0
    edited.write_text(json.dumps(part), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{edited.name} is damaged .its content was changed"):
        reproduce(["--out", str(tmp_path / "two.json"), *words])
    del part["hash"]
    edited.write_text(json.dumps(part), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{edited.name} is damaged"):
        reproduce(["--out", str(tmp_path / "two.json"), *words])
    edited.unlink()
    reproduce(["--out", str(tmp_path / "two.json"), *words])


def test_another_model_at_the_same_path_is_another_task(tmp_path):
    file = tmp_path / "model.safetensors"
    task = Task(summary, {"seed": 0, "models": ["small-vit", str(file)]})
    keys = [task.key()]
    for weights in (b"one", b"two"):
        file.write_bytes(weights)
        keys.append(task.key())
    assert len({*keys}) == 3
    file.write_bytes(b"one")
    assert task.key() == keys[1]
    assert (
        task.but(models=["small-vit"]).key()
        == Task(summary, {"seed": 0, "models": ["small-vit"]}).key()
    )


def test_other_arguments_or_other_code_are_another_task(monkeypatch):
    first, second = tasks(2)
    assert first.key() != second.key()
    assert first.key() == tasks(1)[0].key()
    before = first.key()
    monkeypatch.setattr(runner, "closure", lambda modules: {modules[0]: "another hash"})
    assert first.key() != before


def test_the_file_is_the_one_that_was_named(study, tmp_path):
    out = tmp_path / "new folder" / "x.abc"
    reproduce(["--out", str(out), "--jobs", "1"])
    assert [path.name for path in out.parent.iterdir()] == ["x.abc"]
    before = out.read_bytes()
    with pytest.raises(FileExistsError, match=r"x\.abc exists"):
        reproduce(["--out", str(out), "--jobs", "1"])
    assert out.read_bytes() == before
    reproduce(["--out", str(out), "--jobs", "1", "--force", "--seeds", "2"])
    assert len(results.read(out).rows) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --backend dask"),
        (["--out", "."], "is a folder"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_computed(
    study, words, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(runner, "run", None)
    with pytest.raises(ValueError, match=message):
        reproduce(words)


def test_the_recorded_command_leads_back_to_the_plan(study, tmp_path):
    out = tmp_path / "renamed.json"
    reproduce(["--seeds", "3", "--jobs", "1", "--out", str(out)])
    kept = results.read(out)
    assert kept.command == "conceptnb reproduce demo --seeds 3 --out renamed.json"
    assert kept.name == "renamed"
    assert len(runner.find_plan(kept.name, kept.command).tasks) == 3
    with pytest.raises(ValueError, match="is no `conceptnb reproduce`"):
        runner.find_plan("x", "conceptnb train-clip vit")


def test_rows_come_in_the_order_of_the_tasks(tmp_path):
    backwards = dataclasses.replace(plan(), tasks=tasks()[::-1])
    path = runner.run(backwards, "c", tmp_path / "demo.json")
    assert [run["seed"] for run in results.read(path).runs] == [3, 2, 1, 0]


def test_means_leave_out_what_was_not_measured():
    runs = [{"k": 1, "x": 1.0}, {"k": 1, "x": None}, {"k": 2, "x": None}, {"k": 1, "x": 3.0}]
    assert summary(runs, ["k"], ["x"]) == [
        {"k": 1, "x_mean": 2.0, "x_std": 1.0},
        {"k": 2, "x_mean": None, "x_std": None},
    ]
