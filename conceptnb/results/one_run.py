"""Compute single runs of stored tables by the package of one tree: a worker of `verify`.

It is run as a file, with the tree's package on the path, so it serves earlier commits as well. A
line of standard input is a job, a line of standard output its answer.
"""

import contextlib
import importlib
import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def _find_plan(tree: Path, name: str) -> Any:
    command = json.loads((tree / "results" / f"{name}.json").read_text(encoding="utf-8"))["command"]
    try:
        runner = importlib.import_module("conceptnb.results.runner")
    except ImportError:
        runner = importlib.import_module("conceptnb.studies.runner")  # before 25 November 2026
    return runner.find_plan(name, command)


def _own_strata() -> ModuleType:
    path = Path(__file__).with_name("strata.py")
    spec = importlib.util.spec_from_file_location("one_run_strata", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _task(tree: Path, job: dict[str, Any]) -> Any:
    """Return the task of the same function and arguments, or else of the same stratum."""
    plan = _find_plan(tree, job["name"])
    for task in plan.tasks:
        same = task.compute.__qualname__.lstrip("_") == job["function"].lstrip("_")
        if same and task.arguments.keys() == job["arguments"].keys():
            return task.but(**job["arguments"])
    found = _own_strata().strata(plan)
    if len(found) != job["of"]:
        raise ValueError(f"{len(found)} strata here, {job['of']} there")
    return found[job["number"]].one_run(random.Random(job["draw"]))


def main(tree: Path) -> None:
    """Answer jobs until standard input ends."""
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            try:
                rows, seconds = _task(tree, json.loads(line))()
                answer: dict[str, Any] = {"rows": rows, "cpu_seconds": round(seconds, 2)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
