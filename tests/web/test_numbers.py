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
