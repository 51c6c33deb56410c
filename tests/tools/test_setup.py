"""Setting up refuses what it does not know, and deletes nothing but environments."""

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


def test_an_environment_that_is_current_is_left_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(setup, "_run", lambda command: pytest.fail(f"ran {command}"))
    (tmp_path / "pyvenv.cfg").touch()
    (tmp_path / "made-from").write_text(setup._wanted())
    setup.main([str(tmp_path)])
    assert capsys.readouterr().out == ""
