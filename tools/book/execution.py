"""Execute each stale chapter once, with nbmake, in parallel.

The notebooks run as copies under ``.executing``. One that finishes without an error moves to
``_build/executed`` at once, with the fingerprint it ran under: an interrupted run keeps it.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conceptnb.common.files import write_text
from tools.book import fingerprints, pairs
from tools.book.project import Project

_SECONDS_PER_CELL = 600
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class _Job:
    """One chapter to execute under one fingerprint."""

    chapter: Path
    fingerprint: str
    seconds: float = 0.0  # of its last run: the longest are started first


def stale(project: Project) -> list[_Job]:
    """Return the chapters whose executed copy is missing or of another fingerprint."""
    jobs = []
    for chapter, fingerprint in fingerprints.of_chapters(project).items():
        stamp = _read_stamp(project, chapter)
        if stamp.get("fingerprint") != fingerprint or not executed(project, chapter).is_file():
            jobs.append(_Job(chapter, fingerprint, stamp.get("seconds", 0.0)))
    return sorted(jobs, key=lambda job: -job.seconds)


def execute(project: Project, workers: int = 2) -> list[Path]:
    """Execute what is stale, on one thread per worker; return the chapters that ran."""
    jobs = stale(project)
    if not jobs:
        return []
    folder = project.root / ".executing"  # nbmake collects nothing under a folder "_build"
    shutil.rmtree(folder, ignore_errors=True)
    # A settings file of its own keeps pytest from reading the project's.
    write_text(folder / "pytest.ini", "[pytest]\n")
    (folder / "notebooks").mkdir()
    paths = [folder / "notebooks" / f"{job.chapter.stem}.ipynb" for job in jobs]
    for path, job in zip(paths, jobs, strict=True):  # from the source: readers run the .ipynb
        source = job.chapter.read_text(encoding="utf-8")
        write_text(path, pairs.to_text(pairs.to_notebook(source, project)))
    keeper = _Keeper(project, folder / "notebooks", {job.chapter.stem: job for job in jobs})
    parallel = ["-n", str(min(workers, len(jobs))), "--maxschedchunk", "1"]
    options = ["-c", str(folder / "pytest.ini"), "-p", "no:cacheprovider", "-q", "--no-header"]
    nbmake = ["--nbmake", "--overwrite", "--nbmake-timeout", str(_SECONDS_PER_CELL)]
    os.environ.update(environment(project))
    status = pytest.main([*options, *nbmake, *parallel, *map(str, paths)], plugins=[keeper])
    if status != pytest.ExitCode.OK:
        failures = [
            f"{project.relative(keeper.jobs[stem].chapter)} failed: {error}"
            for stem, error in keeper.errors.items()
        ]
        raise RuntimeError("\n".join(failures) or f"nbmake stopped with status {int(status)}")
    return [job.chapter for job in jobs]


def executed(project: Project, chapter: Path) -> Path:
    """Return where the executed copy of a chapter lies."""
    return project.built / "executed" / "notebooks" / f"{chapter.stem}.ipynb"


def seconds(project: Project) -> dict[str, float]:
    """Return how long each executed chapter took, by its page."""
    stamps = {project.page(chapter): _read_stamp(project, chapter) for chapter in project.chapters}
    return {page: stamp["seconds"] for page, stamp in stamps.items() if "seconds" in stamp}


def environment(project: Project) -> dict[str, str]:
    """Return what the kernels find in their environment."""
    paths = [str(project.root), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),  # the package of this checkout
        "CONCEPTNB_SITE": "1",  # interactive figures take the form that the site shows
        "OMP_NUM_THREADS": "1",  # one notebook a core, rather than all cores for each
        "MKL_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",  # progress bars are for people who wait, not for pages
        "PYTHONWARNINGS": "ignore:IProgress not found",  # of tqdm without ipywidgets
    }


class _Keeper:
    """The pytest plugin that keeps each chapter as soon as it has passed."""

    def __init__(self, project: Project, folder: Path, jobs: dict[str, _Job]) -> None:
        self.project, self.folder, self.jobs = project, folder, jobs
        self.errors: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Move a passed notebook to its place and stamp it; remember a failed one."""
        stem = Path(report.location[0]).stem
        if report.failed:
            lines = _COLOUR.sub("", report.longreprtext).splitlines()
            said = [line.strip() for line in lines if line.strip(" ^-")]
            self.errors[stem] = said[-1] if said else "no message"
        elif report.when == "call":
            job = self.jobs[stem]
            target = executed(self.project, job.chapter)
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.folder / f"{stem}.ipynb").replace(target)
            stamp = {"fingerprint": job.fingerprint, "seconds": round(report.duration, 1)}
            write_text(_stamp(self.project, job.chapter), json.dumps(stamp) + "\n")


def _stamp(project: Project, chapter: Path) -> Path:
    return project.built / "executed" / "stamps" / f"{chapter.stem}.json"


def _read_stamp(project: Project, chapter: Path) -> dict[str, Any]:
    try:
        return json.loads(_stamp(project, chapter).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
