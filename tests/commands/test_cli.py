"""The command line: commands load when they are called, and say what went wrong."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import conceptnb
from conceptnb.commands.cli import GROUP, LazyGroup, main
from conceptnb.commands.options import Several, command, option
from conceptnb.commands.reproduce import reproduce

WORDS = [
    *(w for w in GROUP.places if w != "reproduce"),
    *(f"reproduce {n}" for n in reproduce.commands),
]
DEMO = LazyGroup(
    "conceptnb",
    {"demo": "a_command_for_this_test:demo", "other": "a_command_for_this_test:other"},
    invoke_without_command=True,
)


@pytest.fixture
def ran(monkeypatch):
    """Install a command's module, and return the list of what it was run with."""
    calls = []
    module = types.ModuleType("a_command_for_this_test")

    def run(seeds, codes):
        if seeds < 1:
            raise ValueError(f"seeds={seeds} has to be positive")
        calls.append((seeds, codes))

    options = (option("--seeds", type=int, default=5), Several("--codes", may_be_empty=True))
    module.demo = command("demo", "Compute a demonstration.", *options)(run)
    module.other = command("other", "Another one.")(lambda: 3)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


def test_a_command_gets_its_own_arguments(ran):
    assert main(["demo", "--seeds", "2"], DEMO) == 0
    assert main(["demo"], DEMO) == 0
    assert main(["other"], DEMO) == 3
    assert ran == [(2, None), (5, None)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--codes a b --seeds 1", ["a", "b"]),
        ("--codes a --seeds 1 --codes b", ["a", "b"]),
        ("--codes -1 -.5 --seeds 1", ["-1", "-.5"]),
        ("--codes=a --seeds 1", ["a"]),
        ("--seeds 1 --codes", [""]),
        ("--codes --seeds 1", [""]),
    ],
)
def test_an_option_of_several_words_takes_all_up_to_the_next_option(words, found, ran):
    assert main(["demo", *words.split()], DEMO) == 0
    assert ran == [(1, found)]


def test_refused_input_is_a_message_and_not_a_trace(ran, capsys):
    assert main(["demo", "--seeds", "0"], DEMO) == 2
    assert capsys.readouterr().err == "conceptnb demo: seeds=0 has to be positive\n"
    assert ran == []


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--help"], "reproduce"),
        (["-h"], "learn concepts from your own tables"),
        (["reproduce", "--help"], "Tables 2 to 5"),
        (["reproduce", "synthetic", "--help"], "--seeds"),
        (["results", "verify", "--help"], "--budget"),
        (["--version"], conceptnb.__version__),
        ([], "reproduce"),
        (["reproduce"], "Tables 2 to 5"),
    ],
)
def test_help_and_version_are_success(typed, shown, capsys):
    assert main(typed) == 0
    assert shown in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("typed", [["nonsense"], ["reproduce", "nonsense"], ["--nonsense"]])
def test_what_is_no_command_is_refused(typed, capsys):
    assert main(typed) == 2
    assert "nonsense" in capsys.readouterr().err


def test_every_command_explains_itself_without_torch():
    code = (
        "import sys; from conceptnb.commands.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    assert main([*words.split(), '--help']) == 0, words\n"
        "print([n for n in ('torch', 'pandas', 'sklearn', 'matplotlib') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "", "reproduce", *WORDS], capture_output=True, check=True
    )
    said = done.stdout.decode()
    assert "[]" in said.splitlines()
    assert all(f"Usage: conceptnb {words} " in said for words in WORDS)


def test_importing_the_package_brings_nothing_heavy():
    code = (
        "import sys, conceptnb, conceptnb.commands.cli as _; "
        "heavy = ('torch', 'open_clip', 'transformers', "
        "'pandas', 'sklearn', 'matplotlib'); print([n for n in heavy if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_the_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "conceptnb", "--version"], capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == f"conceptnb {conceptnb.__version__}"


@pytest.mark.parametrize("words", [["--help"], ["results"], ["reproduce", "--help"]])
def test_a_reader_who_leaves_early_is_no_error(words):
    done = subprocess.run(
        [sys.executable, "-c", "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1); "
         "from conceptnb.commands.cli import main; sys.exit(main(sys.argv[1:]))", *words],
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, b"")
