"""Compute runs of stored tables again, by earlier code and by today's, and say what differs.

A table whose code has changed is verified on one machine: single runs, drawn by the digest of the
new code so that no sample can be chosen, are computed by the last verified commit and by the
working tree. The same bits mean that the change was a refactoring.
"""

import dataclasses
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from conceptnb import results
from conceptnb.results.ledger import How, Row, Verified
from conceptnb.results.provenance import code_of
from conceptnb.results.runner import Plan, find_plan
from conceptnb.results.store import Result, signed
from conceptnb.results.strata import Stratum, strata
from conceptnb.results.tolerances import differences_in_tolerances, stored_runs, without_times

_ROOT = Path(__file__).resolve().parents[2]
_SAMPLED_SECONDS = 20.0  # what a plan's own sample takes, before it has been measured
_PARTS = 10  # of all strata, of which a week's run takes one
STORED = "stored"
"""What a table is compared with where no code has changed, or libraries have."""


@dataclass(frozen=True)
class Job:
    """One run of a stratum, to be computed on both sides."""

    table: Result
    plan: Plan
    stratum: Stratum
    of: int
    against: str
    seconds: float
    """Of both sides together, as far as it is known before."""

    def words(self, draw: str) -> dict[str, Any]:
        """Return what a worker needs to know."""
        task = self.stratum.one_run(random.Random(draw))
        return {
            "name": self.table.name,
            "number": self.stratum.number,
            "of": self.of,
            "draw": draw,
            "function": task.compute.__qualname__,
            "arguments": task.arguments,
        }


def verify(
    names: Sequence[str],
    budget: float,
    say: Callable[[str], None],
    *,
    against: str | None = None,
    everything: bool = False,
    whole: bool = False,
) -> bool:
    """Verify tables within a budget of CPU seconds, write what was seen, and say whether all hold.

    Parameters
    ----------
    names : sequence of str
        Tables; of these the ones whose code has changed, or all if `everything`.
    budget : float
        CPU seconds of both sides. At least one stratum of every table is computed within it, as
        far as costs are known, and more as it allows.
    say : callable
        Is given a line per table.
    against : str, optional
        The commit to compare with, in place of the last one that was verified.
    everything : bool
        Also tables that are current: a tenth of their strata, another one each week, against the
        stored runs.
    whole : bool
        With `everything`: all strata.

    Raises
    ------
    ValueError
        Where git, the history or a commit is not there.
    """
    jobs = _within(budget, _jobs(names, say, against, everything, whole))
    held = True
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        workers = {"": stack.enter_context(worker(_ROOT))}
        for commit in sorted({job.against for job in jobs} - {STORED}):
            tree = export(commit, Path(folder) / commit)
            for job in jobs:
                _refuse_other_code(job, commit, tree, forced=against is not None)
            workers[commit] = stack.enter_context(worker(tree))
        spent = 0.0
        for i, job in enumerate(jobs):
            first = job.table.name not in {each.table.name for each in jobs[:i]}
            if not first and spent + job.seconds > budget:
                continue
            entry = compare_stratum(job, workers)
            if entry is None:
                held = False
                continue
            spent += entry.cpu_seconds
            _append(job.table.name, entry)
            held = held and entry.how != "outside"
            label = f"{job.table.name}, stratum {job.stratum.number} of {job.of}"
            named = f": {'; '.join(entry.named[:3])}" if entry.named else ""
            say(f"{label}: {entry.how}{named} ({entry.cpu_seconds:.1f} CPU-s)")
    return held


def _jobs(
    names: Sequence[str],
    say: Callable[[str], None],
    against: str | None,
    everything: bool,
    whole: bool,
) -> list[Job]:
    """Return what could be computed, strata that this code has not seen yet first."""
    found = []
    for name in names:
        table = results.load(name)
        state, why = table.state()
        if table.command.split()[:2] != ["conceptnb", "reproduce"]:
            continue
        if state == "broken" and not table.verified[-1:]:
            say(f"{name}: broken ({why}): restore it, or compute it again")
            continue
        entries = [entry for entry in table.verified if entry.how != "outside"]
        last = entries[-1] if entries else table.computed
        same = last.code == code_of(last.modules)
        if same and not everything and state != "unverified":
            continue
        try:
            plan = find_plan(name, table.command)
        except (ImportError, OSError) as missing:
            say(f"{name}: not verified, {missing}")
            continue
        cells = strata(plan)
        seen = {k for e in table.verified if e.code == code_of(plan.modules()) for k in e.strata}
        week = date.today().isocalendar().week
        for cell in cells:
            if everything and not whole and (cell.number + week) % _PARTS:
                continue
            if str(cell.number) in seen and not everything:
                continue
            compared = against or (STORED if same else last.commit)
            sides = 1 if compared == STORED else 2
            seconds = sides * run_seconds(table, cell, plan)
            found.append(Job(table, plan, cell, len(cells), compared, seconds))
    return found


def run_seconds(table: Result, cell: Stratum, plan: Plan) -> float:
    """Return the CPU seconds that a run of a stratum is known, or else estimated to take."""
    known = [e.strata[str(cell.number)] for e in table.verified if str(cell.number) in e.strata]
    if known:
        return known[-1]
    average = table.cpu_seconds / sum(each.runs for each in strata(plan))
    return min(_SAMPLED_SECONDS, average) if cell.sampled else average


