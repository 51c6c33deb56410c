"""``conceptnb learn``: from tables to a report that opens offline, and a learner that applies."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from conceptnb.commands.cli import main
from conceptnb.core.example_data import LOOKED_FOR, write_environments
from conceptnb.core.scores import mcc
from conceptnb.learning import ConceptLearner
from conceptnb.learning.environment_tables import learn_concepts, read_environments

LOOKED = [f"{name}={','.join(concepts)}" for name, concepts in LOOKED_FOR.items()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table with an identifier, some missing codes and a hostile name, and what is made of it."""
    folder = tmp_path_factory.mktemp("learn")
    write_environments(folder / "beans.csv")
    rows = pd.read_csv(folder / "beans.csv", dtype=str)
    rows.insert(1, "site", "north")
    rows["row"] = np.arange(len(rows))
    rows.loc[3, "sensor_2"] = "-999"
    rows.loc[4, "sensor_3"] = ""
    rows = rows.replace("sour", "<b>$\\frac{x$</b>")
    rows.to_csv(folder / "beans.csv", index=False)
    looked = [word.replace("sour", "<b>$\\frac{x$</b>") for word in LOOKED]
    words = ["learn", str(folder / "beans.csv"), "--out", str(folder / "out"), "--ids", "site"]
    words += ["--base", "any", "--missing", "-999", "--looked-for", *looked]
    assert main(words) == 0
    return folder, words


class Page(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, source):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_the_report_needs_no_other_file_and_says_what_speaks_against_it(made):
    source = (made[0] / "out" / "report.html").read_text(encoding="utf-8")
    page = Page(source)
    tags = [tag for tag, _ in page.found]
    assert "script" not in tags and "link" not in tags and "img" not in tags
    assert not re.search(r"url\((?!#)", source)
    assert all("href" not in a and "src" not in a for tag, a in page.found if tag != "svg")
    assert "prefers-color-scheme: dark" in source
    [figure] = [a for tag, a in page.found if tag == "svg"]
    assert figure["role"] == "img"
    assert "dark and mild" in figure["aria-label"]
    assert "<b>" not in source
    assert "1,998 rows of 7 columns, in 5 environments" in page.text.replace("\n", " ")
    assert "2 rows with missing values were left out" in page.text
    assert "'row' looks like an index" in page.text
    assert "from conceptnb.learning import ConceptLearner" in page.text
    assert "--missing -999" in page.text


