"""What a page reads and cannot be sure of, it shows, and asks."""

import io
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tests.app.conftest import Service
from tests.web.browser import dropped, faults_of, opened, solved


def test_a_page_asks_whether_numbers_are_names(browser: Any, service: Service, tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("firm,101,305\nAnn,4,1\nBen,2,3\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.wait_for_selector("text=its first row may hold names or numbers. I read them as numbers.")
        page.wait_for_selector("text=3 × 2")
        assert faults_of(page) == []
        page.get_by_role("button", name="They are names").click()
        page.wait_for_selector("text=I read them as names.")
        page.wait_for_selector("text=2 × 2")
        page.get_by_role("button", name="Keep names").click()
        page.wait_for_selector("text=I read them as", state="detached")
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        assert page.inner_text("h1").startswith("3")


def test_a_page_says_which_whole_number_is_rounded(browser: Any, service: Service, tmp_path: Path) -> None:
    whole, mixed = tmp_path / "whole.csv", tmp_path / "mixed.csv"
    whole.write_text("cost,A,B\nAnn,9007199254740993,9007199254740995\nBen,9007199254740993,9007199254740996\n")
    mixed.write_text("cost,A,B\nAnn,9007199254740993,0.5\nBen,2,3\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", mixed)
        page.wait_for_selector("text=I read 9007199254740993 as 9007199254740992")
        assert faults_of(page) == []
        page.locator(".grid td", has_text="0.5").click()
        page.wait_for_selector(".grid input:focus")
        page.keyboard.press("Control+a")
        page.keyboard.type("1")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=I read 9007199254740993 as", state="detached")
        page.get_by_role("button", name="Clear").click()
        dropped(page, "assign", whole)
        page.wait_for_selector("text=whole numbers")
        assert page.locator("text=since 64 bits hold no more digits").count() == 0
        with page.expect_response("**/v1/jobs") as made:
            page.get_by_role("button", name="Find the best assignment").click()
        job = made.value.json()["id"]
        solved(page)
    cost = service_cost(service, job)
    assert cost.dtype == np.int64
    assert cost.tolist() == [[9007199254740993, 9007199254740995], [9007199254740993, 9007199254740996]]


def service_cost(service: Service, job: str) -> Any:
    """What the job was given."""
    told = httpx.get(f"{service.url}/v1/jobs/{job}").json()["input_digests"]["cost"]
    return np.load(io.BytesIO(httpx.get(f"{service.url}/v1/blobs/{told['blob']}").content))
