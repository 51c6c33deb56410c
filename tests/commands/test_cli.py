"""The command line: commands load when they are called, and say what went wrong."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import conceptnb
from conceptnb.commands.cli import COMMANDS, _Command, main
from conceptnb.commands.steer import _PROMPTS
from conceptnb.embeddings import clip
from conceptnb.steering.toy_corpora import CORPUS_KINDS

DEMO = (
    _Command("reproduce demo", "a_command_for_this_test", "Compute a demonstration."),
    _Command("other", "a_module_that_does_not_exist", "Never imported."),
)


@pytest.fixture
def ran(monkeypatch):
    """Install a command's module, and return the list of what it was run with."""
    calls = []
    module = types.ModuleType("a_command_for_this_test")

    def run(parser, words):
        parser.add_argument("--seeds", type=int, default=5)
        options = parser.parse_args(words)
        if options.seeds < 1:
            raise ValueError(f"seeds={options.seeds} has to be positive")
        calls.append(options.seeds)
        return 0

    module.run = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


def test_a_command_gets_its_own_arguments(ran):
    assert main(["reproduce", "demo", "--seeds", "2"], DEMO) == 0
    assert main(["reproduce", "demo"], DEMO) == 0
    assert ran == [2, 5]


def test_refused_input_is_a_message_and_not_a_trace(ran, capsys):
    assert main(["reproduce", "demo", "--seeds", "0"], DEMO) == 2
    assert capsys.readouterr().err == "conceptnb reproduce demo: seeds=0 has to be positive\n"
    assert ran == []


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--help"], "Never imported."),
        (["reproduce", "--help"], "Compute a demonstration."),
        (["reproduce", "demo", "--help"], "--seeds"),
        (["--version"], conceptnb.__version__),
    ],
)
def test_help_and_version_need_no_command_to_load(typed, shown, ran, capsys):
    with pytest.raises(SystemExit) as left:
        main(typed, DEMO)
    assert left.value.code == 0
    assert shown in capsys.readouterr().out


def test_words_that_only_begin_a_command_list_what_follows(capsys):
    assert main([], DEMO) == 0
    assert "reproduce" in capsys.readouterr().out
    assert main(["reproduce"], DEMO) == 0
    assert "Compute a demonstration." in capsys.readouterr().out


@pytest.mark.parametrize("typed", [["nonsense"], ["reproduce", "nonsense"], ["--nonsense"]])
def test_what_is_no_command_is_refused(typed, capsys):
    with pytest.raises(SystemExit) as left:
        main(typed, DEMO)
    assert left.value.code == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_command_of_the_book_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command.words.split(), "--help"])
    assert left.value.code == 0
    assert command.words in capsys.readouterr().out


def test_declared_choices_are_those_of_the_package():
    declared = {command.words: command.options for command in COMMANDS}
    assert declared["train-language-model"]["--corpus"]["choices"] == sorted(CORPUS_KINDS)
    assert declared["train-clip"]["kind"]["choices"] == [*clip.SMALL_KINDS]
    assert declared["steer"]["--prompt"]["choices"] == [*_PROMPTS]


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
