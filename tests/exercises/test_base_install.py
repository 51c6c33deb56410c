"""The built package in an empty environment: the theory and its exercises without torch."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tools.book import editions
from tools.book.project import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
CHAPTERS = [c for c in PROJECT.chapters if c.stem[:2] in ("01", "02", "04", "05", "06", "07")]
KERNEL = ["nbclient", "ipykernel", "myst-nb"]  # what runs a notebook; none of them needs torch
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=300).execute()
nbformat.write(book, sys.argv[1])
"""


def run(*command, cwd=None):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment that holds the wheel and its base dependencies."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.is_file():
        pytest.skip("uv, with which `make setup` installs, is not in this environment")
    folder = tmp_path_factory.mktemp("base")
    source = folder / "source"
    shutil.copytree(
        PROJECT.root / "conceptnb",
        source / "conceptnb",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT.root / name, source)
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*wheel, "--wheel-dir", str(folder), str(source))
    (built,) = folder.glob("*.whl")
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    install = [str(uv), "pip", "install", "--quiet", "--python", str(environment)]
    done = subprocess.run(
        [*install, str(built), *KERNEL], capture_output=True, text=True, check=False
    )
    if done.returncode:
        assert re.search(r"error sending request|network was disabled", done.stderr), done.stderr
        pytest.skip(
            "the package index cannot be reached, and what is kept of it here is too little"
        )
    return environment / "bin" / "python"


@pytest.mark.slow
def test_the_environment_has_the_package_and_no_torch(python, tmp_path):
    code = (
        "import importlib.util as u, conceptnb; print(conceptnb.__file__)\n"
        "print([u.find_spec(name) for name in ('torch', 'open_clip', 'transformers')])"
    )
    where, heavy = run(str(python), "-c", code, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(python.parents[1])
    assert heavy == "[None, None, None]"


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.stem for c in CHAPTERS])
def test_the_theory_runs_and_its_exercises_check(chapter, python, tmp_path):
    (tmp_path / "results").symlink_to(PROJECT.root / "results")
    (notebook,) = editions.write(PROJECT, "lecturer", tmp_path, [chapter])
    run(str(python), "-c", EXECUTE, str(notebook), cwd=tmp_path)
    cells = nbformat.read(notebook, as_version=4).cells
    checked = [cell for cell in cells if "check.ex_" in cell.source and cell.cell_type == "code"]
    assert len(checked) >= 3
    for cell in checked:
        said = "".join(o.text for o in cell.outputs if o.get("name") == "stdout")
        assert "Right. " in said, cell.source
