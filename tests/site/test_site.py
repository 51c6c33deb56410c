"""Every page of the built site, as a reader meets it."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from urllib.parse import quote_plus, unquote, urldefrag, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from tools.book import pdf, slides, values
from tools.book.labels import Labels

pytestmark = pytest.mark.site

WINDOWS = {"phone": (390, 844), "tablet": (820, 1180), "desktop": (1440, 1000)}
# A page is loaded in the first window and then resized to the others, as by a reader who turns
# a tablet.
VISITS = {"light": ("desktop", "tablet", "phone"), "dark": ("phone", "tablet", "desktop")}
PROJECTOR = {"width": 1280, "height": 720}
PATIENCE = 120_000  # milliseconds for a page to load on a busy machine
GENERATED = ("genindex.html", "py-modindex.html", "prf-prf.html", "index.html")
ELSEWHERE = ("_modules/", "slides/")  # slides have a test of their own

# Waits until MathJax is done, then says what a reader would see go wrong.
READ = """async () => {
  if (window.MathJax?.startup) await MathJax.startup.promise;
  await Promise.all([...document.images].map(image => image.complete || new Promise(done => {
    image.onload = image.onerror = done;
    image.loading = "eager";
  })));
  const inArticle = [...document.querySelectorAll("article img, .interactive-figure img")];
  return {
    formulas: document.querySelectorAll("span.math, div.math").length,
    typeset: document.querySelectorAll("mjx-container").length,
    broken: [...document.querySelectorAll("mjx-merror, [data-mjx-error]")].map(e => e.innerText),
    missing: inArticle.filter(i => i.naturalWidth === 0).map(i => i.src.slice(0, 120)),
    silent: inArticle.filter(i => !i.alt.trim()).map(i => i.src.slice(0, 120)),
    theme: document.documentElement.dataset.theme,
    background: getComputedStyle(document.body).backgroundColor,
  };
}"""

# By how much a page sticks out, once what follows the window's size has had time to do so.
WIDE = """async () => {
  const over = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
  for (let frame = 0; frame < 2 || (over() > 0 && frame < 60); frame++)
    await new Promise(requestAnimationFrame);
  return over();
}"""

# With everything unfolded, once tables have had time to find their form: tables that reach beyond
# what is seen of them, code that is cut off, and, of code that readers type, blocks with lines
# that go on in a second one.
CUT = """async () => {
  const article = document.querySelector("article.bd-article") ?? document.body;
  article.querySelectorAll("details").forEach(box => { box.open = true; });
  article.querySelectorAll(".toggle-hidden").forEach(box => box.classList.remove("toggle-hidden"));
  const shown = selector =>
    [...article.querySelectorAll(selector)].filter(tag => tag.checkVisibility());
  const beyond = table => {
    let box = table.parentElement;
    while (box !== article && getComputedStyle(box).overflowX === "visible")
      box = box.parentElement;
    const edge = box.getBoundingClientRect().left + box.clientLeft + box.clientWidth;
    return table.getBoundingClientRect().right > edge + 1;
  };
  const broken = block => {
    const style = getComputedStyle(block);
    const inside =
      block.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
    const lines = block.textContent.trimEnd().split("\\n").length;
    return inside > (lines + 0.5) * parseFloat(style.lineHeight);
  };
  const cut = () => [
    ...shown("table").filter(beyond),
    ...shown('mjx-container[display="true"]').filter(f => f.scrollWidth > f.clientWidth + 1),
  ];
  for (let frame = 0; frame < 3 || (cut().length && frame < 60); frame++)
    await new Promise(requestAnimationFrame);
  const start = tag => tag.innerText.slice(0, 60).replace(/\\s+/g, " ");
  return {
    cut: cut().map(start),
    code: shown("pre").filter(block => block.scrollWidth > block.clientWidth).map(start),
    lines: shown(".cell_input pre").filter(broken).map(start),
  };
}"""

# Of each box and figure of a deck, whether it is seen once the reader has scrolled its slide.
SEEN = """() => [...document.querySelectorAll(".proof, figure[id]")].map(box => {
  const picture = box.querySelector("img");
  const whole = box.checkVisibility() && box.getBoundingClientRect().height > 20;
  const within = box.closest(".slide") && !box.closest("details:not([open])");
  return [box.id, Boolean(whole && within && (!picture || picture.naturalWidth > 0))];
})"""

# Whether a deck has been cut into slides that fit the window.
CUT_INTO_SLIDES = "document.querySelector('.slides-place').innerText.includes('/')"

# What the theme does for a reader who prefers dark, on a page that was loaded light.
DARKEN = """async () => {
  document.documentElement.dataset.theme = "dark";
  await new Promise(requestAnimationFrame);
  await Promise.all(document.getAnimations().map(animation => animation.finished));
}"""

# Of the pages of the reference, which are all alike, one is looked at for barriers.
AUDITED = "book/api/core.html"

# The rules of axe-core that look at colours: the others say the same in both schemes.
OF_COLOUR = ["color-contrast", "link-in-text-block"]

# What axe-core finds; MathJax looks after the inside of its formulas itself.
AUDIT = """async (rules) => {
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const found = await axe.run({ exclude: ["mjx-container"] }, options);
  return found.violations.map(
    violation => `${violation.id} at ${violation.nodes[0].target}: ${violation.help}`
  );
}"""


@pytest.fixture(scope="module")
def documents(site):
    return {
        page: BeautifulSoup((site.folder / page).read_text(encoding="utf-8"), "html.parser")
        for page in site.pages
    }


@pytest.fixture(params=VISITS)
def visit(request, browser):
    """A page in one colour scheme, the scheme, and the windows to look through."""
    scheme, windows = request.param, VISITS[request.param]
    width, height = WINDOWS[windows[0]]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_navigation_timeout(PATIENCE)
    yield context.new_page(), scheme, windows
    context.close()


def test_every_page_reads_well(site, visit):
    """Formulas are typeset, nothing fails, leaves the machine, sticks out or is cut off."""
    page, scheme, windows = visit
    problems: list[str] = []
    current = ""
    page.on("pageerror", lambda error: problems.append(f"{current}: {error}"))
    page.on(
        "console",
        lambda message: message.type == "error" and problems.append(f"{current}: {message.text}"),
    )
    page.on(
        "request",
        lambda request: (
            request.url.startswith((site.address, "data:", "blob:"))
            or problems.append(f"{current}: asks for {request.url}")
        ),
    )
    page.on(
        "response",
        lambda response: (
            response.status < 400
            or problems.append(f"{current}: {response.status} for {response.url}")
        ),
    )
    for current in site.pages:
        if current.startswith(ELSEWHERE) or current in GENERATED:
            continue
        resize(page, windows[0])
        page.goto(site.address + current, wait_until="load")
        seen = page.evaluate(READ)
        if seen["typeset"] < seen["formulas"]:
            problems.append(
                f"{current}: {seen['formulas']} formulas, {seen['typeset']} of them typeset"
            )
        problems += [f"{current}: MathJax refuses {formula!r}" for formula in seen["broken"]]
        problems += [f"{current}: no picture at {image}" for image in seen["missing"]]
        problems += [f"{current}: no alt text on {image}" for image in seen["silent"]]
        if seen["theme"] != scheme:
            problems.append(f"{current}: shown {seen['theme']} to a reader who prefers {scheme}")
        for window in windows:
            resize(page, window)
            if (wide := page.evaluate(WIDE)) > 0:
                problems.append(f"{current}: {wide} px wider than the window of a {window}")
            if window == "tablet":
                continue
            cut = page.evaluate(CUT)
            problems += [f"{current}: on a {window} {what!r} is cut" for what in cut["cut"]]
            problems += [f"{current}: on a {window} the code {c!r} is cut" for c in cut["code"]]
            if window == "desktop":
                problems += [f"{current}: the code {c!r} has long lines" for c in cut["lines"]]
    assert not problems, "\n".join(problems)


def audited(name):
    alike = name.startswith(("_modules/", "book/api/")) and name != AUDITED
    return not alike and name not in GENERATED


def resize(page, window):
    width, height = WINDOWS[window]
    page.set_viewport_size({"width": width, "height": height})


@pytest.mark.parametrize("half", [0, 1])
def test_no_barrier_for_a_reader_with_a_screen_reader_or_a_keyboard(site, browser, half):
    """Every page in both colour schemes, and every deck as a projector shows it.

    Two halves, to be looked at side by side.
    """
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_navigation_timeout(PATIENCE)
    problems = []
    for name in [name for name in site.pages if audited(name)][half::2]:
        deck = name.startswith("slides/")  # decks are light to everybody
        page.set_viewport_size(PROJECTOR if deck else {"width": 1440, "height": 1000})
        page.emulate_media(color_scheme="light")
        page.goto(site.address + name, wait_until="load")
        page.evaluate(READ)
        if deck:
            page.wait_for_function(CUT_INTO_SLIDES)
        page.evaluate(axe)
        problems += [f"{name}: {problem}" for problem in page.evaluate(AUDIT)]
        page.emulate_media(color_scheme="dark")
        if not deck:
            page.evaluate(DARKEN)
            problems += [f"{name}, dark: {p}" for p in page.evaluate(AUDIT, OF_COLOUR)]
    page.close()
    assert not problems, "\n".join(problems)


def test_the_pdf_holds_every_chapter_and_every_figure(site, project, documents, browser):
    printed = PdfReader(pdf.build(project, browser))
    # Chromium's outline loses the space where a heading goes on in the next line.
    titles = {"".join(e.title.split()) for e in printed.outline if not isinstance(e, list)}
    text = " ".join(" ".join(page.extract_text() for page in printed.pages).split())
    for page in project.pages_in_toc:
        if page.startswith("book/api/"):
            continue
        article = documents[f"{page}.html"].select_one("article.bd-article")
        title = article.h1.get_text().rstrip("#").strip()
        assert "".join(title.split()) in titles, f"the outline does not lead to {page}"
        for figure in article.select("figure .caption-number"):
            assert figure.get_text(strip=True) in text, f"{page}: {figure.get_text()} is missing"
    for link in (a for page in printed.pages for a in page.get("/Annots") or []):
        action = link.get_object().get("/A") or {}
        assert not str(action.get("/URI", "")).startswith(("http://127.0.0.1", "file:")), action


def test_links_and_anchors_lead_somewhere(site, project, documents):
    anchors = {
        page: {tag["id"] for tag in soup.find_all(id=True)} for page, soup in documents.items()
    }
    problems = []
    for page, soup in documents.items():
        for link in soup.find_all("a", href=True):
            target, anchor = urldefrag(urljoin(page, unquote(link["href"])))
            if urlsplit(target).scheme or target.startswith(f"/{project.name}/"):
                continue
            if not (site.folder / target).exists():
                problems.append(f"{page} links to {link['href']}, which is not there")
            elif anchor and target in anchors and anchor not in anchors[target]:
                problems.append(f"{page} links to {link['href']}, which has no such anchor")
    assert not problems, "\n".join(sorted(set(problems)))


def test_old_addresses_lead_on_and_keep_the_place_in_the_page(site, browser):
    """Each redirect leads to a page that is there; a browser keeps what stands behind the #."""
    for old in sorted(site.moved):
        soup = BeautifulSoup((site.folder / old).read_text(encoding="utf-8"), "html.parser")
        target = urljoin(old, soup.a["href"])
        assert target in site.pages, f"{old} leads to {target}"
    page = browser.new_page()
    page.goto(f"{site.address}notebooks/14_causal.html#ch-causal")
    page.wait_for_url(f"{site.address}notebooks/07_selecting_or_intervening.html#ch-causal")
    page.close()


