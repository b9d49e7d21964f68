"""A number of a finished job is changed, and the next job begins with the answer of the last."""

from pathlib import Path
from typing import Any

import httpx

from tests.app.conftest import Service
from tests.web.browser import dropped, faults_of, opened, solved


def test_a_number_is_changed_and_the_next_job_begins_with_this_one(
    browser: Any, service: Service, tmp_path: Path
) -> None:
    path = tmp_path / "minutes.csv"
    path.write_text("minutes,A,B\nAnn,4,1\nBen,2,0\n")
    sent: list[Any] = []
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        assert page.inner_text("h1") == "3 minutes in all"
        first = page.url.rsplit("/", 1)[1]
        page.get_by_role("button", name="Change numbers").click()
        page.wait_for_url("**/solve/assign")
        page.wait_for_selector("text=What I understood")
        assert page.get_by_role("rowheader", name="Ann").count() or "Ann" in page.inner_text(".grid")
        page.locator(".grid td", has_text="1").last.click()
        page.wait_for_selector(".grid input:focus")
        page.keyboard.press("Control+a")
        page.keyboard.type("9")
        page.keyboard.press("Enter")
        page.wait_for_selector(".grid td:has-text('9')")
        assert faults_of(page) == []
        page.on("request", lambda request: sent.append(request))
        page.get_by_role("button", name="Find the best assignment").click()
        page.wait_for_url(lambda url: "/jobs/" in url and first not in url)
        solved(page)
        assert page.inner_text("h1") == "4 minutes in all"
        assert "minutes, changed" in page.inner_text(".crumb")
        second = page.url.rsplit("/", 1)[1]
    posted = next(one.post_data_json for one in sent if one.method == "POST" and one.url.endswith("/v1/jobs"))
    assert posted["warm_start"] == first
    assert httpx.get(f"{service.url}/v1/jobs/{second}/result").json()["objective"] == 4


def test_a_number_that_is_typed_does_not_change_the_others(browser: Any, service: Service, tmp_path: Path) -> None:
    """A comma before decimals, typed into a sheet, would make thousands of what has three of them."""
    path = tmp_path / "costs.csv"
    path.write_text("cost;A;B\nAnn;1,5;1,234\nBen;2,5;7\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.wait_for_selector("text=1.234 to 7")
        page.locator(".grid td", has_text="2.5").click()
        page.wait_for_selector(".grid input:focus")
        page.keyboard.press("Control+a")
        page.keyboard.type("2.000,50")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=1.234 to 2,001")
        assert page.locator(".grid td", has_text="2000.5").count() == 1
        assert "rows and columns, named" in page.inner_text(".facts")


def test_which_lines_have_no_names_is_said(browser: Any, service: Service, tmp_path: Path) -> None:
    (tmp_path / "ann.csv").write_text("Ann,1,2\nBen,2,0\nCy,3,2\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", tmp_path / "ann.csv")
        page.wait_for_selector("text=named rows, columns without names")
