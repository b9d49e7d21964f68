"""What people do beside solving: share an answer, open a job on another machine, work by key, wait on a slow line."""

import time
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import Service, long_job, serve
from tests.web.browser import dropped, faults_of, is_too_wide, keep_picture, opened, solved, write_workbook

PLANNER_S = 180.0
"""How long a planner may need from a workbook to a layout; reading anything is not part of it."""
ROOMS = [("R1", 0, 0), ("R2", 10, 0), ("R3", 20, 0), ("R4", 0, 12), ("R5", 10, 12), ("R6", 20, 12)]
TEAMS = ["Sales", "Support", "Legal", "Lab", "Desk", "Store"]
TRIPS = {
    ("Sales", "Support"): 40,
    ("Sales", "Desk"): 25,
    ("Lab", "Store"): 60,
    ("Legal", "Desk"): 5,
    ("Lab", "Desk"): 8,
}


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """What a planner has: trips, distances, where rooms are, and who sits where today."""
    trips = [[one, *(TRIPS.get((one, other)) or TRIPS.get((other, one)) or 0 for other in TEAMS)] for one in TEAMS]
    metres = [[name, *(abs(x - a) + abs(y - b) for _, a, b in ROOMS)] for name, x, y in ROOMS]
    sheets: dict[str, list[list[Any]]] = {
        "Trips": [["trips a day", *TEAMS], *trips],
        "Metres": [["metres", *(name for name, _, _ in ROOMS)], *metres],
        "Rooms": [["room", "x", "y", "w", "h"], *([name, x, y, 9, 11] for name, x, y in ROOMS)],
        "Today": [["team", "room"], *([team, name] for team, (name, _, _) in zip(TEAMS, ROOMS, strict=True))],
    }
    return write_workbook(tmp_path / "office.xlsx", sheets)


def walked(seats: dict[str, str]) -> float:
    where = {name: (x, y) for name, x, y in ROOMS}
    ways = {pair: where[seats[pair[0]]] + where[seats[pair[1]]] for pair in TRIPS}
    return sum(trips * (abs(ways[pair][0] - ways[pair][2]) + abs(ways[pair][1] - ways[pair][3]))
               for pair, trips in TRIPS.items())  # fmt: skip


def test_a_planner_goes_from_a_workbook_to_a_floor_plan(
    browser: Any, service: Service, office: Path, tmp_path: Path
) -> None:
    begun = time.monotonic()
    with opened(browser, service.url) as (page, _):
        page.goto("/")
        page.get_by_role("link", name="Layout").click()
        page.locator("input[type=file]").set_input_files(office)
        page.wait_for_selector("text=puts all 6 departments into rooms")
        keep_picture(page, "planner-understood")
        page.get_by_role("button", name="Find a better layout").click()
        solved(page, 60_000)
        page.wait_for_selector("h1:has-text('less than today')", timeout=60_000)
        assert "The best possible" in page.inner_text(".lede")
        assert page.locator(".seat").count() == 6
        keep_picture(page, "planner-answer")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="XLSX", exact=True).click()
        path = tmp_path / "answer.xlsx"
        waiting.value.save_as(path)
        printed = page.pdf(landscape=True, format="A4")
        assert printed.startswith(b"%PDF")
        faults = faults_of(page)
    took = time.monotonic() - begun
    assert faults == []
    assert took < PLANNER_S
    rows = list(openpyxl.load_workbook(path)["Result"].iter_rows(values_only=True))[1:]
    seats = {str(row[0]): str(row[1]) for row in rows}
    assert sorted(seats) == sorted(TEAMS)
    assert sorted(seats.values()) == sorted(name for name, _, _ in ROOMS)
    assert walked(seats) < walked(dict(zip(TEAMS, (name for name, _, _ in ROOMS), strict=True)))