def test_nothing_on_a_page_names_another_host_as_its_source(documents):
    loaded = [
        f"{page}: {tag.get('src') or tag.get('href')}"
        for page, soup in documents.items()
        for tag in soup.select("script[src], img[src], iframe[src], link[rel=stylesheet][href]")
        if urlsplit(tag.get("src") or tag.get("href")).scheme not in ("", "data")
    ]
    assert not loaded, "\n".join(loaded)


def test_buttons_open_the_right_file(project, documents):
    repository = project.address.removeprefix("https://github.com/")
    for chapter in project.chapters:
        name = project.page(chapter)
        links = {a["href"] for a in documents[f"{name}.html"].find_all("a", href=True)}
        colab = "https://colab.research.google.com/github"
        assert f"{colab}/{repository}/blob/launch/{name}.ipynb" in links
        binder = "https://mybinder.org/v2/gh"
        assert f"{binder}/{repository}/launch?urlpath=lab/tree/{name}.ipynb" in links
        assert f"{project.address}/edit/main/{name}.md" in links
        assert any(link.endswith(f"_sources/{name}.ipynb") for link in links), "no download"
        assert (project.root / f"{name}.ipynb").is_file()
        assert (f"../{slides.deck_of(name)}.html" in links) == slides.is_chapter(name)
    index = {a["href"] for a in documents["book/index.html"].find_all("a", href=True)}
    assert f"{project.address}/edit/main/book/index.md" in index


