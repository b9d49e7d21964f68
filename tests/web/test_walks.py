"""Each person's way through the workbench, in a browser: a spreadsheet in, a proved answer with names out."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openpyxl
import pytest
from scipy.optimize import linear_sum_assignment

from tests.app.conftest import Service, long_job
from tests.web.browser import dropped, faults_of, is_too_wide, keep_picture, opened, solved, try_now, write_workbook
from tests.workers.service import allowed

RIDERS = ["Ann", "=SUM(A1)", "Çelik, Ö.", "Dora"]
TAXIS = ["T1", "T2", "T3", "T4", "T5"]
MINUTES = [[4, 1, 3, 9, 2], [2, 0, 5, 1, 7], [3, 2, 2, 8, 6], [5, 5, 1, 4, 3]]


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    rows: list[list[Any]] = [["minutes", *TAXIS], *([name, *line] for name, line in zip(RIDERS, MINUTES, strict=True))]
    return write_workbook(tmp_path / "riders.xlsx", {"Minutes": rows})


def downloaded(page: Any, name: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name, exact=True).click()
    path: Path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_from_a_workbook_to_files_with_names(browser: Any, service: Service, workbook: Path, tmp_path: Path) -> None:
    best = int(np.array(MINUTES)[linear_sum_assignment(MINUTES)].sum())
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", workbook)
        page.wait_for_selector("text=What I understood")
        assert "4 × 5" in page.inner_text(".facts")
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        assert page.inner_text("h1") == f"{best} minutes in all"
        assert "The best possible; proved." in page.inner_text(".lede")
        page.get_by_role("button", name="Verify in your browser").click()
        page.wait_for_selector("text=Verified here: the best possible.")
        _check_csv(downloaded(page, "CSV", tmp_path), best)
        _check_xlsx(downloaded(page, "XLSX", tmp_path), best)
        answer = json.loads(downloaded(page, "JSON", tmp_path).read_text())
        assert answer["objective"] == best
        packed = np.load(downloaded(page, "npz", tmp_path))
        assert np.array(MINUTES)[np.arange(4), packed["assignment"]].sum() == best
        assert downloaded(page, "SVG", tmp_path).read_text().startswith("<svg")
        assert downloaded(page, "PNG", tmp_path).read_bytes().startswith(b"\x89PNG")


def _check_csv(path: Path, best: int) -> None:
    head, *rows = csv.reader(io.StringIO(path.read_text("utf-8-sig")))
    assert head == ["Row", "Column", "Minutes"]
    assert [row[0] for row in rows] == ["Ann", "'=SUM(A1)", "Çelik, Ö.", "Dora"]
    assert len({row[1] for row in rows}) == 4
    assert sum(int(row[2]) for row in rows) == best
    by_name = dict(zip(["Ann", "'=SUM(A1)", "Çelik, Ö.", "Dora"], MINUTES, strict=True))
    assert all(by_name[name][TAXIS.index(taxi)] == int(minutes) for name, taxi, minutes in rows)


def _check_xlsx(path: Path, best: int) -> None:
    book = openpyxl.load_workbook(path)
    rows = list(book["Result"].iter_rows(values_only=True))[1:]
    assert rows[1][0] == "'=SUM(A1)"
    assert sum(row[2] for row in rows if isinstance(row[2], int)) == best
    assert ("Objective", best) in list(book["About"].iter_rows(values_only=True))


def test_a_layout_is_watched_stopped_fixed_and_compared(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/layout")
        page.get_by_role("button", name="Outpatient clinic").click()
        page.wait_for_selector("text=puts all 24 departments into rooms")
        page.wait_for_selector("text=Starts at once")
        keep_picture(page, "solve-layout")
        page.get_by_role("button", name="Find a better layout").click()
        page.wait_for_selector("text=less than today")
        page.wait_for_selector("text=and the proof goes on")
        page.wait_for_selector("text=/moved, [1-9]/")  # the layout is drawn while it is searched for
        keep_picture(page, "job-running")
        page.keyboard.press(".")
        solved(page)
        first = page.url.rsplit("/", 1)[1]
        assert "Stopped by you" in page.inner_text(".lede")
        assert page.locator(".seat").count() == 24
        room = page.locator(".seat").nth(3)
        room.focus()
        page.keyboard.press("f")
        assert room.get_attribute("aria-pressed") == "true"
        page.get_by_role("button", name="Run again with these fixed").click()
        page.wait_for_url(lambda url: not url.endswith(first))
        page.get_by_role("button", name="Stop and keep best").click()
        solved(page)
        second = page.url.rsplit("/", 1)[1]
        job = httpx.get(f"{service.url}/v1/jobs/{second}").json()
        assert list(job["options"]["fixed"]) == ["3"]
        page.goto("/jobs")
        page.wait_for_selector("tr[id^=job-]")
        for _ in range(2):
            page.keyboard.press("j")
            page.keyboard.press("x")
        page.keyboard.press("c")
        page.wait_for_selector("text=Who moves")
        assert re.search(r"\d+ moves save", page.inner_text("h1"))
        assert page.locator(".plans figure").count() == 3
        keep_picture(page, "compare")


def test_a_bad_cell_is_shown_and_mended(browser: Any, service: Service, tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("cost,J1,J2\nAnn,4,n/a\nBen,2,3\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.wait_for_selector("text=costs, cell C2 is text: “n/a”")
        assert "1 cell\nwith text where a number should be" in page.inner_text(".facts")
        assert "every cell is a number" not in page.inner_text(".facts")
        page.get_by_role("button", name="Type a number").click()
        page.wait_for_selector(".grid input:focus")
        page.keyboard.type("1")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=cell C2 is text", state="detached")
        page.keyboard.press("Control+Enter")
        solved(page)
        assert page.inner_text("h1").startswith("3 ")


def test_a_file_that_cannot_be_read_says_why(browser: Any, service: Service, tmp_path: Path) -> None:
    path = tmp_path / "bad.xlsx"
    path.write_text("hello")
    with opened(browser, service.url) as (page, heard):
        dropped(page, "assign", path)
        page.wait_for_selector("text=not a workbook")
        assert all("422" in error for error in heard.errors)
        heard.errors.clear()  # the browser reports every answer that is no success


@pytest.mark.parametrize(
    ("tab", "sample", "action"),
    [
        pytest.param("assign", "Taxi dispatch", "Find the best assignment", marks=pytest.mark.again),
        ("match", "Track matching", "Find the best matching"),
        pytest.param("transport", "Cell alignment", "Find the cheapest plan", marks=pytest.mark.again),
        ("transport", "Colour transfer", "Find the cheapest plan"),
    ],
)
def test_a_sample_in_a_click_without_a_fault(
    browser: Any, service: Service, tab: str, sample: str, action: str
) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto(f"/solve/{tab}")
        page.get_by_role("button", name=sample).click()
        page.wait_for_selector("text=Starts at once")
        assert faults_of(page) == []
        page.get_by_role("button", name=action).click()
        solved(page)
        page.wait_for_selector("#picture")
        assert faults_of(page) == []
        keep_picture(page, f"job-{tab}")


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.again), 390])
def test_every_page_is_clean_and_fits(browser: Any, service: Service, width: int) -> None:
    running = httpx.post(f"{service.url}/v1/jobs", json=long_job(60)).json()["id"]
    try:
        with opened(browser, service.url, width) as (page, heard):
            for path in ("/", "/solve/layout", "/jobs", f"/jobs/{running}", "/compare", "/workers", "/jobs/0"):
                page.goto(path)
                page.wait_for_selector("h1")
                page.wait_for_timeout(300)
                assert faults_of(page) == [], path
                assert not is_too_wide(page), path
            page.goto("/solve/layout")
            page.get_by_role("button", name="Outpatient clinic").click()
            page.wait_for_selector("text=Rooms has positions")
            assert faults_of(page) == []
            assert not is_too_wide(page)
            heard.errors = [error for error in heard.errors if "404" not in error]  # of the job that is not there
    finally:
        httpx.delete(f"{service.url}/v1/jobs/{running}")


def test_a_table_of_ten_thousand_rows_keeps_few_in_the_document(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/transport")
        page.get_by_role("button", name="Cell alignment").click()
        page.get_by_role("button", name="Find the cheapest plan").click()
        solved(page)
        table = page.get_by_role("region", name="What goes where, most first")
        assert int(table.locator("table").get_attribute("aria-rowcount")) > 10_000
        first = table.get_by_role("rowheader").first.inner_text()
        table.evaluate("box => box.scrollTop = box.scrollHeight / 2")
        page.wait_for_timeout(200)
        assert table.get_by_role("rowheader").count() < 60
        assert table.get_by_role("rowheader").nth(10).inner_text() != first
        frames = page.evaluate(SCROLLED)
        assert frames < allowed(50), "median milliseconds of a frame while the table is scrolled"


SCROLLED = """async () => {
  const box = document.querySelector(".scroll"), took = [];
  let last = performance.now();
  for (let at = 0; at < 60; at++) {
    box.scrollTop = at * 3000;
    await new Promise(requestAnimationFrame);
    took.push(performance.now() - last);
    last = performance.now();
  }
  return took.sort((a, b) => a - b)[30];
}"""


def test_first_paint_is_there_within_a_second(browser: Any, service: Service) -> None:
    def painted() -> float:
        with opened(browser, service.url) as (page, _):  # with nothing kept from before
            page.goto("/solve")
            page.wait_for_selector("text=Drop a spreadsheet")
            return float(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))

    # a page that needs a second always needs one; other tests keep the machine busy at times
    assert any(painted() < allowed(1000) for _ in range(5))


def test_a_lost_connection_is_told_and_mended(browser: Any, service: Service) -> None:
    job = httpx.post(f"{service.url}/v1/jobs", json=long_job(60)).json()["id"]
    with opened(browser, service.url) as (page, heard):
        page.route("**/events", lambda route: route.abort())
        page.goto(f"/jobs/{job}")
        page.wait_for_selector("text=The job goes on without you")
        page.unroute("**/events")
        try_now(page)
        page.wait_for_selector("text=The job goes on without you", state="detached")
        page.wait_for_selector(".curve")
        page.get_by_role("button", name="Stop and keep best").click()
        solved(page)
        heard.errors.clear()  # the browser reports the requests that were cut


def test_a_pair_is_excluded_and_the_next_answer_does_without(browser: Any, service: Service, workbook: Path) -> None:
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", workbook)
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        first = page.url.rsplit("/", 1)[1]
        pairs = httpx.get(f"{service.url}/v1/jobs/{first}/result").json()["assignment"]
        page.get_by_role("button", name="not this: Ann").click()
        page.get_by_role("button", name="Run again without these").click()
        page.wait_for_url(lambda url: not url.endswith(first))
        solved(page)
        excluding = page.url
        second = httpx.get(f"{service.url}/v1/jobs/{excluding.rsplit('/', 1)[1]}/result").json()
        page.get_by_role("button", name="Run a copy").click()  # its costs came as a short list
        page.wait_for_url(lambda url: url != excluding)
        solved(page)
        copy = httpx.get(f"{service.url}/v1/jobs/{page.url.rsplit('/', 1)[1]}/result").json()
    assert copy["assignment"] == second["assignment"]
    costs = np.array(MINUTES, dtype=float)
    costs[0, pairs[0]] = np.inf
    assert second["assignment"][0] != pairs[0]
    assert second["objective"] == costs[linear_sum_assignment(costs)].sum()


def test_what_is_impossible_is_an_answer_with_names(browser: Any, service: Service, tmp_path: Path) -> None:
    path = tmp_path / "nurses.csv"
    path.write_text("nurse,Early,Late,Night\nAda,1,,\nBen,2,,\nCy,3,4,5\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        assert page.inner_text("h1") == "No answer exists"
        assert "2 rows share 1 column: Ada, Ben." in page.inner_text(".lede")
        assert page.get_by_role("rowheader").all_inner_texts() == ["Ada", "Ben"]
        assert page.locator(".curve").count() == 0  # there is no number to draw
        assert page.get_by_role("button", name="PNG").count() == 0  # and no picture to save
        assert page.get_by_role("button", name="Run again", exact=True).count() == 1
