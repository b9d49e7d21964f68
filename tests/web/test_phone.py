"""On a phone every control is as high as a finger needs, and nothing is cut off at the edge."""

from typing import Any

from tests.app.conftest import Service
from tests.web.browser import is_too_wide, opened, solved

LEAST_PX = 43.5
SMALL = """() => [...document.querySelectorAll("main :is(button, select, summary, .seg label, .kinds a)")]
  .filter((one) => one.getClientRects().length && one.getBoundingClientRect().height < %s)
  .map((one) => `${one.tagName} ${one.className} ${(one.innerText || "").slice(0, 30)}`)"""
CUT = """() => [...document.querySelectorAll("main .data button")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth).length"""


def test_controls_are_as_high_as_a_finger(browser: Any, service: Service) -> None:
    with opened(browser, service.url, 390) as (page, _):
        page.goto("/solve/layout?sample=office")
        page.wait_for_selector("text=Starts at once")
        assert page.evaluate(SMALL % LEAST_PX) == []
        page.get_by_role("button", name="Find a better layout").click()
        page.get_by_role("button", name="Stop and keep best").click()
        solved(page)
        assert page.evaluate(SMALL % LEAST_PX) == []
        assert page.evaluate(CUT) == 0
        assert not is_too_wide(page)
        for path in ("/jobs", "/compare", "/workers", "/"):
            page.goto(path)
            page.wait_for_selector("h1")
            page.wait_for_timeout(300)
            assert page.evaluate(SMALL % LEAST_PX) == [], path
            assert not is_too_wide(page), path


def test_at_twice_the_size_of_letters_nothing_is_lost(browser: Any, service: Service) -> None:
    """A zoom of 200% halves the width that a page has."""
    with opened(browser, service.url, 720) as (page, _):
        for path in ("/solve/layout?sample=office", "/jobs", "/compare", "/workers", "/docs/benchmarks"):
            page.goto(path)
            page.wait_for_selector("h1")
            page.wait_for_timeout(300)
            assert not is_too_wide(page), path


def test_forced_colours_keep_every_word_and_the_ways(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.emulate_media(forced_colors="active")
        page.goto("/solve/layout?sample=office")
        page.wait_for_selector("text=Starts at once")
        page.get_by_role("button", name="Find a better layout").click()
        page.get_by_role("button", name="Stop and keep best").click()
        solved(page)
        page.wait_for_selector("#picture .ways", state="attached")
        strokes = page.evaluate("getComputedStyle(document.querySelector('#picture .ways')).stroke")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert strokes != paper
        assert page.get_by_role("button", name="Run again from here").is_visible()
