"""What is counted of the main path, on sentences written for it."""

import pytest

from tools.book.project import Project
from tools.prose import ROOT, main_path, prose

CHAPTER = """---
kernelspec: {name: python3}
---
# Title

Two words. The gain is not detectably above zero. It was chosen after seeing the table!

:::{admonition} How we know
:class: dropdown

The seeds were chosen before any run.
:::

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: "A caption."
    name: fig-a
---
draw()
```
"""


@pytest.fixture
def counted(tmp_path):
    for page in main_path():
        file = tmp_path / (f"{page.page}.md" if "/" in page.page else f"notebooks/{page.page}.md")
        file.parent.mkdir(exist_ok=True)
        file.write_text(CHAPTER, encoding="utf-8")
    return main_path(tmp_path)[1]


def test_words_sentences_and_the_first_figure_are_counted(counted):
    assert counted.words == len(CHAPTER.split())
    assert counted.figure == CHAPTER.split().index("fig-a") - 1
    assert counted.sentences == 4  # of them one is a caption; the folded box is left out
    assert counted.hedging == (
        "The gain is not detectably above zero.",
        "It was chosen after seeing the table!",
    )


def test_prose_leaves_out_code_and_formulas():
    assert prose("A $b$ and {glue:text}`c`.\n\n```{code-cell}\nd\n```\n") == "A … and …."


def test_the_plan_names_the_chapters_of_the_book():
    chapters = [path.stem for path in Project(ROOT).chapters if path.parent.name == "notebooks"]
    assert [page.page for page in main_path()] == ["book/index", *chapters]
