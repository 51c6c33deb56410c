"""``conceptnb directions``: from labelled embeddings or images to directions that apply."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.numpy import save_file
from sklearn.decomposition import PCA

from conceptnb.commands.cli import main
from conceptnb.core.example_data import write_images
from conceptnb.embeddings.directions.estimator import ConceptDirections
from conceptnb.embeddings.own_images import load_directions, save_directions

ROWS = 200


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Embeddings in which the first coordinate says the kind, and none the day."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=ROWS)
    Z = rng.normal(size=(ROWS, 6))
    Z[:, 0] += 6 * kind
    labels = pd.DataFrame({"kind": np.array(["<low>", "middle", "high"])[kind]})
    labels["day"] = rng.permutation(np.resize(["Mon", "Tue"], ROWS))
    labels.to_csv(folder / "labels.csv", index=False)
    np.save(folder / "Z.npy", Z)
    return folder, Z


def applied(folder, given):
    program = [sys.executable, str(folder / "apply.py"), str(given)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=folder.parent)
    return pd.read_csv(io.StringIO(done.stdout))


def test_every_format_gives_the_same_report_and_directions(rows):
    folder, Z = rows
    save_file({"Z": Z}, folder / "Z.safetensors")
    pd.DataFrame(Z, columns=list("abcdef")).to_csv(folder / "Z.csv", index=False)
    found = {}
    for name in ("Z.npy", "Z.safetensors", "Z.csv"):
        out = folder / f"of {name}"
        words = ["directions", str(folder / name), "--labels", str(folder / "labels.csv")]
        assert main([*words, "--out", str(out)]) == 0
        found[name] = load_directions(out / "directions.safetensors")
        np.testing.assert_allclose(
            found[name]["kind"].transform(Z), found["Z.npy"]["kind"].transform(Z)
        )
    new = pd.read_csv(folder / "Z.csv")[list("fedcba")]
    new.to_csv(folder / "new.csv", index=False)  # columns are taken by name
    read = applied(folder / "of Z.csv", folder / "new.csv")
    pd.testing.assert_frame_equal(read, applied(folder / "of Z.npy", folder / "Z.npy"))
    kind = found["Z.npy"]["kind"]
    cosine = abs(kind.directions_[0, 0]) / np.linalg.norm(kind.directions_[0])
    assert cosine > 0.95
    page = (folder / "of Z.npy" / "report.html").read_text(encoding="utf-8")
    assert "<low>" not in page
    assert "&#x27;day&#x27; is not read better than by chance" in page
    assert "href" not in page.split("<svg")[0] and "<script" not in page


def test_the_program_reads_the_values_that_the_report_has(rows):
    folder, _ = rows
    words = ["directions", str(folder / "Z.npy"), "--labels", str(folder / "labels.csv")]
    assert main([*words, "--out", str(folder / "again"), "--factors", "kind"]) == 0
    kept = pd.read_csv(folder / "again" / "values.csv")
    pd.testing.assert_series_equal(
        applied(folder / "again", folder / "Z.npy")["kind"], kept["kind, read"], check_names=False
    )
    judged = kept[kept.half == "judged"]
    assert len(judged) == ROWS // 2
    right = judged["kind, read"] == judged["kind"]
    assert right.mean() > 0.9
    np.testing.assert_allclose(judged["kind, probability"].mean(), right.mean(), atol=0.1)


def test_directions_of_components_are_moved_to_pixels(tmp_path):
    rng = np.random.default_rng(1)
    pixels, labels = rng.normal(size=(60, 12)), np.resize(["a", "b", "c"], 60)
    pixels[:, 3] += 3 * (labels == "a")
    components = PCA(5, svd_solver="full").fit(pixels)
    inside = ConceptDirections(n_components=2).fit(components.transform(pixels), labels)
    save_directions({"one/two": inside}, tmp_path / "x.safetensors", components)
    outside = load_directions(tmp_path / "x.safetensors")["one/two"]
    new = rng.normal(size=(40, 12))
    expected = inside.predict(components.transform(new))
    np.testing.assert_array_equal(outside.predict(new), expected)
    probable = inside.predict_proba(components.transform(new))
    np.testing.assert_allclose(outside.predict_proba(new), probable, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="12 features"):
        outside.predict(new[:, :5])


def test_directions_keep_the_names_of_columns(tmp_path):
    rng = np.random.default_rng(0)
    Z = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    fitted = ConceptDirections().fit(Z, np.arange(40) % 2)
    save_directions({"half": fitted}, tmp_path / "x.safetensors")
    loaded = load_directions(tmp_path / "x.safetensors")["half"]
    np.testing.assert_array_equal(loaded.predict_proba(Z), fitted.predict_proba(Z))
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(Z[["c", "a", "b"]])


def test_names_with_half_a_formula_are_drawn_as_they_are(rows):
    folder, _ = rows
    labels = pd.read_csv(folder / "labels.csv")[["kind"]].replace("high", "$\\frac{x$")
    labels.rename(columns={"kind": "$\\sqrt{y$"}).to_csv(folder / "odd.csv", index=False)
    words = ["directions", str(folder / "Z.npy"), "--labels", str(folder / "odd.csv")]
    assert main([*words, "--out", str(folder / "odd")]) == 0


def test_a_folder_of_images_of_several_sizes(tmp_path, capsys):
    write_images(tmp_path / "fruit", images=80)
    with Image.open(tmp_path / "fruit" / "007.png") as image:
        image.resize((48, 48)).save(tmp_path / "fruit" / "007.png")
    words = ["directions", str(tmp_path / "fruit"), "--labels", str(tmp_path / "fruit/labels.csv")]
    words += ["--factors", "ripeness", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "48 x 48 pixels" in (said := capsys.readouterr().err) and "--size" in said
    assert main([*words, "--size", "16"]) == 0
    kept = pd.read_csv(tmp_path / "out" / "values.csv")
    found = applied(tmp_path / "out", tmp_path / "fruit")
    assert (found["ripeness"] == kept["ripeness, read"]).all()


def test_a_folder_of_images_by_pixels_and_by_an_encoder(tmp_path):
    write_images(tmp_path / "fruit", images=120)
    words = ["directions", str(tmp_path / "fruit"), "--labels", str(tmp_path / "fruit/labels.csv")]
    (tmp_path / "new").mkdir()
    for image in sorted((tmp_path / "fruit").glob("*.png")):
        (tmp_path / "new" / image.name).write_bytes(image.read_bytes())
    for more in ([], ["--encoder", "small-vit"]):
        out = tmp_path / f"out{len(more)}"
        assert main([*words, "--factors", "ripeness", "--out", str(out), *more]) == 0
        kept = pd.read_csv(out / "values.csv")
        found = applied(out, tmp_path / "new")
        assert (found["ripeness"] == kept["ripeness, read"]).all()


@pytest.mark.parametrize(
    ("labels", "data", "said"),
    [
        ("kind\na\nb\n", "x\n1\n2\n", "has 1 rows, and needs"),
        ("kind\n" + "a\nb\n" * 5, "x\n1\n2\n", "has 2 rows and"),
        ("kind\n" + "a\nb\n" * 5, "x\n" + "1\nred\n" * 5, "row 3: 'red' is no number"),
        ("kind\n" + "a\n" * 10, "x\n" + "1\n2\n" * 5, "all rows have the value"),
        ("kind\n" + "a\nb\n" * 5, "x\n" + "1\n2\n" * 4 + "1\n1e9\n", "row 11: 1e+09 is huge"),
        ("kind\n" + "a\nb\n" * 5, "x\n" + "1\n2\n" * 4 + '1\n""\n', "column 'x', row 11: ''"),
        ("kind;day\n" + "a;1\nb;2\n" * 5, "x\n" + "1\n2\n" * 5, "separated by ';'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(labels, data, said, tmp_path, capsys):
    (tmp_path / "labels.csv").write_text(labels)
    (tmp_path / "rows.csv").write_text(data)
    words = ["directions", str(tmp_path / "rows.csv"), "--labels", str(tmp_path / "labels.csv")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not list(Path(tmp_path / "out").glob("*"))


def test_a_column_that_numbers_the_rows_is_warned_of(rows, capsys):
    folder, Z = rows
    numbered = pd.DataFrame(Z, columns=list("abcdef"))
    numbered.insert(0, "id", np.arange(ROWS))
    numbered.to_csv(folder / "numbered.csv", index=False)
    words = ["directions", str(folder / "numbered.csv"), "--labels", str(folder / "labels.csv")]
    assert main([*words, "--out", str(folder / "numbered")]) == 0
    said = capsys.readouterr().out
    assert "warning: 'id' looks like an index" in said
    assert said.count("looks like an index") == 1


def test_an_option_of_images_is_refused_for_embeddings(rows, capsys):
    folder, _ = rows
    words = ["directions", str(folder / "Z.npy"), "--labels", str(folder / "labels.csv")]
    assert main([*words, "--file-column", "kind", "--out", str(folder / "x")]) == 2
    assert "--file-column is for a folder of images" in capsys.readouterr().err


def test_a_file_without_directions_is_refused(tmp_path):
    save_file({"x": np.zeros(2)}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="holds no directions"):
        load_directions(tmp_path / "x.safetensors")
    for classes in ("{", "7", '{"kind": ["a", "b"]}'):
        save_file({"kind/directions": np.zeros((1, 2))}, tmp_path / "x.safetensors",
            {"classes": classes})  # fmt: skip
        with pytest.raises(ValueError, match="holds no directions of this version"):
            load_directions(tmp_path / "x.safetensors")
