"""What stands around every page: the head, the navigation, and the headings of the page at its side."""

from html import escape

from docs.builder.contents import Page
from docs.builder.markdown import Heading

APPS = [("/solve", "Solve"), ("/jobs", "Jobs"), ("/compare", "Compare"), ("/workers", "Workers")]
API = Page("API by call", "api", "")
GALLERY = Page("Gallery", "gallery", "")
COLOURED = {1, 3, 8}
MARK = (
    '<svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">'
    + "".join(
        f'<rect class="{"on" if at in COLOURED else "off"}" x="{at % 3 * 7}" y="{at // 3 * 7}" width="6" height="6" '
        'rx="1.2"/>'
        for at in range(9)
    )
    + "</svg>"
)


def document(
    page: Page, body: str, headings: list[Heading], sections: dict[str, list[Page]], scripts: tuple[str, ...] = ()
) -> str:
    """A whole page."""
    title = f"{page.title} · Allot" if page.address else "Allot: documentation"
    more = "".join(f'<script src="/docs/{name}" defer></script>\n' for name in scripts)
    apps = "".join(f'<a href="{url}">{name}</a>' for url, name in APPS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="/favicon.ico" type="image/svg+xml">
<link rel="stylesheet" href="/docs/docs.css">
<script src="/docs/theme.js"></script>
<script src="/docs/docs.js" defer></script>
{more}</head>
<body>
<a class="skip" href="#main">To the content</a>
<header class="top"><div class="top-in">
<a class="brand" href="/">{MARK}Allot</a>
<nav class="apps" aria-label="Pages">{apps}<a href="/docs" aria-current="true">Docs</a></nav>
<form class="find" role="search" id="finding"><input id="find" type="search" placeholder="Search" autocomplete="off"
 role="combobox" aria-label="Search the documentation" aria-expanded="false" aria-controls="found"
 aria-autocomplete="list"><kbd aria-hidden="true">/</kbd>
<ul id="found" role="listbox" aria-label="Found" hidden></ul></form>
</div></header>
<div class="columns">
<nav class="contents" aria-label="Contents"><details id="contents" open><summary>Contents</summary>
{_contents(page, sections)}</details></nav>
<main id="main" tabindex="-1"><article>
{body}</article>
{_around(page, sections)}</main>
{_aside(headings)}</div>
</body>
</html>
"""


def _contents(page: Page, sections: dict[str, list[Page]]) -> str:
    parts = []
    for section, listed in sections.items():
        links = "".join(
            f'<li><a href="{one.url}"{_current(one, page)}>{escape(one.title)}</a></li>\n' for one in listed
        )
        parts.append(f"<h2>{escape(section)}</h2>\n<ul>\n{links}</ul>\n")
    return "".join(parts)


def _current(one: Page, page: Page) -> str:
    return ' aria-current="page"' if one.address == page.address else ""


def _around(page: Page, sections: dict[str, list[Page]]) -> str:
    """The page before and the page after."""
    every = [one for listed in sections.values() for one in listed]
    at = next(at for at, one in enumerate(every) if one.address == page.address)
    links = ""
    if at > 0:
        links += f'<a rel="prev" href="{every[at - 1].url}"><span>Before</span>{escape(every[at - 1].title)}</a>'
    if at + 1 < len(every):
        links += f'<a rel="next" href="{every[at + 1].url}"><span>Next</span>{escape(every[at + 1].title)}</a>'
    return f'<nav class="around" aria-label="Before and after">{links}</nav>\n'


def _aside(headings: list[Heading]) -> str:
    shown = [one for one in headings if one.level in (2, 3)]
    if len(shown) < 2:
        return "<div></div>\n"
    links = "".join(f'<li class="l{one.level}"><a href="#{one.id}">{escape(one.title)}</a></li>\n' for one in shown)
    return f'<nav class="here" aria-label="On this page"><p>On this page</p><ul>\n{links}</ul></nav>\n'