def test_the_learner_and_its_program_give_the_same_valuations_in_any_order(made):
    folder, _ = made
    kept = pd.read_csv(folder / "out" / "valuations.csv")
    names = ["roast", "acidity"]
    assert list(kept) == ["environment", *names]  # by the index, nothing overlaps with the base
    rows = pd.read_csv(folder / "beans.csv").drop(index=[3, 4])
    assert kept["environment"].tolist() == rows["environment"].tolist()
    rows[rows.columns[::-1]].to_csv(folder / "new.csv", index=False)
    done = subprocess.run(
        [sys.executable, str(folder / "out" / "apply.py"), str(folder / "new.csv")],
        capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    (folder / "found.csv").write_text(done.stdout)
    again = pd.read_csv(folder / "found.csv")
    np.testing.assert_allclose(again, kept[names], atol=1e-5)
    assert ConceptLearner.load(folder / "out" / "concepts.safetensors").n_features_in_ == 7


def test_warnings_come_before_the_fit(made, capsys, monkeypatch):
    def stop(*_, **__):
        raise ValueError("stopped")

    monkeypatch.setattr("conceptnb.learning.environment_tables.learn_concepts", stop)
    assert main([*made[1], "--force"]) == 2
    said = capsys.readouterr().out
    assert "warning: 'row' looks like an index" in said
    assert "warning: 2 rows with missing values" in said
    assert main(made[1]) == 2
    assert "exists" in capsys.readouterr().err


def test_several_files_are_environments_and_the_first_is_the_base(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    truth = write_environments("beans.csv")
    rows = pd.read_csv("beans.csv")
    for name, part in rows.groupby("environment", sort=False):
        part.drop(columns="environment").to_csv(f"{name}.csv", index=False)
    files = [f"{name}.csv" for name in ("any", *LOOKED_FOR)]
    assert main(["learn", *files, "--out", "a", "--looked-for", *LOOKED]) == 0
    assert "'any', is taken as the base" in capsys.readouterr().out
    kept = pd.read_csv("a/valuations.csv")
    errors = [f"{name} (standard error)" for name in ("roast", "acidity")]
    assert list(kept) == ["environment", "roast", "acidity", *errors]
    assert (kept[errors] > 0).all(axis=None)
    assert mcc(truth, kept[["roast", "acidity"]]) > 0.99
    assert kept["environment"].tolist() == rows["environment"].tolist()
    for name, part in rows.groupby("environment", sort=False):
        np.save(f"{name}.npy", part.drop(columns="environment").to_numpy())
    files = [file.replace("csv", "npy") for file in files]
    assert main(["learn", *files, "--out", "b"]) == 0
    assert "Nothing says what was looked for" in capsys.readouterr().out
    assert list(pd.read_csv("b/valuations.csv"))[:5] == ["environment", *LOOKED_FOR]


GOOD = "environment,a,b\n" + "any,1.5,2\nany,2,1\ndark,3,1\ndark,1,4\n" * 20


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (GOOD + "dark,,1\n", [], ["'a', row 82", "'' is no number", "--missing"]),
        (GOOD + 'dark,"1,5",1\n', [], ["'a', row 82", "with a point"]),
        (GOOD + "dark,inf,1\n", ["--missing", "-999"], ["'a', row 82", "'inf'"]),
        (GOOD + "dark,seven,1\n", ["--missing"], ["'a', row 82", "'seven'", "--ids a leaves"]),
        (GOOD, ["--ids", "c"], ["mine.csv", "['c']"]),
        (GOOD, ["--environment", "where"], ["mine.csv has no column 'where'", "--environment"]),
        (GOOD, ["--missing", "1", "2", "3", "1.5"], ["no row or no column is left"]),
        (GOOD, ["--ids", "a", "b"], ["no row or no column is left"]),
        (GOOD.replace("1.5", "2").replace(",3,", ",2,").replace(",1,", ",2,"), [],
         ["['a'] hold one value only", "--ids a"]),
        (GOOD, ["--base", "none"], ["--base 'none'", "'dark'"]),
        (GOOD, ["--looked-for", "light=x"], ["--looked-for 'light=x'", "'dark'"]),
        (GOOD + "mild,1,2\n" * 20, ["--looked-for", "dark=x"], ["nothing of ['mild']"]),
        (GOOD + "dark,1e12,1\n", [], ["'a', row 82", "1e+12 is huge", "median"]),
        (GOOD + "mild,1,2\n", [], ["{'mild': 1} are too few rows"]),
        (GOOD + "mild,,2\n" * 9 + "mild,1,2\n", ["--missing"], ["9 were left out", "{'mild': 1}"]),
        (GOOD.replace("dark", "any"), [], ["all rows are of the environment 'any'"]),
        (GOOD.replace(",", ";"), [], ["columns are separated by ';' or tabs"]),
        (GOOD.replace(",", "\t"), [], ["columns are separated by ';' or tabs"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(content, more, words, tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    assert main(["learn", str(path), "--out", str(tmp_path / "out"), *more]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said


def test_a_table_in_utf_16_is_refused_with_a_way_that_the_command_has(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text(GOOD, encoding="utf-16")
    assert main(["learn", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "is UTF-16: save it as UTF-8" in capsys.readouterr().err


def test_what_is_refused_before_torch_leaves_no_folder(tmp_path):
    (tmp_path / "few.csv").write_text("environment,a\n" + "any,1\ndark,2\n" * 5)
    program = (
        "import sys; from conceptnb.commands.cli import main; status = main(sys.argv[1:]);"
        + ("print(status, 'torch' in sys.modules)")
    )
    words = ["learn", str(tmp_path / "few.csv"), "--out", str(tmp_path / "new" / "report")]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2 False"
    assert "too few rows" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["npy", "safetensors"])
def test_the_program_reads_the_kind_of_file_that_was_learned_from(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_environments("beans.csv")
    save = {"npy": np.save, "safetensors": lambda f, x: save_file({"x": x}, f)}[kind]
    files = []
    for name, part in pd.read_csv("beans.csv").groupby("environment", sort=False):
        numbers = np.ascontiguousarray(part.drop(columns="environment").to_numpy(float))
        files.append(f"{name}.{kind}")
        save(files[-1], numbers)
    assert main(["learn", *files, "--out", "r", "--ids", "x2"]) == 0
    assert f"NEW.{kind}" in Path("r/apply.py").read_text()
    done = subprocess.run(
        [sys.executable, "r/apply.py", files[0]], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    again = pd.read_csv(io.StringIO(done.stdout))
    kept = pd.read_csv("r/valuations.csv")
    kept = kept[kept["environment"] == "any"][list(again)]
    np.testing.assert_allclose(again, kept, atol=1e-5)


def test_tables_that_do_not_fit_together_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,y\n1,2\n")
    Path("b.csv").write_text("x,z\n1,2\n")
    Path("sub").mkdir()
    Path("sub/a.csv").write_text("x,y\n1,2\n")
    Path("a.txt").write_text("x,y\n1,2\n")
    for files, said in [
        (["a.csv", "b.csv"], "b.csv: not every table has the columns ['y', 'z']"),
        (["a.csv", "sub/a.csv"], "different names"),
        (["a.txt"], "a table is .csv, .parquet, .npy or .safetensors, not .txt"),
        (["a.parquet"], "a.parquet is no file"),
        (["sub"], "sub is a folder"),
    ]:
        assert main(["learn", *files, "--out", "r"]) == 2
        assert said in capsys.readouterr().err


def test_parquet_needs_a_reader_and_says_which(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for library in ("pyarrow", "fastparquet"):
        monkeypatch.setitem(sys.modules, library, None)
    Path("mine.parquet").write_bytes(b"PAR1")
    assert main(["learn", "mine.parquet", "--out", "r"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("conceptnb learn: mine.parquet: parquet needs pyarrow (pip install")
    assert said.endswith("save it as CSV\n")
    assert said.count("\n") == 1


def parquet(monkeypatch, frame):
    """Let pandas find this frame in a parquet file, whatever is installed."""
    Path("mine.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame)


def test_a_parquet_file_is_learned_from_as_its_csv_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_environments("mine.csv", rows=40)
    words = ["--looked-for", *LOOKED, "--base", "any"]
    assert main(["learn", "mine.csv", "--out", "a", *words]) == 0
    parquet(monkeypatch, pd.read_csv("mine.csv"))
    assert main(["learn", "mine.parquet", "--out", "b", *words]) == 0
    first, second = (pd.read_csv(f"{out}/valuations.csv") for out in "ab")
    pd.testing.assert_frame_equal(first, second)


def test_components_are_chosen_by_held_out_loss(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    truth = write_environments("beans.csv")
    words = ["learn", "beans.csv", "--looked-for", *LOOKED, "--components"]
    assert main([*words, "2", "5", "--out", "r"]) == 0
    page = Page(Path("r/report.html").read_text(encoding="utf-8"))
    said = re.search(r"Learned from (\d+) principal\s+components", page.text)
    kept = int(said[1])
    table = read_environments("beans.csv", base="any")
    tried = {k: learn_concepts(table, LOOKED_FOR, components=[k]).learner for k in (2, 5)}
    assert kept == min(tried, key=lambda k: tried[k].held_out_loss_)
    assert "--components 2 5" in page.text
    done = subprocess.run(
        [sys.executable, "r/apply.py", "beans.csv"],
        capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    Path("found.csv").write_text(done.stdout)
    found, kept = pd.read_csv("found.csv"), pd.read_csv("r/valuations.csv")
    np.testing.assert_allclose(found, kept[["roast", "acidity"]], atol=1e-5)
    assert mcc(truth, found) > 0.9
    assert main([*words, "5", "--shrinkage", "0.5", "--out", "shrunk"]) == 0
    page = Page(Path("shrunk/report.html").read_text(encoding="utf-8"))
    assert "5 principal components, with a shrinkage of 0.5" in page.text.replace("\n", " ")
    assert "There is none here: standard errors need a linear encoder" in page.text
    assert list(pd.read_csv("shrunk/valuations.csv")) == ["environment", "roast", "acidity"]
    assert main([*words, "9", "--out", "s"]) == 2
    assert "components=[9] must lie between 2 (concepts) and 6 (columns)" in capsys.readouterr().err


def test_gaps_and_columns_without_names_in_a_parquet_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(80, 3))
    rows[4, 1] = np.nan
    frame = pd.DataFrame(rows).assign(environment=["any", "dark"] * 40)
    parquet(monkeypatch, frame)
    assert main(["learn", "mine.parquet", "--out", "r"]) == 2
    said = capsys.readouterr().err
    assert "mine.parquet, column '1', row 5: 'nan' is no number" in said and "--missing" in said
    assert main(["learn", "mine.parquet", "--out", "r", "--missing"]) == 0
    assert len(pd.read_csv("r/valuations.csv")) == 79
    for name, part in frame.groupby("environment"):
        np.save(f"{name}.npy", part[[0, 1, 2]].to_numpy())
    assert main(["learn", "any.npy", "dark.npy", "--out", "s"]) == 2
    assert "any.npy, column 'x1', row 3: 'nan' is no number" in capsys.readouterr().err


def test_a_real_parquet_file(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    write_environments("mine.csv", rows=40)
    pd.read_csv("mine.csv").to_parquet("mine.parquet")
    assert main(["learn", "mine.parquet", "--out", "r"]) == 0


def test_names_with_half_a_formula_are_drawn_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(80, 3))
    frame = pd.DataFrame(rows, columns=["$x", "b$_", "$\\frac{c$"])
    frame.assign(environment=["$any_{", "dark"] * 40).to_csv("mine.csv", index=False)
    assert main(["learn", "mine.csv", "--out", "r", "--looked-for", "dark=$\\frac{x$"]) == 0
    assert "$\\frac{x$" in Page(Path("r/report.html").read_text(encoding="utf-8")).text


def test_a_concept_without_a_name_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(GOOD)
    for concepts in ("", "a,,b", "a, "):
        words = ["learn", "mine.csv", "--out", "r", "--looked-for", f"dark={concepts}"]
        assert main(words) == 2
        said = capsys.readouterr().err
        assert f"--looked-for 'dark={concepts}': a concept is without a name" in said