def test_an_answer_is_shared_read_without_a_key_and_taken_back(browser: Any, service: Service) -> None:
    secret, entry = new_key("ann")
    address, stop = serve(create_app(service.settings, HttpSettings(api_keys=(entry,))))
    asked: list[str] = []
    try:
        with opened(browser, address) as (page, heard):
            page.goto("/solve/layout")
            page.locator("#api-key").fill(secret)
            page.get_by_role("button", name="Use this key").click()
            page.get_by_role("button", name="Outpatient clinic").click()
            page.get_by_role("button", name="Find a better layout").click()
            page.get_by_role("button", name="Stop and keep best").click()
            page.get_by_role("button", name="Share").click()
            page.get_by_label("Show what was given").check()
            page.get_by_role("button", name="Make a link").click()
            link = page.get_by_label("The link").input_value()
            assert faults_of(page) == []
            keep_picture(page, "share")
            page.get_by_role("button", name="Close", exact=True).click()
            headline = page.inner_text("h1")
            names = page.get_by_role("rowheader").all_inner_texts()[:5]
            with opened(browser, address) as (guest, wrong):
                guest.on("request", lambda request: asked.append(request.url))
                guest.goto(link)
                guest.wait_for_selector("text=Shared with you")
                assert guest.inner_text("h1") == headline
                assert guest.get_by_role("rowheader").all_inner_texts()[:5] == names
                assert guest.locator(".seat").count() == 24
                assert faults_of(guest) == []
                assert guest.get_by_role("button", name="Run again").count() == 0
                guest.set_viewport_size({"width": 390, "height": 844})
                assert not is_too_wide(guest)
                keep_picture(guest, "shared-390")
                guest.set_viewport_size({"width": 1440, "height": 900})
                keep_picture(guest, "shared")
                page.get_by_role("button", name="Share").click()
                page.get_by_role("button", name="Revoke").click()
                page.wait_for_selector("text=The link shows nothing any more.")
                guest.reload()
                guest.wait_for_selector("text=This link shows nothing")
                assert all("404" in error for error in wrong.errors)
                wrong.errors.clear()
            heard.errors.clear()  # of the key that was asked for
    finally:
        stop()
    assert not [url for url in asked if link.split("#")[1] in url.split("#")[0]]
    assert {url.split("?")[0] for url in asked if "/v1/" in url} == {f"{address}/v1/shared"}


def test_names_come_along_to_another_browser(browser: Any, service: Service, tmp_path: Path) -> None:
    path = tmp_path / "minutes.csv"
    path.write_text("minutes,<b>A</b>,B\nAnn,4,1\nBen,2,0\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", path)
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        address = page.url
    with opened(browser, service.url) as (page, _):  # another context: nothing of the first is there
        page.goto(address)
        page.wait_for_selector("text=minutes in all")
        assert page.get_by_role("rowheader").all_inner_texts() == ["Ann", "Ben"]
        assert "<b>A</b>" in page.inner_text("table.data, .scroll table")


def test_all_by_key(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/jobs")
        page.wait_for_selector("h1")
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.wait_for_selector("text=Drop a spreadsheet")
        sample = page.get_by_role("button", name="Taxi dispatch")
        for _ in range(40):
            if sample.evaluate("one => one === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Starts at once")
        page.keyboard.press("Control+Enter")
        solved(page)
        page.keyboard.press("l")
        assert page.locator("input[name=scale][value=linear]").is_checked()
        page.keyboard.press("?")
        page.wait_for_selector("dialog[aria-label=Keys]")
        assert faults_of(page) == []
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        page.keyboard.press("g")
        page.keyboard.press("j")
        page.wait_for_selector("tr[id^=job-]")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "/jobs/" in url)


