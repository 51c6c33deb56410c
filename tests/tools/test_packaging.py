"""What an installation gets: the wheel's content, and what Binder installs under it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LICENCES = ("LICENSE", "LICENSE-text.md")


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "conceptnb", "results/*.json"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    listed_files = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for name in (
        *listed_files,
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
        "LICENSE-text.md",
    ):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / "source" / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", tmp_path, tmp_path / "source"], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    tracked = {name.replace("results/", "conceptnb/results/tables/") if name.startswith("results/")
               else name for name in listed_files}  # fmt: skip
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("conceptnb/")}
    assert held <= tracked
    assert [name for name in sorted(tracked - held) if not name.endswith(".md")] == []
    for name in (
        r"conceptnb/steering/models/.+/model\.safetensors",
        r"conceptnb/steering/models/.+/config\.json",
        r"conceptnb/steering/models/.+/tokenizer\.json",
        r"conceptnb/embeddings/clip/configs/.+\.json",
        r"conceptnb/embeddings/clip/weights/.+\.safetensors",
        r"conceptnb/embeddings/sentences/.+\.safetensors",
        r"conceptnb/results/paper_tables\.json",
    ):
        assert any(re.fullmatch(name, file) for file in held), name
    _check_installed(wheel, tmp_path)


def _check_installed(wheel: Path, folder: Path) -> None:
    """Shipped tables are read from the package and are current; own ones are in the folder."""
    zipfile.ZipFile(wheel).extractall(folder / "site")
    (folder / "work" / "results").mkdir(parents=True)
    (folder / "work" / "results" / "clip.json").write_text("{}")
    code = (
        "from conceptnb import results\n"
        "assert results.folder().samefile('results'), results.folder()\n"
        "others = [name for name in results.names() if name != 'clip']\n"
        "states = {t.name: t.state()[0] for t in map(results.load, others)}\n"
        "print(len(others), [n for n, s in states.items() if s == 'broken'])\n"
        "try: results.load('clip')\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder / "work", check=True, capture_output=True,
        text=True, env={"PYTHONPATH": str(folder / "site")},
    )  # fmt: skip
    counted, own = done.stdout.splitlines()
    assert counted == f"{len([*(ROOT / 'results').glob('*.json')]) - 1} []"
    assert own.startswith("results/clip.json" if not Path(own).is_absolute() else str(folder))


def test_binder_installs_what_the_package_needs():
    environment = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    installed = {re.split(r"[=<>]", name)[0] for name in environment["dependencies"]}
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["clip"], *extras["steering"], *extras["notebooks"]]
    names = {re.split(r"[\[=<>]", line)[0].replace("_", "-").lower() for line in needed}
    assert names - {"conceptnb", "torch"} <= installed
    assert "pytorch-cpu" in installed
