"""Figures that move: by keyboard, from this site alone, still on paper, and right."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest

from conceptnb import results
from conceptnb.core.concepts import Concept
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.distributions import GaussianMixture, acceptance_rate, information
from conceptnb.core.scores import mcc, r2
from conceptnb.steering.probes import orthogonal_probes
from conceptnb.tables import steering_order
from conceptnb.tables.steering_analysis import along_alpha, by_corpus

pytestmark = pytest.mark.site

CHAPTERS = {
    "conditioning": "02_selecting_data",
    "folds": "06_failures",
    "mixing": "03_first_run",
    "truth": "notes/truth_subspace",
    "steering": "17_real_model",
}
FIGURE = ".interactive-figure:has(.moving)"
STILL, LIVE = f"{FIGURE} > img", f"{FIGURE} .moving"
PATIENCE = 120_000

# Everything that axe-core finds inside the figure.
AUDIT = """async (figure) => {
  const { violations } = await axe.run(document.querySelector(figure));
  return violations.map(({ id, nodes, help }) => `${id} at ${nodes[0].target}: ${help}`);
}"""


@pytest.fixture(params=CHAPTERS)
def name(request):
    return request.param


@pytest.fixture
def opened(site, browser):
    """Open the chapter of a figure in a window; the page, once the figure is live."""
    contexts = []

    def open_figure(name, *, width=1440, scripts=True, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, java_script_enabled=scripts, **options
        )
        contexts.append(context)
        context.set_default_navigation_timeout(PATIENCE)
        # The formulas around the figure take most of the time, and are looked at elsewhere.
        context.route("**/mathjax/**", lambda route: route.fulfill(body=""))
        page = context.new_page()
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.wrong = []
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.goto(f"{site.address}notebooks/{CHAPTERS[name]}.html", wait_until="load")
        if scripts:
            page.wait_for_selector(LIVE, timeout=PATIENCE)
        return page

    yield open_figure
    for context in contexts:
        context.close()


def test_every_figure_has_a_script_and_a_chapter(project):
    scripts = {path.stem for path in (project.root / "book" / "_static" / "moving").glob("*.js")}
    assert scripts == {*CHAPTERS, "kit"}


def test_the_keyboard_moves_every_control_and_the_summary_follows(opened, site, name):
    page = opened(name)
    address, said = page.url, page.locator(f"{LIVE} output")
    assert said.get_attribute("aria-live") == "polite"
    if name == "folds":  # the second valuation counts where there is a second environment
        page.get_by_label("two").check()
    sliders = page.locator(f"{LIVE} input[type=range]").all()
    assert sliders
    for slider in sliders:
        label = page.locator(f"label[for='{slider.get_attribute('id')}']").inner_text()
        words, before = slider.get_attribute("aria-valuetext"), said.inner_text()
        page.get_by_label(label, exact=True).focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") != words, label
        assert said.inner_text() != before, label
    for group in page.locator(f"{LIVE} fieldset").all():
        before = said.inner_text()
        group.locator("input:checked").focus()
        page.keyboard.press("ArrowRight")
        assert said.inner_text() != before, group.inner_text()
    assert page.url == address, "an arrow key left the page"
    outside = [url for url in page.asked if not url.startswith((site.address, "data:", "blob:"))]
    assert not outside
    assert not page.wrong


def test_on_paper_and_without_scripts_the_still_is_shown(opened, name):
    page = opened(name)
    assert page.locator(LIVE).is_visible()
    assert not page.locator(STILL).is_visible()
    page.emulate_media(media="print")
    assert not page.locator(LIVE).is_visible()
    assert page.locator(STILL).bounding_box()["height"] > 100
    plain = opened(name, scripts=False)
    stills = plain.locator(".interactive-figure > img").all()
    assert [image.bounding_box()["height"] > 100 for image in stills] == [True]
    assert stills[0].get_attribute("alt")
    assert plain.locator(".moving").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_ink_and_paper_differ(opened, name, scheme):
    page = opened(name, color_scheme=scheme)
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    assert page.evaluate(AUDIT, FIGURE) == []
    text, line, background = page.evaluate(
        """(figure) => {
          const of = (selector, key) => getComputedStyle(document.querySelector(selector))[key];
          return [of(`${figure} svg text`, "fill"), of(`${figure} svg .line`, "stroke"),
                  of("body", "backgroundColor")];
        }""",
        FIGURE,
    )
    assert contrast(text, background) > 7
    assert contrast(line, background) > 3


def contrast(one, other):
    """WCAG's contrast ratio of two colours as the browser computes them."""

    def luminance(colour):
        shares = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    return max(luminance(one), luminance(other)) / min(luminance(one), luminance(other))


