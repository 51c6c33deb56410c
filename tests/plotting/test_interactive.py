"""Interactive figures: live where plotly runs, data and picture on the site, always words."""

from __future__ import annotations

import base64
import json

import matplotlib.pyplot as plt
import plotly.graph_objects as go
import pytest
from bs4 import BeautifulSoup

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


def test_a_figure_without_words_is_refused(shown):
    with pytest.raises(ValueError, match="alt is empty"):
        InteractiveFigure(shown.figure, shown.static, "  ")