def _within(budget: float, jobs: list[Job]) -> list[Job]:
    """Return jobs in the order in which they are done: one of every table, then the others.

    Which come first is drawn by the digest of the code; of tables whose runs take long the
    cheapest.
    """
    by_table: dict[str, list[Job]] = {}
    for job in jobs:
        by_table.setdefault(job.table.name, []).append(job)
    share = budget / max(len(by_table), 1)
    first, rest = [], []
    for name, own in by_table.items():
        random.Random(_draw(own[0])).shuffle(own)
        cheap = [job for job in own if job.seconds <= 2 * share]
        chosen = cheap[0] if cheap else min(own, key=lambda job: job.seconds)
        first.append(chosen)
        rest += [job for job in own if job is not chosen]
        assert name == chosen.table.name
    random.Random(repr([_draw(job) for job in first])).shuffle(rest)
    return sorted(first, key=lambda job: job.seconds) + rest


def _draw(job: Job) -> str:
    return f"{code_of(job.plan.modules())} {job.table.name}"


def compare_stratum(job: Job, workers: dict[str, "_Worker"]) -> Verified | None:
    """Return what is seen of one job, None where a side could not compute it."""
    draw = f"{_draw(job)} {job.stratum.number}"
    words = job.words(draw)
    sides = [workers[""]] + ([] if job.against == STORED else [workers[job.against]])
    for side in sides:
        side.ask(words)
    answers = [side.answer() for side in sides]
    errors = [answer["error"] for answer in answers if "error" in answer]
    if errors:
        print(f"{job.table.name}, stratum {job.stratum.number}: {errors[0]}", file=sys.stderr)
        return None
    rows = answers[0]["rows"]
    others = answers[1]["rows"] if len(answers) > 1 else stored_runs(job.table, rows)
    how, largest, named = _judged(job.table, rows, others)
    own = round(answers[0]["cpu_seconds"], 2)
    both = sum(answer["cpu_seconds"] for answer in answers)
    return Verified(
        **signed(job.plan.modules(), both),
        against=job.against,
        strata={str(job.stratum.number): own},
        of=job.of,
        how=how,
        largest=largest,
        named=named,
    )


def _judged(
    table: Result, rows: Sequence[Row], others: Sequence[Row]
) -> tuple[How, float, list[str]]:
    if without_times(rows) == without_times(others):
        return "equal", 0.0, []
    found = differences_in_tolerances(table, rows, others)
    largest = float(max(found.values(), default=0.0))
    if largest <= 1:
        return "within", round(largest, 3), []
    named = [f"{c} by {size:.3g} tolerances" for c, size in found.items() if size > 1]
    return "outside", min(round(largest, 3), 1e9), named


def _append(name: str, entry: Verified) -> None:
    """Write an entry to a table's ledger; what the same code saw against the same is one entry."""
    table = results.load(name)
    before, last = list(table.verified[:-1]), next(iter(table.verified[-1:]), None)
    if last is not None and (last.code, last.against, last.commit) == (
        entry.code,
        entry.against,
        entry.commit,
    ):
        order = ["equal", "within", "outside"]
        entry = dataclasses.replace(
            entry,
            strata={**last.strata, **entry.strata},
            how=max(last.how, entry.how, key=order.index),
            largest=max(last.largest, entry.largest),
            cpu_seconds=round(last.cpu_seconds + entry.cpu_seconds, 1),
            named=[*last.named, *entry.named],
        )
    elif last is not None:
        before = [*before, last]
    kept = dataclasses.replace(table, verified=[*before, entry])
    results.save(kept, results.folder() / f"{name}.json")


def _refuse_other_code(job: Job, commit: str, tree: Path, forced: bool) -> None:
    entries = [entry for entry in job.table.verified if entry.how != "outside"]
    last = entries[-1] if entries else job.table.computed
    if job.against != commit or forced or code_of(last.modules, tree) == last.code:
        return
    raise ValueError(
        f"{job.table.name}: commit {commit[:7]} does not hold the code that was verified: name one "
        "that does with --against"
    )


def export(commit: str, folder: Path) -> Path:
    """Write the package and its tables as of a commit to a folder."""
    words = ["git", "archive", commit, "conceptnb", "results", "pyproject.toml"]
    try:
        done = subprocess.run(words, cwd=_ROOT, capture_output=True, check=True)
    except FileNotFoundError:
        raise ValueError("verifying compares two commits and needs git: install it") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode().strip().splitlines()[-1:]
        raise ValueError(
            f"commit {commit[:7] or '(none)'} cannot be read ({' '.join(said)}): verify in a clone "
            "with its history (`git fetch --unshallow`), or name a commit with --against"
        ) from None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@dataclass(frozen=True)
class _Worker:
    process: "subprocess.Popen[str]"

    def ask(self, words: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the worker has stopped"}


@contextmanager
def worker(tree: Path) -> Iterator[_Worker]:
    """Run a worker with the package of a tree, on one thread."""
    environment = dict(os.environ, PYTHONPATH=str(tree), OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    words = [sys.executable, "-P", str(Path(__file__).with_name("one_run.py")), str(tree)]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=tree,
    ) as process:
        try:
            yield _Worker(process)
        finally:
            process.kill()
