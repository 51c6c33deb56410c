"""One way to compute a results file: draw, fit and score in tasks, then summarise.

A study says what its tasks are. The runner shares them out by `joblib`, keeps finished tasks for a
killed run to go on, and writes one file with its provenance. Workers and backend change no result.
"""

import contextlib
import hashlib
import importlib
import json
import math
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import process_executor
from tqdm.auto import tqdm

from conceptnb import results
from conceptnb.common.files import write_text
from conceptnb.results.provenance import closure

_LAST_SEED = (1 << 32) - 1
_A_PATH = re.compile(r"^[./~]|\.(csv|json|txt|h5|safetensors|pt|pth|bin)$")
Row = dict[str, Any]
"""One row of a table: plain JSON values by column."""


@dataclass(frozen=True)
class Task:
    """A piece of work that needs no other one and can run in any process."""

    compute: Callable[..., list[Row]]
    """A function of a module, not a lambda: returns one row per run, each with its seed."""
    arguments: dict[str, Any]
    """Plain JSON values."""

    def key(self) -> str:
        """Return a hash of what the rows depend on: code, data and arguments."""
        code = closure([self.compute.__module__])
        text = json.dumps(self.arguments, ensure_ascii=False)
        named = filter(Path.is_file, map(Path, re.findall(r'"([^"]+\.\w+)"', text)))
        held = [hashlib.sha256(file.read_bytes()).hexdigest() for file in named]  # as of weights
        return _hash([code, self.compute.__qualname__, self.arguments, *held])

    def but(self, **changes: Any) -> "Task":
        """Return the task with other arguments."""
        return Task(self.compute, self.arguments | changes)

    def __call__(self) -> tuple[list[Row], float]:
        """Return the rows as JSON reads them back, and the CPU seconds that they took."""
        with _one_thread():
            started = time.process_time()
            rows = self.compute(**self.arguments)
            spent = time.process_time() - started
        return json.loads(json.dumps(rows, allow_nan=False)), spent


@dataclass(frozen=True)
class Sample:
    """What tests compute again, and wrong versions of it that they have to notice."""

    task: Task
    """A task of the plan, or one with fewer seeds."""
    columns: tuple[str, ...]
    """Numbers of its runs that are compared, as means over the runs of a group."""
    wrong: Mapping[str, Task]
    """What is wrong -> the same task, done wrongly."""
    by: tuple[str, ...] = ()
    """Columns whose values make a group; by default all runs are one."""


@dataclass(frozen=True)
class Plan:
    """One results file, of the stem `file`."""

    file: str
    tasks: Sequence[Task]
    summarise: Callable[[list[Row]], list[Row]]
    """Makes the rows that pages show from all runs, which come in the order of the tasks."""
    seeds: Sequence[int]
    notes: dict[str, Any] = field(default_factory=dict)
    """Settings, data and units; see `conceptnb.results.Result`."""
    sample: Sample | None = None
    prepare: Callable[[], None] | None = None
    """Fetches data that all tasks read; changes no number, and its time is not counted."""

    def modules(self) -> list[str]:
        """Return the modules whose functions compute and summarise."""
        functions = [*(task.compute for task in self.tasks), self.summarise]
        return sorted({getattr(function, "func", function).__module__ for function in functions})


def run(plan: Plan, command: str, path: Path, checkpoints: Path | None = None) -> Path:
    """Compute what is not yet kept of a plan, and write its file, which records `command`.

    Finished tasks are kept in `checkpoints`, by default beside `path` until that is written.
    """
    folder = checkpoints or path.with_name(f"{path.name}.parts")
    tasks = {task.key(): task for task in plan.tasks}
    files = {key: folder / f"{key}.json" for key in tasks}
    parts = {key: _read_part(file) for key, file in files.items() if file.is_file()}
    missing = {key: task for key, task in tasks.items() if key not in parts}
    if missing and plan.prepare is not None:
        plan.prepare()
    parallel = Parallel(return_as="generator_unordered")
    # A study's largest settings come last: begun first, they leave no worker idle at the end.
    done = parallel(delayed(_keyed)(key, task) for key, task in reversed(missing.items()))
    for key, rows, seconds in tqdm(done, desc=path.stem, total=len(missing), unit="task"):
        parts[key] = {"rows": rows, "cpu_seconds": seconds}
        write_text(files[key], json.dumps({**parts[key], "hash": _hash([key, parts[key]])}))
    runs = [row for key in tasks for row in parts[key]["rows"]]
    result = results.with_provenance(
        path.stem,
        plan.summarise(runs),
        runs=runs,
        command=command,
        modules=plan.modules(),
        seeds=plan.seeds,
        cpu_seconds=sum(part["cpu_seconds"] for part in parts.values()),
        notes=plan.notes,
    )
    results.save(result, path)
    if checkpoints is None:
        shutil.rmtree(folder, ignore_errors=True)
    return path


def find_plan(name: str, command: str) -> Plan:
    """Return the plan of a computed table from the command that its file records."""
    words = shlex.split(command)
    if words[:2] != ["conceptnb", "reproduce"] or len(words) < 3:
        raise ValueError(f"{name}: {command!r} is no `conceptnb reproduce`")
    # What a command asks for, the command line knows, which stands on a floor above.
    asked = importlib.import_module("conceptnb.commands.reproduce").asked_for(words[2], words[3:])
    named = asked.out is not None and len(asked.plans) == 1
    if found := [plan for plan in asked.plans if named or plan.file == name]:
        return found[0]
    raise ValueError(f"{name}: {command!r} does not make this table")


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _keyed(key: str, task: Task) -> tuple[str, list[Row], float]:
    # Tasks keep what the next one needs, such as a model. Loky would take that for a leak, and a
    # worker that it starts in place of this one would have to load all of it again.
    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf
    return key, *task()


def _read_part(path: Path) -> dict[str, Any]:
    try:
        part = json.loads(path.read_text(encoding="utf-8"))
        kept = {"rows": [*map(dict, part["rows"])], "cpu_seconds": float(part["cpu_seconds"])}
        if part["hash"] != _hash([path.stem, kept]):
            raise ValueError("its content was changed")
        return kept
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): delete it to compute it again") from None


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread of BLAS and torch, whatever the process had before."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - tasks only

    os.environ["OMP_NUM_THREADS"] = "1"  # of a library that is loaded later
    with contextlib.ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if torch := sys.modules.get("torch"):
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        yield


@contextlib.contextmanager
def workers(backend: str | None, scheduler: str | None, jobs: int) -> Iterator[None]:
    """Let `joblib.Parallel` run on a backend: of the caller's choice, or on a Dask cluster."""
    if backend != "dask":
        with parallel_config(backend=backend or "loky", n_jobs=jobs):
            yield
        return
    try:
        from dask.distributed import Client, LocalCluster  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ValueError("--backend dask needs `pip install conceptnb[dask]`") from None
    with contextlib.ExitStack() as stack:
        local = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
        address: Any = scheduler or stack.enter_context(LocalCluster(n_workers=jobs, **local))
        stack.enter_context(Client(address))
        with parallel_config(backend="dask"):
            yield
