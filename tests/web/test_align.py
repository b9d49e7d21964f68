"""Two spaces, from the form to what goes with what: tables of distances, and points."""

from typing import Any

import httpx
import pytest

from tests.app.conftest import Service
from tests.web.browser import faults_of, is_too_wide, keep_picture, opened, solved

PROVED = "The best possible; proved, up to rounding."
FOUND = "the best possible is not beyond"


@pytest.mark.parametrize(
    ("width", "start", "pair", "words", "given"),
    [
        (1280, "Type a small table", ["Well", "III"], PROVED, {"x_distance", "y_distance"}),
        pytest.param(390, "Two drawings", ["Dot 60", "1"], FOUND, {"x", "y"}, marks=pytest.mark.again),
    ],
)
def test_what_goes_with_what(
    browser: Any, service: Service, width: int, start: str, pair: list[str], words: str, given: set[str]
) -> None:
    with opened(browser, service.url, width) as (page, _):
        page.goto("/solve/align")
        assert not is_too_wide(page)
        page.get_by_role("button", name=start).click()
        page.wait_for_selector("text=Starts at once")
        assert page.get_by_text("How far apart are two points?").count() == ("x" in given)
        assert faults_of(page) == []
        page.get_by_role("button", name="Find what goes with what").click()
        solved(page, 60_000)
        made = f"{service.url}/v1/jobs/{page.url.rsplit('/', 1)[1]}"
        job = httpx.get(made).json()
        assert (job["solver"], job["input_digests"].keys()) == ("gromov", given)
        assert job["options"] == ({"metric": "euclidean"} if "x" in given else {})
        assert page.inner_text("h1").endswith("mean squared difference")
        assert words in page.inner_text(".lede")
        page.wait_for_selector("canvas#picture")
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=pair[0], exact=True)).first
        assert pair[1] in row.inner_text().split()
        assert "Everything is put somewhere" in page.inner_text(".lines")
        assert page.get_by_role("button", name="SVG").count() == 0
        assert page.get_by_role("button", name="PNG").count() == 1
        assert not is_too_wide(page)
        assert faults_of(page) == []
        keep_picture(page, f"job-align-{width}")
        assert page.get_by_text("the line: given").count() == 1
        if "x" in given:
            return  # that plan is too large to be in what a link shows
        page.goto(httpx.post(f"{made}/shares", json={"expires_in_s": 600, "inputs": False}).json()["page"])
        page.wait_for_selector("canvas#picture")
        assert page.get_by_text("the line: given").count() == 0  # the weights are not shown: they may be any