def number_of(page, project):
    """A chapter has the number of its file, a note its place among the notes."""
    if slides.is_chapter(page):
        return str(int(page.split("/")[1][:2]))
    notes = [other for other in project.pages_in_toc if other.startswith("notebooks/notes/")]
    return f"N{notes.index(page) + 1}"


def test_numbers_are_the_chapters_and_never_those_of_the_paper(project, documents):
    """Theorem 5.1 is the book's; "Theorem 1" alone can only be the paper's."""
    for page in project.pages_in_toc:
        article = documents[f"{page}.html"].select_one("article.bd-article")
        chapter = page.startswith("notebooks/")
        part = number_of(page, project) if chapter else "A"
        if chapter:
            assert article.h1.get_text().startswith(f"{part}. "), page
            sidebar = documents["book/notes.html"].select_one(f".bd-links a[href$='{page}.html']")
            assert sidebar.get_text(strip=True).startswith(f"{part}. "), page
        for number in article.select(".caption-number, .eqno"):
            words = number.get_text().replace("#", "").strip()
            if words and words != "Proof":
                assert re.search(rf"\b{part}\.\d+\)?$", words), f"{page}: {words}"


def test_plain_notebooks_number_everything_as_the_site_does(project, documents):
    """`tools.book.labels` counts in the sources what Sphinx counts in its own way."""
    labels = Labels(project)
    wrong = []
    for label in labels:
        target = labels[label]
        page, anchor = target.address.removeprefix(project.site_address).split("#")
        place = documents[page].find(id=anchor)
        said = place.get_text(" ", strip=True) if place else ""
        if not place or (target.kind and target.name not in said.replace("Fig.", "Figure")):
            wrong.append((label, target.name, said[:60]))
    terms = {term["id"] for term in documents["book/glossary.html"].select("dt[id]")}
    wrong += [term for term, to in labels.terms.items() if to.split("#")[1] not in terms]
    assert wrong == []


