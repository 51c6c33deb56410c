"""One way to compute a results file: draw, fit and score in tasks, then summarise.

A study says what its tasks are. The runner shares them out by `joblib`, keeps finished tasks for a
killed run to go on, and writes one file with its provenance. Workers and backend change no result.
"""

import argparse
import ast
import atexit
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
import tempfile
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
from conceptnb.results.registry import STUDIES, refuse, user_path

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


@dataclass(frozen=True)
class Study:
    """What ``conceptnb reproduce NAME`` computes, for a name of `registry.STUDIES`."""

    add_options: Callable[[argparse.ArgumentParser], None]
    """Adds the study's own options to a parser."""
    plans: Callable[[argparse.Namespace], list[Plan]]
    """Returns the results files that the options ask for."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is computed")
    group.add_argument("--jobs", type=int, default=2, help="tasks at a time (default 2)")
    group.add_argument("--backend", choices=("loky", "dask", "sequential"), help="of joblib")
    group.add_argument("--scheduler", help="address of a running Dask scheduler")
    group.add_argument("--out", type=user_path, help="file to write; by default results/NAME.json")
    group.add_argument("--force", action="store_true", help="replace the file of --out")
    group.add_argument(
        "--checkpoints", type=user_path, help="of finished tasks (default OUT.parts)"
    )


def reproduce(name: str, words: Sequence[str]) -> int:
    """Compute what ``conceptnb reproduce NAME WORDS`` asks for, write it, and return 0.

    A file that another command has made is not replaced: FileExistsError.
    """
    _refuse_before_loading(name, words)
    study, args = _parse(name, words)
    plans = study.plans(args)
    if args.out and len(plans) > 1:
        files = ", ".join(plan.file for plan in plans)
        raise ValueError(f"--out names one file, and these are {len(plans)}: {files}")
    command = shlex.join(["conceptnb", "reproduce", name, *_that_matter(words)])
    paths = [args.out or results.folder() / f"{plan.file}.json" for plan in plans]
    for path in paths:
        _refuse_to_replace(path, command, args)
    for plan, path in zip(plans, paths, strict=True):
        with _workers(args.backend, args.scheduler, args.jobs):
            run(plan, command, path, args.checkpoints)
        print(f"wrote {path}")
    return 0


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
    study, args = _parse(words[2], words[3:])
    plans = study.plans(args)
    named = args.out is not None and len(plans) == 1
    if found := [plan for plan in plans if named or plan.file == name]:
        return found[0]
    raise ValueError(f"{name}: {command!r} does not make this table")


def _parse(name: str, words: Sequence[str]) -> tuple[Study, argparse.Namespace]:
    if name not in STUDIES:
        raise ValueError(f"there is no study {name!r}; there are {', '.join(STUDIES)}")
    study: Study = importlib.import_module(STUDIES[name]["module"]).STUDY
    parser = argparse.ArgumentParser(
        prog=f"conceptnb reproduce {name}", description=STUDIES[name]["help"], allow_abbrev=False
    )
    parser.error = refuse  # type: ignore[method-assign]
    study.add_options(parser)
    _add_options(parser)
    return study, parser.parse_args(list(words))


def _known(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = refuse  # type: ignore[method-assign]
    _add_options(parser)
    return parser.parse_known_args(list(words))


def _refuse_before_loading(name: str, words: Sequence[str]) -> None:
    """Refuse what can be seen to be wrong before a study is imported, which may bring torch."""
    args, rest = _known(words)
    if {"-h", "--help"} & {*rest}:
        return
    about = STUDIES.get(name, {})
    if source := _source_of(about.get("module", "")):
        for option, value in vars(_declared(source).parse_args(list(words))).items():
            _refuse_outside(option, value, about.get("bounds", {}))
            _refuse_other(option, value, about.get("choices", {}))
            if option in about.get("folders", ()) and value:
                _check_out(Path(value) / "x", replace=True, option=_flag(option))
            _refuse_missing(option, value, about.get("paths", {}))
    _refuse_outside("jobs", args.jobs, {})
    if args.scheduler and args.backend != "dask":
        raise ValueError("--scheduler is for --backend dask: name both, or neither")
    if args.scheduler and not re.search(r":\d+$|^inproc:", args.scheduler):
        raise ValueError(f"--scheduler {args.scheduler} has no port: give tcp://HOST:PORT")
    if args.out is not None:
        _check_out(args.out, args.force)
    if args.checkpoints is not None:
        _check_out(args.checkpoints / "x", replace=True, option="--checkpoints")


def _declared(own: str) -> argparse.ArgumentParser:
    """Return options as the source of a study declares them, or a study that it imports from.

    Nothing is imported. What is no plain value there, such as choices from a constant, is left to
    the study's own parser, and so are options of others that it has not.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = refuse  # type: ignore[method-assign]
    _add_options(parser)
    imported = re.findall(r"from (conceptnb\.studies\.\w+) import", own)
    for source in (own, *map(_source_of, imported)):
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(ast.Attribute(attr="add_argument"), [ast.Constant(str(option))]):
                    if option not in parser._option_string_actions:
                        parser.add_argument(option, **_plain(node.keywords))
    return parser


