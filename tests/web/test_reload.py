"""What lies on the bench outlasts a reload of the page, and what could not be kept is named."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.app.conftest import Service
from tests.web.browser import dropped, faults_of, opened, solved, write_workbook


def typed(page: Any, old: str, new: str) -> None:
    page.locator(".grid td", has_text=old).first.click()
    page.wait_for_selector(".grid input:focus")
    page.keyboard.press("Control+a")
    page.keyboard.type(new)
    page.keyboard.press("Enter")
    page.wait_for_selector(f".grid td:has-text('{new}')")


def test_a_table_and_what_was_typed_and_chosen_are_there_after_a_reload(
    browser: Any, service: Service, tmp_path: Path
) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("minutes,A,B\nAnn,4,1\nBen,2,7\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.wait_for_selector("text=What I understood")
        typed(page, "7", "99")
        page.get_by_text("Largest sum").click()
        page.wait_for_function("sessionStorage.getItem('allot.bench').includes('\"maximize\":true')")
        page.reload()
        page.wait_for_selector("text=What I understood")
        assert page.locator(".grid td", has_text="99").count() == 1
        assert faults_of(page) == []
        page.locator("form button.go").click()
        solved(page)
        assert page.inner_text("h1").startswith("103")
        page.goto("/jobs")
        page.go_back()
        page.go_back()
        page.wait_for_selector("text=What I understood")
        page.get_by_role("button", name="Clear").click()
        page.wait_for_selector("text=Drop a spreadsheet")
        page.reload()
        page.wait_for_selector("text=Drop a spreadsheet")
        assert page.evaluate("sessionStorage.getItem('allot.bench')") is None


def test_sheets_of_a_workbook_in_which_a_cell_was_changed_are_there_after_a_reload(
    browser: Any, service: Service, tmp_path: Path
) -> None:
    trips: list[list[Any]] = [["trips", "A", "B"], ["A", 0, 5], ["B", 5, 0]]
    metres: list[list[Any]] = [["metres", "R", "S"], ["R", 0, 10], ["S", 10, 0]]
    path = write_workbook(tmp_path / "plan.xlsx", {"Trips": trips, "Metres": metres})
    with opened(browser, service.url) as (page, _):
        dropped(page, "layout", path)
        page.wait_for_selector("text=What I understood")
        typed(page, "5", "77")
        page.wait_for_function("sessionStorage.getItem('allot.bench').includes('77')")
        page.reload()
        page.wait_for_selector(".grid td:has-text('77')")
        assert page.get_by_role("button", name="Metres").count() == 1


def test_what_is_too_large_to_keep_is_named(browser: Any, service: Service, tmp_path: Path) -> None:
    small, large = tmp_path / "small.csv", tmp_path / "large.npy"
    small.write_text("minutes,A,B\nAnn,4,1\nBen,2,7\n")
    np.save(large, np.ones((500, 500)))
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", small)
        page.wait_for_selector("text=What I understood")
        page.set_input_files("input[type=file]", large)
        page.wait_for_selector("text=500 × 500")
        page.wait_for_function("sessionStorage.getItem('allot.bench').includes('large.npy')")
        page.reload()
        page.wait_for_selector("text=large.npy was not kept when the page was loaded again")
        assert page.locator("text=2 × 2").count() == 1
        page.goto("/solve?sample=taxis")
        page.wait_for_selector("text=a sample")
        page.reload()
        page.wait_for_selector("text=a sample")
