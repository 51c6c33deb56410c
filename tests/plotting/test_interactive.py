"""Interactive figures: live where plotly runs, data and picture on the site, always words."""

from __future__ import annotations

import base64
import json

import matplotlib.pyplot as plt
import numpy as np
import plotly.graph_objects as go
import pytest
from bs4 import BeautifulSoup

from conceptnb.core.concepts import Concept
from conceptnb.core.distributions import GaussianMixture
from conceptnb.plotting import moving
from conceptnb.plotting.interactive import InteractiveFigure

PNG = b"\x89PNG"


@pytest.fixture
def shown():
    static, _ = plt.subplots()
    plt.close(static)
    live = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name="</script><b>"))
    return InteractiveFigure(live, static, 'Two points and a "line"')


def test_the_site_gets_a_picture_and_the_data_of_the_figure(shown, monkeypatch):
    monkeypatch.setenv("CONCEPTNB_SITE", "1")
    bundle = shown._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(PNG)
    page = BeautifulSoup(bundle["text/html"], "html.parser")
    image = page.select_one(".interactive-figure > img")
    assert image["alt"] == 'Two points and a "line"'
    assert base64.b64decode(image["src"].split(",")[1]).startswith(PNG)
    scripts = page.find_all("script")
    assert [script["type"] for script in scripts] == ["application/json"]
    figure = json.loads(scripts[0].string)
    assert figure["data"][0]["name"] == "</script><b>", "text in the data cannot end the script"
    assert "http" not in bundle["text/html"], "nothing is asked of another host"


def test_elsewhere_plotly_shows_itself_with_the_picture_as_the_last_resort(shown, monkeypatch):
    monkeypatch.delenv("CONCEPTNB_SITE", raising=False)
    bundle = shown._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(PNG)
    assert "interactive-figure" not in bundle.get("text/html", "")


def test_a_figure_that_moves_is_data_for_its_script_on_the_site_and_a_picture_elsewhere(
    monkeypatch,
):
    base = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [np.eye(2)] * 2)
    shown = moving.show("conditioning", "Two clusters.", base, Concept([[1.0, 0.5]], [0.4]))
    monkeypatch.setenv("CONCEPTNB_SITE", "1")
    page = BeautifulSoup(shown._repr_mimebundle_()["text/html"], "html.parser")
    assert page.select_one(".interactive-figure > img")["alt"] == "Two clusters."
    content = json.loads(page.select_one("script[type='application/json']").string)
    assert content == {
        "moving": "conditioning",
        "weights": [0.5, 0.5],
        "means": [[0.0, 0.0], [1.0, 1.0]],
        "covariances": [[[1.0, 0.0], [0.0, 1.0]]] * 2,
        "atom": [1.0, 0.5],
    }
    monkeypatch.delenv("CONCEPTNB_SITE")
    assert list(shown._repr_mimebundle_()) == ["image/png"]


def test_the_interval_of_steering_is_that_of_the_paired_gains():
    fold = {"world": "w", "model_seed": 0, "seed": 0, "fold": 0, "tested": "1111", "alpha": 0.0}
    point = {"alpha": 0.0, "kl": 0.0, "kl_asked": 0.0, "ce": 2.0, "right": "1000"}
    steered = {**point, "alpha": 2.0, "kl_asked": 0.2, "right": "1101"}
    rows = [
        {**fold, "method": "baseline", "curve": [point]},
        {**fold, "method": "a vector", "curve": [steered]},
    ]
    shown = moving.show("steering", "Curves.", rows, ["a vector"], 0.3).figure
    curve = shown["techniques"]["a vector"]
    half = 1.96 * np.std([0, 1, 0, 1], ddof=1) / 2
    assert np.allclose(curve["mc1"], [0.25, 0.75])
    assert np.allclose(curve["low"], [0.25, 0.75 - half])
    assert np.allclose(curve["high"], [0.25, 0.75 + half])
    assert (shown["questions"], shown["budget"]) == (4, 0.3)


def test_a_figure_that_no_script_moves_is_refused():
    with pytest.raises(ValueError, match="there are conditioning, folds"):
        moving.show("swirl", "A spiral.")


def test_a_figure_without_words_is_refused(shown):
    with pytest.raises(ValueError, match="alt is empty"):
        InteractiveFigure(shown.figure, shown.static, "  ")
