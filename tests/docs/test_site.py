"""The documentation: built from what is committed, whole, under the strict policy, and searched without a network."""

import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.web.manual import leaves
from docs.builder.__main__ import SITE, build
from docs.builder.contents import ROOT, Page, pages
from docs.builder.markdown import BrokenLink, Writer
from tests.app.conftest import Service
from tests.web.browser import faults_of, is_too_wide, keep_picture, opened
from tests.web.conftest import browser

__all__ = ["browser"]


class Seen(HTMLParser):
    """What a page links to, which ids it has, and what a strict policy would refuse."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.refused: list[str] = []
        self._inline = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [str(given[name]) for name in ("href", "src") if name in given]
        self.ids += [str(given["id"])] if "id" in given else []
        self.refused += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        self._inline = tag if tag == "style" or (tag == "script" and "src" not in given) else ""

    def handle_data(self, data: str) -> None:
        if self._inline and data.strip():
            self.refused.append(f"<{self._inline}>")


def html() -> dict[str, Seen]:
    found = {name: leaf for name, leaf in leaves().items() if leaf.media_type.startswith("text/html")}
    return {name: Seen(leaf.plain.decode()) for name, leaf in found.items()}


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_build_gives_what_is_committed(tmp_path: Path) -> None:
    build(tmp_path / "site.zip")
    built, there = contents(tmp_path / "site.zip"), contents(SITE)
    assert built.keys() == there.keys(), "run make docs"
    assert [name for name in built if built[name] != there[name]] == [], "run make docs"


def test_every_link_leads_somewhere_and_nothing_is_inline() -> None:
    site = html()
    assert len(site) > 40
    for name, seen in site.items():
        assert seen.refused == [], name
        assert len(seen.ids) == len(set(seen.ids)), name
        for link in seen.links:
            file, _, anchor = link.partition("#")
            if not file.startswith("/docs") and file:
                continue
            target = name if not file else file.removeprefix("/docs").strip("/") or "index"
            assert target in leaves(), f"{name} links to {link}"
            assert not anchor or anchor in site[target].ids, f"{name} links to {link}"


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name, leaf in leaves().items():
        if leaf.media_type.startswith("text/html"):
            assert not re.search(r'(src|srcset)="(https?:)?//', leaf.plain.decode()), name
            assert not re.search(r'<link [^>]*href="(https?:)?//', leaf.plain.decode()), name


def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Title\n\n[gone](nowhere.md)\n")
    with pytest.raises(BrokenLink, match=r"nowhere\.md"):
        Writer([]).make(Page("Title", "title", str(path)))


def test_every_page_of_docs_is_in_the_contents() -> None:
    listed = {page.source for section in pages().values() for page in section}
    assert listed >= {f"docs/{path.relative_to(ROOT / 'docs').as_posix()}"
                      for path in (ROOT / "docs").rglob("*.md")}  # fmt: skip


def test_pages_are_served_under_the_strict_policy(client: httpx.Client) -> None:
    for path in ("/docs", "/docs/", "/docs/solvers/lap", "/docs/api", "/docs/search.json", "/docs/images/day.jpg"):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in answer.headers["content-security-policy"]
        again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    assert client.get("/docs/../pages.py").status_code == 404
    assert client.get("/docs/..%2f..%2fpages.py").status_code == 404
    assert client.get("/llms.txt").text.startswith("# Allot\n")


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.again), 390])
def test_pages_are_clean_and_fit(browser: Any, service: Service, width: int) -> None:
    with opened(browser, service.url, width) as (page, _):
        for path in ("", "/solvers", "/solvers/uot", "/api", "/gallery", "/guides/facility-planning", "/trust"):
            page.goto(f"/docs{path}")
            page.wait_for_selector("h1")
            if path == "/api":
                page.wait_for_selector("#examples button")
            assert faults_of(page) == [], path
            assert not is_too_wide(page), path
            tables = page.locator("article table")
            assert all(tables.nth(k).is_visible() for k in range(min(3, tables.count()))), path
            keep_picture(page, f"docs{path.replace('/', '-')}-{width}")


def begin_to_search(page: Any) -> None:
    """A browser may drop a key that comes just as a page begins."""
    for _ in range(100):
        page.keyboard.press("/")
        if page.evaluate("document.activeElement.id") == "find":
            return
        page.wait_for_timeout(100)
    raise AssertionError("the key / does not lead to the search")


def test_a_stranger_searches_and_reads(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/docs")
        begin_to_search(page)
        page.keyboard.type("warm start")
        page.wait_for_selector("#found [data-url]")
        page.keyboard.press("ArrowDown")
        assert page.get_attribute("#find", "aria-activedescendant") == "found-0"
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "/docs/" in url)
        assert "warm" in page.inner_text("main").lower()
        begin_to_search(page)
        page.keyboard.type("zzzz")
        page.wait_for_selector("text=Nothing is said of")
        page.keyboard.press("Escape")
        assert page.locator("#found").is_hidden()


def test_the_languages_of_an_example_and_a_try_in_place(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/docs/api")
        submit = page.locator("section.call", has=page.locator("#jobs_post"))
        assert "curl" in submit.locator("[data-language]:visible pre").inner_text()
        for language, word in (("Python client", "client.lap"), ("Python httpx", "httpx"), ("JavaScript", "fetch(")):
            page.get_by_label(language, exact=True).check(force=True)
            assert word in submit.locator("[data-language]:visible pre").inner_text()
        page.reload()
        assert "fetch(" in submit.locator("[data-language]:visible pre").inner_text()
        page.get_by_role("button", name="qap", exact=True).click()
        page.get_by_role("button", name="Send, wait 10 s").click()
        page.wait_for_selector("#answer:has-text('permutation')")
