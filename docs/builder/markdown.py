"""Markdown to HTML that a strict content policy lets through: no inline style, no inline script, no raw HTML."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from docs.builder.contents import ROOT, Page


class BrokenLink(ValueError):
    """A page names a page, a heading or a file that is not there."""


@dataclass
class Heading:
    """A heading, and the words below it until the next one: what the search looks through."""

    level: int
    id: str
    title: str
    text: list[str] = field(default_factory=list)


@dataclass
class Made:
    """A page as HTML, its headings, the images that it shows and the links that have to lead somewhere."""

    html: str
    headings: list[Heading]
    images: dict[str, Path]
    links: list[tuple[str, str]]


def slug(title: str, taken: set[str]) -> str:
    """The id of a heading, as GitHub makes it, so that links work in both places."""
    plain = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") or "section"
    name, count = plain, 0
    while name in taken:
        count += 1
        name = f"{plain}-{count}"
    taken.add(name)
    return name


def coloured(code: str, language: str) -> str:
    """Source text with a class for each kind of word; plain where the language is not known."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def listing(code: str, language: str = "", label: str = "Code") -> str:
    """A block of code that can be reached by key, since it may scroll."""
    return (
        f'<pre tabindex="0" role="group" aria-label="{escape(label)}"><code>{coloured(code, language)}</code></pre>\n'
    )


class Writer:
    """Makes pages of one site, whose addresses it knows."""

    def __init__(self, known: Sequence[Page]) -> None:
        self._urls = {page.source: page.url for page in known}
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
        self._markdown.add_render_rule("fence", _fence)
        self._markdown.add_render_rule("code_block", _fence)

    def make(self, page: Page) -> Made:
        """One page. Raises BrokenLink."""
        text = re.sub(r"<!--.*?-->", "", (ROOT / page.source).read_text(), flags=re.DOTALL)
        made = Made("", [], {}, [])
        tokens = self._markdown.parse(text)
        self._headings(tokens, made)
        for token in tokens:
            _no_style(token)
            self._follow(token.children or [], page, made)
        html = self._markdown.renderer.render(tokens, self._markdown.options, {})
        html = html.replace("<table>", '<div class="scrolls" tabindex="0" role="group" aria-label="Table"><table>')
        made.html = re.sub(r"<th[^>]*></th>", "<td></td>", html.replace("</table>", "</table></div>"))
        return made

    def _headings(self, tokens: list[Token], made: Made) -> None:
        taken: set[str] = set()
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                title = _words(tokens[at + 1])
                name = slug(title, taken)
                token.attrSet("id", name)
                made.headings.append(Heading(int(token.tag[1]), name, title))
            elif made.headings and token.type in ("inline", "fence") and tokens[at - 1].type != "heading_open":
                made.headings[-1].text.append(_words(token) if token.type == "inline" else token.content)

    def _follow(self, tokens: list[Token], page: Page, made: Made) -> None:
        plain = False
        for token in tokens:
            if token.type == "image":
                path = self._file(str(token.attrGet("src")), page)
                made.images[path.name] = path
                token.attrSet("src", f"/docs/images/{path.name}")
                token.attrSet("loading", "lazy")
            elif token.type == "link_open":
                target = self._target(str(token.attrGet("href")), page, made)
                plain = not target
                token.attrs = {"href": target} if target else {"class": "file", "title": "in the source tree"}
            if plain and token.type in ("link_open", "link_close"):
                token.tag = "span"

    def _target(self, href: str, page: Page, made: Made) -> str:
        """The address that a link leads to; empty for a file of the source tree that is no page."""
        if re.match(r"[a-z]+:", href) or href.startswith("/"):
            return href
        file, _, anchor = href.partition("#")
        if not file:
            made.links.append((page.url, anchor))
            return f"#{anchor}"
        path = self._file(file, page)
        inside = path / "README.md" if path.is_dir() else path
        url = self._urls.get(inside.relative_to(ROOT).as_posix())
        if url is None:
            return ""
        made.links.append((url, anchor))
        return f"{url}#{anchor}" if anchor else url

    def _file(self, name: str, page: Page) -> Path:
        path = ROOT / posixpath.normpath(posixpath.join(posixpath.dirname(page.source), name))
        if not path.exists():
            raise BrokenLink(f"{page.source} names {name}, which is not there")
        return path


def _fence(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return listing(tokens[at].content, tokens[at].info.strip().split(" ")[0])


def _no_style(token: Token) -> None:
    """Columns are aligned by a class: a style attribute would need a looser policy."""
    style = token.attrs.pop("style", None)
    if style:
        token.attrSet("class", str(style).removeprefix("text-align:"))


def _words(token: Token) -> str:
    parts = (" " if inner.type == "softbreak" else inner.content for inner in token.children or ())
    return "".join(parts).strip()
