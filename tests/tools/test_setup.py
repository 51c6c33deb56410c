"""Setting up refuses what it does not know, survives what happens, deletes nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import setup


@pytest.mark.parametrize("arguments", [["--fast"], ["one", "two"]])
def test_what_is_no_folder_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        setup.main(arguments)
    assert left.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err


def test_a_folder_of_other_things_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit) as left:
        setup.main([str(tmp_path)])
    assert left.value.code == 2
    assert "holds something else" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


class Machine:
    """Stands for the commands that a set-up runs; it can be switched off before any of them."""

    def __init__(self, stops_at=None, fails=()):
        self.stops_at, self.fails, self.ran = stops_at, fails, []

    def run(self, command, lock):
        if len(self.ran) == self.stops_at:
            raise SystemExit("killed")  # what follows would not run, and neither does a handler
        self.ran.append(" ".join(command))
        if "venv" in command:
            made = Path(command[-1])
            (made / "bin").mkdir(parents=True)
            (made / "bin" / "python").symlink_to(sys.executable)
            (made / "pyvenv.cfg").write_text(f"command = {made}\n")
        elif "install" in command:
            scripts = Path(command[0]).parent
            (scripts / "conceptnb").write_text(f"#!{scripts / 'python'}\n")
        return not any(word in self.ran[-1] for word in self.fails)


@pytest.fixture
def set_up(tmp_path, monkeypatch):
    """Run a set-up of ``.venv`` in an empty checkout; the commands that it runs are pretended."""
    (tmp_path / "requirements.lock").write_text("numpy==2.0\nnvidia-cublas==1 ; linux\n")
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(setup, "_ROOT", tmp_path)
    monkeypatch.setattr(setup, "_LOCK", tmp_path / "requirements.lock")
    monkeypatch.delenv("TORCH", raising=False)

    def run(**kwargs):
        machine = Machine(**kwargs)
        monkeypatch.setattr(setup, "_run", machine.run)
        setup.main([])
        return machine.ran

    run.environment = tmp_path / ".venv"
    return run


def is_whole(environment):
    script = (environment / "bin" / "conceptnb").read_text()
    return script == f"#!{environment}/bin/python\n" and (environment / "made-from").is_file()


def test_an_environment_is_made_once_and_knows_where_it_is(set_up):
    assert len(set_up()) == 4
    assert is_whole(set_up.environment)
    assert str(set_up.environment) in (set_up.environment / "pyvenv.cfg").read_text()
    assert set_up() == []
    assert sorted(p.name for p in set_up.environment.parent.glob(".venv*")) == [
        ".venv", ".venv.lock",
    ]  # fmt: skip


@pytest.mark.parametrize("stops_at", range(4))
@pytest.mark.parametrize("there", [False, True])
def test_a_set_up_that_was_killed_is_done_by_the_next(set_up, stops_at, there):
    if there:  # of another checkout's root: moved, or copied
        set_up()
        stamp = set_up.environment / "made-from"
        stamp.write_text(stamp.read_text().replace(str(set_up.environment), "/elsewhere/.venv"))
    with pytest.raises(SystemExit, match="killed"):
        set_up(stops_at=stops_at)
    assert (set_up.environment / "bin" / "conceptnb").is_file() == there, "the old one still works"
    set_up()
    assert is_whole(set_up.environment)
    assert set_up() == []


@pytest.mark.parametrize("half", [["pyvenv.cfg"], ["pyvenv.cfg", "bin/pip", "made-from"]])
def test_half_an_environment_is_made_again(set_up, half):
    for name in half:
        (set_up.environment / name).parent.mkdir(parents=True, exist_ok=True)
        (set_up.environment / name).write_text("version = 3.11")
    set_up()
    assert is_whole(set_up.environment)


@pytest.mark.parametrize("stops_at", [None, 0, 1])
def test_a_new_lock_is_installed_into_what_is_there(set_up, stops_at, tmp_path):
    set_up()
    (set_up.environment / "mine").touch()
    (tmp_path / "requirements.lock").write_text("numpy==2.1\n")
    if stops_at is None:
        assert not any("venv --" in command for command in set_up())
        assert (set_up.environment / "mine").exists()
    else:
        with pytest.raises(SystemExit, match="killed"):
            set_up(stops_at=stops_at)
        set_up()
    assert is_whole(set_up.environment)


def test_another_python_names_what_was_added_before_it_takes_it_away(set_up, monkeypatch, capsys):
    set_up()
    for name in ("numpy-2.0", "conceptnb-1.0", "My_Thing-0.3"):
        folder = set_up.environment / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info"
        folder.mkdir(parents=True)
    monkeypatch.setattr(setup.sys, "version", "3.99")
    with pytest.raises(SystemExit, match="killed"):
        set_up(stops_at=0)
    assert "uv pip install My_Thing==0.3\n" in capsys.readouterr().out
    assert folder.exists()


def test_a_python_without_ensurepip_is_told_what_to_install(set_up, monkeypatch):
    monkeypatch.setattr(setup.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        set_up()
    assert not set_up.environment.exists()


def test_where_uv_fails_pip_installs(set_up):
    ran = set_up(fails=["bin/uv"])
    assert sum("-m pip install" in command for command in ran) == 3
    assert is_whole(set_up.environment)


def test_where_all_fails_the_old_one_stays(set_up, tmp_path):
    set_up()
    (set_up.environment / "made-from").write_text("{}")
    with pytest.raises(SystemExit, match="set-up failed"):
        set_up(fails=["install"])
    assert (set_up.environment / "bin" / "conceptnb").is_file()
    assert not (tmp_path / ".venv.new").exists()


def test_the_build_without_cuda_is_kept_once_it_was_asked_for(set_up, monkeypatch, capsys):
    monkeypatch.setenv("TORCH", "cpu")
    ran = set_up()
    assert any("--torch-backend cpu" in command for command in ran)
    assert "nvidia" not in (set_up.environment / "requirements.txt").read_text()
    monkeypatch.delenv("TORCH")
    assert set_up() == []
    monkeypatch.setenv("TORCH", "default")
    with pytest.raises(SystemExit, match="killed"):
        set_up(stops_at=0)
    monkeypatch.setenv("TORCH", "cpu")
    (set_up.environment / "made-from").write_text("{}")
    with pytest.raises(SystemExit, match="set-up failed"):
        set_up(fails=["bin/uv"])
    assert "can be reached" in capsys.readouterr().err
    monkeypatch.setenv("TORCH", "tpu")
    with pytest.raises(SystemExit):
        set_up()
    assert "there are default, cpu" in capsys.readouterr().err


WAITS = """
import sys, pathlib
from tools import setup
with setup._alone(pathlib.Path(sys.argv[1])) as lock:
    child = "import sys; print('in', flush=True); sys.stdin.read()"
    setup._run([sys.executable, "-c", child], lock)
"""


def test_two_at_once_wait_for_each_other_and_for_what_a_killed_one_left_running(tmp_path):
    command = [sys.executable, "-c", WAITS, str(tmp_path / ".venv")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    root = Path(__file__).resolve().parents[2]
    first = subprocess.Popen(command, cwd=root, **pipes)
    assert first.stdout.readline() == "in\n"
    first.kill()
    first.wait()  # its child is alive, and might still be writing
    second = subprocess.Popen(command, cwd=root, **pipes)
    assert "waiting for it" in second.stdout.readline()
    first.stdin.close()
    assert second.stdout.readline() == "in\n"
    second.communicate()


def test_the_stamp_is_written_last_and_at_once(set_up):
    set_up()
    stamp = json.loads((set_up.environment / "made-from").read_text())
    assert stamp["folder"] == str(set_up.environment)
    assert not (set_up.environment / "made-from.part").exists()
