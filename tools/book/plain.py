"""Chapters in plain Markdown, as they read well in Jupyter, Colab, Binder and on GitHub.

Boxes, exercises and equations keep the numbers that they have on the site, references become links
to it, computed values and citations text. A role or directive without a plain form is an error.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from pybtex.database import Entry, parse_file
from pybtex.richtext import Text

from tools.book.labels import Labels
from tools.book.project import Project
from tools.book.values import Values

_MARKDOWN = MarkdownIt().use(colon_fence_plugin)
_DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\} *(?P<title>.*)")
_OPTIONS = re.compile(r"\A(?::[^\n]*(?:\n|\Z))*")
_IN_WORDS = tomllib.loads(Path(__file__).with_name("directives.toml").read_text(encoding="utf-8"))
_PIECE = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence) *$"
    r"|\{(?P<role>[a-zA-Z][\w:-]*)\}(?P<tick>`+)(?P<text>[^`]+?)(?P=tick)"
    r"|(?P<code>`+)(?!`).+?(?<!`)(?P=code)(?!`)"
    r"|\$\$(?P<mathematics>.*?)\$\$(?: *\((?P<label>[\w:-]+)\))?",
    re.MULTILINE | re.DOTALL,
)
_WITH_TARGET = re.compile(r"(?P<text>.*\S)\s*<(?P<target>[^<>]+)>\s*\Z", re.DOTALL)
_PLACE = re.compile(r"^\([\w-]+\)=\n", re.MULTILINE)


class Plain:
    """Says the text of a book's pages in plain Markdown."""

    def __init__(self, project: Project) -> None:
        self.labels, self._project = Labels(project), project
        self._values = Values(project)

    def text(self, source: str, page: str) -> str:
        """Return MyST text of a page (``notebooks/01_concepts``) in plain Markdown."""
        return "\n\n".join(filter(None, (text.strip() for _, text in self.parts(source, page))))

    def parts(self, source: str, page: str) -> Iterator[tuple[str, str]]:
        """Yield the name of each directive and its text in plain words; other text without one."""
        lines, done = source.splitlines(), 0
        for token in _MARKDOWN.parse(source):
            directive = _DIRECTIVE.match(token.info)
            if directive is None or token.map is None or token.level:
                continue
            start, end = token.map
            yield "", self._inline("\n".join(lines[done:start]), page)
            name, title = directive["name"], directive["title"]
            yield name, self._said(name, title, token.content, page)
            done = end
        yield "", self._inline("\n".join(lines[done:]), page)

    def _said(self, name: str, title: str, content: str, page: str) -> str:
        """Return a directive in words."""
        words = _IN_WORDS.get(name, _IN_WORDS["prf:"] if name.startswith("prf:") else None)
        if words is None:
            raise ValueError(
                f"{page}: the directive {{{name}}} has no plain form in directives.toml"
            )
        options = _OPTIONS.match(content)
        assert options is not None  # it matches the empty string
        settings = yaml.safe_load(re.sub(r"^:(.*?):", r"\1:", options[0], flags=re.M)) or {}
        label = settings.get("label") or settings.get("name") or title
        kind = name.removeprefix("prf:").capitalize()
        inside = content[options.end() :]
        body = inside.rstrip() if name == "code-block" else self.text(inside, page)
        return words.format(
            name=self.labels[label].name if label in self.labels else kind,
            title=self._inline(title, page),
            titled=f" ({self._inline(title, page)})" if title else "",
            body=body,
            quoted=_quoted(body),
            alt=settings.get("alt", ""),
            **self._file(title, page),
        )

    def _file(self, title: str, page: str) -> dict[str, str]:
        """Return the text of the file that a directive names, and its public address."""
        path = ((self._project.root / page).parent / title).resolve()
        if not title or not path.is_relative_to(self._project.root) or not path.is_file():
            return {"file": "", "picture": ""}
        text = "" if path.suffix in {".png", ".svg", ".jpg"} else path.read_text(encoding="utf-8")
        address = f"{self._project.address}/raw/main/{self._project.relative(path)}"
        return {"file": text.rstrip(), "picture": address}

    def _inline(self, text: str, page: str) -> str:
        """Return text without directives in plain Markdown."""
        return _PIECE.sub(lambda found: self._piece(found, page), _PLACE.sub("", text))

    def _piece(self, found: re.Match[str], page: str) -> str:
        """Return a role in words and an equation with its number; code as it is."""
        if found["role"]:
            return self._role(found, page)
        if not found["label"]:
            return found[0]
        number = self.labels[found["label"]].number
        mathematics = found["mathematics"].rstrip()
        end = found["mathematics"][len(mathematics) :]
        return f"$${mathematics} \\tag{{{number}}}{end}$$"

    def _role(self, found: re.Match[str], page: str) -> str:
        role = found["role"].replace("prf:ref", "prf").replace(":", "_")
        said = getattr(self, f"_say_{role.lower()}", None)
        if said is None:
            raise ValueError(f"{page}: the role {{{found['role']}}} has no plain form in plain.py")
        parts = _WITH_TARGET.match(found["text"])
        text, target = parts.groups() if parts else ("", found["text"].strip())
        try:
            return said(text.replace("\n", " "), target, page)
        except KeyError as error:
            raise ValueError(f"{page}: {found[0]} leads nowhere: {error} is not known") from None

    # One method per role: the text that a reference gives, if any, its target, and the page.

    def _say_doc(self, text: str, target: str, page: str) -> str:
        name = target[1:] if target.startswith("/") else _joined(page, target)
        return f"[{text or self.labels.title_of(name)}]({self.labels.address(name)})"

    def _say_prf(self, text: str, target: str, page: str) -> str:
        return f"[{text or self.labels[target].name}]({self.labels[target].address})"

    _say_eq = _say_ref = _say_prf

    def _say_numref(self, text: str, target: str, page: str) -> str:
        there = self.labels[target]
        said = text.replace("%s", there.number).replace("{number}", there.number) or there.name
        return f"[{said}]({there.address})"

    def _say_term(self, text: str, target: str, page: str) -> str:
        return f"[{text or target}]({self.labels.terms[target.lower()]})"

    def _say_glue(self, text: str, target: str, page: str) -> str:
        name, _, form = target.partition(":")
        return self._values.text(page, name, form)

    _say_glue_ = _say_glue_text = _say_glue

    def _say_cite(self, text: str, target: str, page: str) -> str:
        return f"({'; '.join(self._cited(target, '{} {}'))})"

    _say_cite_p = _say_cite

    def _say_cite_t(self, text: str, target: str, page: str) -> str:
        return ", ".join(self._cited(target, "{} ({})"))

    def _say_download(self, text: str, target: str, page: str) -> str:
        return f"[{text or Path(target).name}]({self._file(target, page)['picture']})"

    def _say_py_class(self, text: str, target: str, page: str) -> str:
        return f"`{text or target.rsplit('.', 1)[-1] if target.startswith('~') else target}`"

    _say_py_func = _say_py_meth = _say_py_mod = _say_py_class

    def _say_math(self, text: str, target: str, page: str) -> str:
        return f"${target}$"

    def _cited(self, keys: str, form: str) -> Iterator[str]:
        page = self.labels.address("book/bibliography")
        for key in keys.split(","):
            entry = self._references[key.strip()]
            said = form.format(_authors(entry), entry.fields["year"])
            yield f"[{said}]({entry.fields.get('url', page)})"

    @cached_property
    def _references(self) -> dict[str, Entry]:
        return dict(parse_file(self._project.root / "book" / "references.bib").entries)


def _quoted(text: str) -> str:
    """Return text as a quotation; an equation on one line, or Jupyter would take in the marks."""
    text = re.sub(r"\$\$.*?\$\$", lambda found: " ".join(found[0].split()), text, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _joined(page: str, target: str) -> str:
    """Return the page that a reference from another one means."""
    parts = page.split("/")[:-1]
    for part in target.split("/"):
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def _authors(entry: Entry) -> str:
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [
        str(Text.from_latex(" ".join([*person.prelast_names, *person.last_names])))
        for person in people
    ]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