def test_it_fits_a_phone_and_does_not_move_by_itself(opened, name):
    page = opened(name, width=390, reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    figure = page.locator(FIGURE).bounding_box()
    for part in page.locator(f"{LIVE} :is(svg[role=img], input, label, output)").all():
        box = part.bounding_box()
        assert box["x"] >= figure["x"] - 1
        assert box["x"] + box["width"] <= figure["x"] + figure["width"] + 1
    texts = page.locator(f"{LIVE} svg[role=img] text").all()
    assert min(text.bounding_box()["height"] for text in texts if text.inner_html()) > 9
    before = page.locator(FIGURE).inner_html()
    page.wait_for_timeout(300)
    assert page.locator(FIGURE).inner_html() == before
    running = f"document.querySelector('{FIGURE}').getAnimations({{subtree: true}}).length"
    assert page.evaluate(running) == 0


@pytest.fixture
def maths(opened):
    """What a figure is given on its page, and a function that calls its mathematics there."""

    def of(name):
        page = opened(name)
        data = json.loads(page.locator(f"{FIGURE} > script").text_content())
        assert data.pop("moving") == name

        def call(function, *arguments):
            code = f"a => {{ const f = Moving.maths('{name}').{function};"
            return page.evaluate(
                f"{code} return typeof f === 'function' ? f(...a) : f; }}", list(arguments)
            )

        return SimpleNamespace(data=data, call=call, page=page)

    return of


@pytest.mark.parametrize(("b", "variance"), [(0.4, 0.05), (-1.3, 0.004), (1.9, 2.0)])
def test_conditioning_is_that_of_the_library(maths, b, variance):
    figure = maths("conditioning")
    base = GaussianMixture(*(figure.data[key] for key in ("weights", "means", "covariances")))
    concept = Concept([figure.data["atom"]], [b])
    image = figure.call("valuation", figure.data)
    rate = acceptance_rate(base, concept, variance)
    assert figure.call("rate", image, b, variance) == pytest.approx(rate)
    assert figure.call("information", image, b, variance) == pytest.approx(
        information(base, concept, variance)
    )
    after = figure.call("conditional", image, b, variance)
    exact = base.condition(concept, variance).linear_image(concept.A)
    for v in (-1.0, b, 0.7):
        assert figure.call("density", after, v) == pytest.approx(
            np.exp(exact.log_density([[v]])[0]), abs=1e-12
        )
    assert figure.call("mean", after) == pytest.approx((exact.weights @ exact.means)[0])
    kept = figure.call("kept", figure.data, b, variance)
    assert abs(len(kept) - 800 * rate) < 4 * np.sqrt(800 * rate * (1 - rate)) + 1


def test_the_summary_of_conditioning_says_what_the_library_computes(maths):
    figure = maths("conditioning")
    base = GaussianMixture(*(figure.data[key] for key in ("weights", "means", "covariances")))
    figure.page.get_by_label("requested valuation b").fill("1")
    rate = acceptance_rate(base, Concept([figure.data["atom"]], [1.0]), 10**-1.3)
    said = figure.page.locator(f"{LIVE} output").inner_text()
    assert f"Lemma 4 predicts {100 * rate:.0f} %, or {1 / rate:.1f} draws" in said


@pytest.mark.parametrize("valuations", [[-0.1], [-0.1, 0.3], [0.2, 0.2]])
def test_folds_are_those_that_the_design_allows(maths, valuations):
    figure = maths("folds")
    noise = figure.data["variance"]
    design = EnvironmentDesign([[0]] * len(valuations), [[b] for b in valuations], noise)
    assert [figure.call("verdict", valuations)] == list(design.check().identified)
    z = np.array(figure.call("data"))
    h = np.array([figure.call("fold", v, valuations[0]) for v in z])

    def ratios(v):
        return np.outer(v**2, design.M[:, 0]) / 2 - np.outer(v, design.B[:, 0])

    for e, b in enumerate(valuations):
        found = np.array([figure.call("ratio", v, b, noise) for v in z])
        exact = ratios(z)[:, e]
        assert np.allclose(found - found[0], exact - exact[0])
    changed = np.abs(ratios(h) - ratios(z))
    assert np.allclose(changed[:, 0], 0)
    if len(valuations) == 2:
        wrong = [figure.call("mismatch", v, valuations, noise) for v in z]
        assert np.allclose(wrong, changed[:, 1])
        assert (max(wrong) > 0.1) == (design.check().identified[0] == "always")


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_the_mixing_is_undone_and_an_affine_map_scored_as_by_the_library(maths, strength):
    figure = maths("mixing")
    atoms, points = figure.data["atoms"], figure.call("points")
    seen = [figure.call("mix", z, strength) for z in points[:150]]
    back = [figure.call("unmix", x, strength) for x in seen]
    assert np.allclose(back, points[:150])
    true = np.array([figure.call("valuations", z, atoms) for z in points[:150]])
    assert np.allclose(true, np.array(points[:150]) @ np.transpose(atoms))
    learned = np.array([figure.call("exact", x, strength, atoms) for x in seen])
    assert mcc(true, learned) == pytest.approx(1)
    affine = figure.call("affine", strength, atoms)
    everything = np.array([figure.call("mix", z, strength) for z in points])
    valuations = np.array(points) @ np.transpose(atoms)
    for k, found in enumerate(affine):
        assert found["r2"] == pytest.approx(r2(valuations[:, [k]], everything), abs=1e-6)
    assert (affine[0]["r2"] > 1 - 1e-9) == (strength == 0)


@pytest.mark.parametrize(("stretch", "angle"), [(4, 0), (3, 50), (1, 20), (5, 150)])
def test_probe_and_remainder_are_those_of_the_formula_and_of_fitted_probes(maths, stretch, angle):
    figure = maths("truth")
    delta = np.array(figure.data["delta"])
    turn = np.deg2rad(angle)
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    covariance = axes @ np.diag([stretch**2, 1]) @ axes.T
    theta = np.linalg.solve(covariance, delta)
    assert np.allclose(figure.call("probe", delta.tolist(), stretch, angle), theta)
    left = delta - theta @ delta / (theta @ theta) * theta
    assert np.allclose(figure.call("remains", delta.tolist(), theta.tolist()), left, atol=1e-9)
    rng = np.random.default_rng(0)
    true = np.arange(20_000) % 2 == 0
    x = rng.multivariate_normal([0, 0], covariance, len(true)) + np.outer(true, delta)
    shuffled = rng.permutation(len(true))
    first, second = shuffled[:10_000], shuffled[10_000:]
    fitted = orthogonal_probes(x[first], true[first], x[second], true[second], 2)[1]
    both = figure.call("both", delta.tolist(), stretch, angle)
    assert np.allclose(both, fitted, atol=0.03)


def test_steering_shows_the_stored_runs(maths):
    figure = maths("steering")
    [runs] = by_corpus(results.load("steering_real").runs).values()
    names = steering_order.ORDER[1:]
    assert list(figure.data["techniques"]) == list(names)
    for name in names:
        shown, stored = figure.data["techniques"][name], along_alpha(runs, name)
        for key, theirs in {"alpha": "alpha", "mc1": "mc1", "kl": "kl_asked"}.items():
            assert shown[key] == pytest.approx(stored[theirs])
        [row] = steering_order.compared(
            runs, [(name, "baseline")], alpha=stored["alpha"][-1]
        ).to_dict("records")
        low, high = json.loads(row["interval"].replace("+", ""))
        ends = np.array([shown["low"][-1], shown["high"][-1]]) - shown["mc1"][0]
        assert ends == pytest.approx([low, high], abs=6e-4)
    page = figure.page
    page.get_by_label("ITI: mass mean shift").check()
    page.get_by_label("strength α").press("End")
    said = page.locator(f"{LIVE} output").inner_text()
    best = along_alpha(runs, "ITI: mass mean shift")
    assert f"α = {best['alpha'][-1]:.0f}: MC1 {100 * best['mc1'][-1]:.1f} %" in said
    assert f"KL {best['kl_asked'][-1]:.3f} nats per token, above the budget" in said