def test_the_kept_values_are_what_the_chapters_compute(project):
    """Where one differs, `python -m tools.book values` keeps today's."""
    kept = json.loads(values.kept_in(project).read_text(encoding="utf-8"))
    shown = values.shown(project)
    now = {k: v for c in project.chapters for k, v in values.computed(project, c, shown).items()}
    assert shown <= kept.keys()
    words = {n: re.sub(r"[\d.,]+", "#", v) for n, v in (kept | now).items()}
    assert {n: re.sub(r"[\d.,]+", "#", kept[n]) for n in shown} == {n: words[n] for n in shown}


def test_an_address_that_does_not_exist_answers_with_the_404_page(site, browser):
    page = browser.new_page()
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    bad: list[str] = []
    page.on("response", lambda response: response.status >= 400 and bad.append(response.url))
    address = site.address + "no/such/page/at/any/depth.html"
    page.goto(address)
    assert "This page is not here" in page.inner_text("article")
    assert page.locator("article a, nav a").count() > 3
    assert bad == [address], "the 404 page itself asks for something that is not there"
    assert not failed
    page.close()


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("valuation", None),
        ("Theorem 1", "Why it works"),
        ("Assumption 5", "Which data sets suffice?"),
        ("Lemma 3", None),
        ("acceptance rate", None),
    ],
)
def test_search_finds_words_and_the_names_of_theorems(site, browser, words, title):
    page = browser.new_page()
    page.goto(f"{site.address}search.html?q={quote_plus(words)}")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    if title is not None:
        page.wait_for_selector(f"#search-results li a:has-text({title!r})", timeout=10_000)
    page.close()


def test_a_page_on_paper_is_the_article_in_dark_letters(site, browser):
    """Browsers print no backgrounds: the light letters of the dark theme would be lost."""
    page = browser.new_page(color_scheme="dark", viewport={"width": 1440, "height": 1000})
    page.goto(site.address + "notebooks/04_which_data_sets.html")
    page.evaluate(READ)
    page.emulate_media(media="print")
    assert not page.locator(".bd-sidebar-primary").is_visible()
    for text in ("article p", "article h2", "article figcaption", "article pre span"):
        colour = page.locator(text).first.evaluate("e => getComputedStyle(e).color")
        assert max(int(part) for part in re.findall(r"\d+", colour)[:3]) < 128, (text, colour)
    page.close()


