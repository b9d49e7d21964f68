"""Cells that are typed into a sheet: each once, none that was given up, and none lost without a word."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.app.conftest import Service
from tests.web.browser import dropped, opened, solved

SENT = "**/v1/previews*"


@contextmanager
def bench(browser: Any, service: Service, folder: Path) -> Iterator[tuple[Any, Any]]:
    """A small table on the bench, and what the page has heard."""
    path = folder / "costs.csv"
    path.write_text("cost,A,B\nAnn,4,1\nBen,2,7\n")
    with opened(browser, service.url) as (page, heard):
        dropped(page, "assign", path)
        page.wait_for_selector("text=What I understood")
        yield page, heard


def type_in(page: Any, old: str, new: str) -> None:
    page.locator(".grid td", has_text=old).click()
    page.wait_for_selector(".grid input:focus")
    page.keyboard.press("Control+a")
    page.keyboard.type(new)


def test_what_is_typed_is_sent_once_and_what_is_given_up_is_not(browser: Any, service: Service, tmp_path: Path) -> None:
    """Escape changed the cell, and Enter sent it twice: a field that goes away loses its focus as well."""
    sent: list[str] = []
    with bench(browser, service, tmp_path) as (page, _):
        page.on("request", lambda request: sent.append(request.url) if "/v1/previews" in request.url else None)
        type_in(page, "7", "9")
        page.keyboard.press("Escape")
        page.wait_for_timeout(300)
        assert (sent, page.locator(".grid td", has_text="7").count()) == ([], 1)
        page.keyboard.press("8")
        page.keyboard.press("5")  # at once: it comes to the field that the first has opened
        page.keyboard.press("Enter")
        page.locator(".grid td", has_text="85").wait_for()
        page.wait_for_timeout(300)
        assert len(sent) == 1
        page.locator(".grid td[tabindex='0']").press("ArrowLeft")
        page.keyboard.press("Delete")
        page.wait_for_selector("text=1 empty cell")
        assert len(sent) == 2


def test_solve_is_pressed_while_a_cell_is_still_read(browser: Any, service: Service, tmp_path: Path) -> None:
    """The press was lost, as leaving the cell turned the button off."""
    with bench(browser, service, tmp_path) as (page, _):
        type_in(page, "2", "0")
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        assert page.inner_text("h1").startswith("1 ")
        assert page.title() == "1 total cost · costs · Allot"


def test_a_cell_that_could_not_be_read_is_told_and_nothing_is_solved_without_it(
    browser: Any, service: Service, tmp_path: Path
) -> None:
    with bench(browser, service, tmp_path) as (page, heard):
        page.route(SENT, lambda route: route.abort())
        type_in(page, "7", "0")
        page.get_by_role("button", name="Find the best assignment").click()
        page.wait_for_selector("text=“0” was not put into row 3 of costs. The service does not answer.")
        page.wait_for_timeout(300)
        assert page.url.endswith("/solve/assign")
        page.unroute(SENT)
        page.get_by_role("button", name="Find the best assignment").click()  # a person has read it, and goes on
        solved(page)
        heard.errors.clear()