def test_a_slow_line_shows_the_shape_of_what_comes(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/solve")
        page.wait_for_selector("text=Drop a spreadsheet")
        wire = page.context.new_cdp_session(page)
        wire.send("Network.enable")
        slow = {"offline": False, "latency": 600, "downloadThroughput": 50_000, "uploadThroughput": 20_000}
        wire.send("Network.emulateNetworkConditions", slow)
        page.get_by_role("button", name="Taxi dispatch").click()
        page.wait_for_selector("text=What I understood", timeout=30_000)
        page.get_by_role("button", name="Find the best assignment").click()
        assert page.get_by_role("button", name="On its way").is_disabled()  # a second press sends no second job
        solved(page, 40_000)


def test_a_line_that_breaks_in_the_middle_of_a_job(browser: Any, service: Service) -> None:
    job = httpx.post(f"{service.url}/v1/jobs", json=long_job(100)).json()["id"]
    with opened(browser, service.url) as (page, heard):
        page.goto(f"/jobs/{job}")
        page.wait_for_selector(".curve")
        wire = page.context.new_cdp_session(page)
        wire.send("Network.enable")
        off = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        wire.send("Network.emulateNetworkConditions", off)
        page.wait_for_selector("text=The job goes on without you", timeout=30_000)
        assert page.locator(".curve").count() == 1  # the last picture stays
        assert page.locator(".clock.lost").count() == 1
        httpx.post(f"{service.url}/v1/jobs/{job}/cancel")
        wire.send("Network.emulateNetworkConditions", off | {"offline": False})
        solved(page, 40_000)
        assert "Stopped by you" in page.inner_text(".lede")
        heard.errors.clear()  # the browser reports the requests that were cut


def gpu(name: str, **told: Any) -> dict[str, Any]:
    card = {"uuid": f"GPU-{name}", "name": "NVIDIA H100", "driver": "580", "bytes_total": 80 << 30, "count": 1} | told
    return {"name": name, "device": "gpu", "queue": "gpu", "broken": {}, "gpu": card}


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.again), 390])
def test_what_gpus_do_and_what_a_key_may_not_see(browser: Any, service: Service, width: int) -> None:
    moving = {"bytes_free": 70 << 30, "bytes_used": 20 << 30, "utilisation": 93, "use_per_minute": [5, 80, 95, 93]}
    beat = {"state": "busy", "heartbeat_age_s": 0.2, "host_bytes": 64 << 30}
    told = {
        "devices": ["gpu"],
        "workers": [gpu("one", **moving) | beat, gpu("two", **moving) | beat | {"state": "idle"}],
    }
    with opened(browser, service.url, width) as (page, _):
        page.route("**/v1/devices", lambda route: route.fulfill(json=told))
        page.goto("/workers")
        page.wait_for_selector("text=1 of 2 workers is busy")
        assert page.get_by_role("img", name="25% of the memory is taken").count() == 2
        assert page.get_by_role("img", name="Use of the last 4 minutes, in percent: 5, 80, 95, 93").count() == 2
        assert faults_of(page) == []
        assert not is_too_wide(page)
        keep_picture(page, f"workers-{width}")
        page.unroute("**/v1/devices")
        page.route("**/v1/devices", lambda route: route.fulfill(json=told | {"workers": [gpu("one"), gpu("two")]}))
        page.reload()
        page.wait_for_selector("text=2 workers are there")
        assert "NaN" not in page.inner_text("body")
        assert "warming" not in page.inner_text("body")
        assert faults_of(page) == []


def test_an_option_that_nobody_knew_is_asked_for_and_sent(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/layout")
        page.get_by_role("button", name="Outpatient clinic").click()
        page.wait_for_selector("text=Starts at once")
        page.get_by_text("More options").click()
        page.get_by_label("tenure").fill("5, 30")  # a pair of numbers, or nothing
        page.get_by_label("tenure").press("Tab")
        page.get_by_label("bounds", exact=False).first.fill("gilmore-lawler, rlt1")
        page.get_by_label("bounds", exact=False).first.press("Tab")
        assert faults_of(page) == []
        keep_picture(page, "options")
        page.get_by_role("button", name="Find a better layout").click()
        page.get_by_role("button", name="Stop and keep best").click()
        solved(page)
        job = httpx.get(f"{service.url}/v1/jobs/{page.url.rsplit('/', 1)[1]}").json()
    assert job["options"]["tenure"] == [5, 30]
    assert job["options"]["bounds"] == ["gilmore-lawler", "rlt1"]