def test_every_box_and_every_figure_of_a_chapter_is_on_one_of_its_slides(project, documents):
    problems, seen = [], 0
    for chapter in filter(slides.is_chapter, map(project.page, project.chapters)):
        page = documents[f"{chapter}.html"].select_one("article.bd-article")
        deck = documents[f"{slides.deck_of(chapter)}.html"]
        for box in page.select(".proof:not(.proof-argument), figure[id]"):
            if box.find_parent(class_=["solution", "proof-argument"]):
                continue
            seen += 1
            found = deck.find_all(id=box["id"])
            words = box.get_text().replace("#", "").split()
            if [slide.get_text().replace("#", "").split() for slide in found] != [words]:
                problems.append(f"{chapter}: {box['id']}")
    assert not problems, "\n".join(problems)
    assert seen > 80


def test_every_box_and_every_figure_can_be_seen_in_the_decks(site, project, browser):
    """With the notes hidden, and after the decks were cut into slides that fit the window."""
    page = browser.new_page(viewport=PROJECTOR)
    page.set_default_navigation_timeout(PATIENCE)
    # Formulas keep their source: what is looked at here is which blocks are shown.
    page.route("**/mathjax/**", lambda route: route.fulfill(body=""))
    problems, seen = [], 0
    for deck in map(slides.deck_of, filter(slides.is_chapter, map(project.page, project.chapters))):
        page.goto(f"{site.address}{deck}.html", wait_until="load")
        page.wait_for_function(CUT_INTO_SLIDES)
        boxes = page.evaluate(SEEN)
        seen += len(boxes)
        problems += [f"{deck}: {name}" for name, shown in boxes if not shown]
    page.close()
    assert not problems, "\n".join(problems)
    assert seen > 80


@pytest.mark.parametrize("width", [390, 1280])
def test_slides_turn_by_keyboard_and_buttons(site, browser, width):
    """Every slide fits in its width, formulas are typeset, and nothing comes from elsewhere."""
    page = browser.new_page(viewport={"width": width, "height": 720})
    page.set_default_navigation_timeout(PATIENCE)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: m.type == "error" and problems.append(m.text))
    page.on(
        "request",
        lambda request: (
            request.url.startswith((site.address, "data:", "blob:")) or problems.append(request.url)
        ),
    )
    for name in ("04_which_data_sets", "11_clip_directions"):
        page.goto(f"{site.address}slides/{name}.html", wait_until="load")
        seen = page.evaluate(READ)
        assert seen["typeset"] >= seen["formulas"] > 0
        assert page.evaluate(WIDE) <= 0
        problems += [*seen["broken"], *seen["missing"], *seen["silent"]]
        page.wait_for_function(CUT_INTO_SLIDES)
        place = page.locator(".slides-place")
        number = int(place.inner_text().split("/")[1])
        assert number == page.locator(".slide").count() > 8
        page.keyboard.press("ArrowRight")
        page.wait_for_function("document.querySelector('.slides-place').innerText[0] == '2'")
        page.get_by_label("Next slide").click()
        page.wait_for_function("document.querySelector('.slides-place').innerText[0] == '3'")
        page.keyboard.press("Home")
        page.wait_for_function("document.querySelector('.slides-place').innerText[0] == '1'")
        note = page.locator(".slide-note").first
        assert not note.is_visible()
        page.keyboard.press("n")
        assert note.is_visible()
        wide = page.evaluate(
            "[...document.querySelectorAll('.slide')].filter("
            "s => s.scrollWidth > s.clientWidth).map(s => s.innerText.slice(0, 40))"
        )
        assert not wide
    page.close()
    assert not problems, "\n".join(problems)


def test_a_link_shows_a_preview_of_what_it_points_to(site, browser):
    page = browser.new_page()
    page.goto(site.address + "notebooks/01_concepts.html")
    page.evaluate(READ)
    link = page.locator("article a.reference.internal[href^='#']").first
    link.scroll_into_view_if_needed()
    link.hover()
    preview = page.wait_for_selector(".link-preview", timeout=5_000)
    assert preview.inner_text().strip()
    page.keyboard.press("Escape")
    page.wait_for_selector(".link-preview", state="detached")
    page.close()


def test_interactive_figures_come_alive_and_have_a_picture_without_scripts(site, browser):
    page = browser.new_page()
    page.goto(site.address + "notebooks/01_concepts.html")
    page.wait_for_selector(".interactive-figure .js-plotly-plot", timeout=20_000)
    page.close()
    still = browser.new_context(java_script_enabled=False).new_page()
    still.goto(site.address + "notebooks/01_concepts.html")
    assert still.locator(".interactive-figure img").first.bounding_box()["height"] > 100
    still.context.close()