def _source_of(module: str) -> str:
    file = Path(__file__).parents[2].joinpath(*module.split(".")).with_suffix(".py")
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _plain(keywords: Sequence[ast.keyword]) -> dict[str, Any]:
    types: dict[str, Any] = {"int": int, "float": float}
    found: dict[str, Any] = {}
    for given in keywords:
        if given.arg == "type" and isinstance(given.value, ast.Name):
            found["type"] = types.get(given.value.id, str)
        elif given.arg in ("nargs", "choices", "action"):
            with contextlib.suppress(ValueError):
                found[given.arg] = ast.literal_eval(given.value)
    return found


def _refuse_outside(option: str, value: Any, bounds: Mapping[str, Sequence[int]]) -> None:
    """Refuse whole numbers outside their bounds: without any, counts from 1, and seeds from 0.

    Other numbers have to be finite.
    """
    seed = option.endswith("seed") or (isinstance(value, list) and option.endswith("seeds"))
    least, *most = bounds.get(option, [0, _LAST_SEED] if seed else [1])
    for number in _each(value):
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError(f"{_flag(option)} {number}: give a finite number")
        if type(number) is not int or least <= number <= min(most, default=number):
            continue
        limits = f"lie in [{least}, {most[0]}]" if most else f"be at least {least}"
        raise ValueError(f"{_flag(option)} must {limits}, got {number}")


def _refuse_other(option: str, value: Any, choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse words that are not among those of an option."""
    for given in _each(value):
        if given not in choices.get(option, [given]):
            raise ValueError(f"{_flag(option)} {given} must be one of {', '.join(choices[option])}")


def _refuse_missing(option: str, value: Any, paths: Mapping[str, Sequence[str]]) -> None:
    """Refuse files and folders that are not there, for options that take them or given words.

    The word "*" stands for all names, as on a hub, that do not look like a file's or a folder's.
    """
    for given in _each(value):
        if option not in paths or str(given) in paths[option]:
            continue
        path = Path(given).expanduser()
        if given and path.exists():
            if option == "model" and path.is_dir() and not _holds_model(path):
                raise ValueError(f"--model {path} is no model: it has no config.json")
        elif "*" not in paths[option] or not given or _A_PATH.search(str(given)):
            words = ["a name" if word == "*" else word for word in paths[option]]
            way = " or ".join([*words, "a path that exists"])
            raise ValueError(f"{_flag(option)} {given} is not there: give {way}")


def _holds_model(folder: Path) -> bool:
    """Whether transformers can load from a folder: a model, or an adapter of one (peft)."""
    return any((folder / name).is_file() for name in ("config.json", "adapter_config.json"))


def _each(value: Any) -> list[Any]:
    """Return what was given for an option, one by one: nothing, a value or a list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _that_matter(words: Sequence[str]) -> list[str]:
    known, rest = _known(words)
    return [*rest, *(["--out", known.out.name] if known.out else [])]


def _refuse_to_replace(path: Path, command: str, args: argparse.Namespace) -> None:
    """Raise before anything is computed, where the result could not be written."""
    old = args.out is None and path.is_file() and not args.force
    again = old and results.read(path).command.split()[:3] == command.split()[:3]
    _check_out(path, args.force or again)  # or the table of this study, computed again


def _check_out(path: Path, replace: bool, option: str = "--out") -> None:
    """Refuse a file that could not be written, or that exists and is not to be replaced."""
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder: name a file in it")
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        atexit.register(_remove_empty, folder)  # where the command is refused later
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.") as probe:
            probe.write(bytes(1 << 16))
    except OSError as error:
        raise ValueError(f"{option} {path}: {error.strerror}; name another place") from None
    if path.exists() and not replace:
        raise FileExistsError(f"{path} exists: name another one with --out, or use --force")


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


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
def _workers(backend: str | None, scheduler: str | None, jobs: int) -> Iterator[None]:
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
