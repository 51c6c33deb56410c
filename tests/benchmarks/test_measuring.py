"""Benchmarks: what a ratio is, what is written, and that every part can be measured."""

from __future__ import annotations

import importlib
import itertools
import json
import re

import pytest

from benchmarks import __main__ as command
from benchmarks.measure import Benchmark, cpu_seconds, measured


def costs(*values):
    """Return a way whose first, unmeasured call costs nothing sensible."""
    given = itertools.chain([float("nan")], values)
    return lambda: next(given)


def test_a_ratio_is_the_other_cost_divided_by_this_one():
    benchmark = Benchmark("new", "old", costs(1.0, 2.0, 1.0), costs(4.0, 6.0, 5.0), repeats=3)
    row = measured("core", benchmark)
    assert (row["ratio_median"], row["ratio_min"], row["ratio_max"]) == (4.0, 3.0, 5.0)
    assert (row["part"], row["what"], row["against"], row["repeats"]) == ("core", "new", "old", 3)


@pytest.mark.parametrize(("repeats", "message"), [(0, "repeats=0"), (1, "do more work")])
def test_what_cannot_be_measured_is_refused(repeats, message):
    with pytest.raises(ValueError, match=message):
        measured("core", Benchmark("new", "old", costs(0.0), costs(1.0)), repeats)


def test_costs_are_cpu_seconds_per_unit(monkeypatch):
    clock = iter([10.0, 16.0])
    monkeypatch.setattr("benchmarks.measure.time.process_time", lambda: next(clock))
    assert cpu_seconds(lambda: None, units=3)() == 2.0


def test_the_command_writes_its_table_where_it_is_told(tmp_path, monkeypatch, capsys):
    part = type("Part", (), {"benchmarks": lambda: [slow, fast]})
    slow = Benchmark("a", "b", costs(1.0), costs(2.0), repeats=1, at_least=5)
    fast = Benchmark("c", "d", costs(1.0), costs(9.0), repeats=1, at_least=5)
    monkeypatch.setattr(command.importlib, "import_module", lambda _: part)
    file = tmp_path / "ratios.json"
    assert command.main(["core", "--out", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "a against b: 2 (2 to 2) BELOW" in printed
    assert "c against d: 9 (9 to 9)\n" in printed
    kept = json.loads(file.read_text())
    assert [row["ratio_median"] for row in kept["rows"]] == [2.0, 9.0]
    assert kept["computed"]["cpu"] and kept["computed"]["versions"]["numpy"]
    assert "conceptnb.core.distributions" in kept["computed"]["modules"]


def test_without_a_name_all_parts_are_measured(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        command, "_measure", lambda parts, repeats: asked.extend(parts) or [{"ratio": 1.0}]
    )
    monkeypatch.setattr(command.results, "folder", lambda: tmp_path)
    assert command.main([]) == 0
    assert asked == command._parts()
    assert (tmp_path / "benchmarks.json").is_file()


def test_a_part_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit) as left:
        command.main(["kitchen"])
    assert left.value.code == 2
    assert re.search("PART: invalid choice: kitchen.*embeddings", capsys.readouterr().err)


@pytest.mark.parametrize("part", command._parts())
def test_every_part_has_benchmarks_with_two_ways(part):
    found = importlib.import_module(f"benchmarks.{part}").benchmarks()
    assert found
    for benchmark in found:
        assert callable(benchmark.run) and callable(benchmark.run_against)
        assert benchmark.what != benchmark.against and benchmark.repeats > 0
