"""Five people's tasks, as by people who have read nothing: from `/`, by what is written on the page, timed.

ALLOT_TASKS names a file for the figures (docs/notes/workbench.md). A step is one press, one choice, one file or one
typed entry; `reading` is what the page added since, at 240 words a minute, and a step costs 2.5 s of looking, deciding
and pointing (Card, Moran and Newell 1980: 1.35 s to prepare and 1.1 s to point). `machine` is what the clock said.
"""

import csv
import io
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tests.app.conftest import Service
from tests.web.browser import faults_of, keep_picture, opened, solved, write_workbook
from tests.web.test_people import PLANNER_S, ROOMS, TRIPS, office, walked

__all__ = ["office"]
STEP_S, WORDS_A_SECOND = 2.5, 4.0


class Person:
    """Somebody at a page: every step is counted, and every word that was not there before is read, but no table."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.steps = 0
        self.words = 0
        self.headline = ""
        self._known: set[str] = set()

    def look(self) -> None:
        """Read what is new."""
        tables, everything = self.page.evaluate(SEEN)
        own = set(tables.splitlines())
        lines = [line for line in everything.splitlines() if line.strip() and line not in own]
        self.words += sum(len(line.split()) for line in lines if line not in self._known)
        self._known |= set(lines)

    def press(self, name: str, role: str = "button") -> None:
        self.step()
        self.page.get_by_role(role, name=name, exact=True).click()

    def give(self, *paths: Path) -> None:
        """Drop files on the page."""
        self.step()
        self.page.locator("input[type=file]").set_input_files(list(paths))
        self.page.wait_for_selector("text=What I understood")

    def step(self) -> None:
        self.look()
        self.steps += 1

    def save(self, name: str, folder: Path) -> Path:
        with self.page.expect_download() as waiting:
            self.press(name)
        path: Path = folder / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path


@contextmanager
def someone(browser: Any, service: Service, task: str) -> Iterator[Person]:
    """A new user at the first page; at the end their time is kept, and is under three minutes."""
    with opened(browser, service.url) as (page, _):
        begun = time.monotonic()
        page.goto("/")
        page.wait_for_selector("text=Drop a spreadsheet")
        person = Person(page)
        yield person
        person.look()
        person.headline = page.inner_text("h1")
        machine_s = time.monotonic() - begun
        keep_picture(page, f"task-{task}")
    told: dict[str, Any] = {
        "task": task,
        "machine_s": round(machine_s, 1),
        "steps": person.steps,
        "words": person.words,
    }
    told["person_s"] = round(machine_s + person.steps * STEP_S + person.words / WORDS_A_SECOND)
    if out := os.environ.get("ALLOT_TASKS"):
        with Path(out).open("a") as file:
            file.write(json.dumps(told) + "\n")
    assert told["person_s"] < PLANNER_S, told


def table(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"))))[1:]


def test_tracking_which_detection_is_which_track(browser: Any, service: Service, tmp_path: Path) -> None:
    """Likeness of 20 tracks and 24 detections, most pairs too far apart to be looked at."""
    rng = np.random.default_rng(3)
    likeness = np.where(rng.random((20, 24)) < 0.25, rng.integers(1, 99, (20, 24)), 0)
    likeness[np.arange(20), rng.permutation(24)[:20]] += 50
    path = tmp_path / "likeness.csv"
    lines = [",".join(["likeness", *(f"D{j}" for j in range(24))])]
    lines += [",".join([f"T{i}", *(str(v) if v else "" for v in row)]) for i, row in enumerate(likeness)]
    path.write_text("\n".join(lines))
    with someone(browser, service, "tracking") as person:
        person.give(path)  # most of its cells are empty
        person.page.wait_for_url("**/solve/match")
        person.press("Find the best matching")
        solved(person.page)
        rows = table(person.save("CSV", tmp_path))
    taken = [(int(row[0][1:]), int(row[1][1:])) for row in rows if row[1].startswith("D")]
    best = likeness[linear_sum_assignment(likeness, maximize=True)].sum()
    assert len({column for _, column in taken}) == len(taken)
    assert sum(likeness[i, j] for i, j in taken) == best


def test_single_cell_which_cells_become_which(browser: Any, service: Service, tmp_path: Path) -> None:
    """Two days of cells as an embedding, in two files; the plan as an array."""
    rng = np.random.default_rng(4)
    days = []
    for day, count, shift in ((2, 60, 0.0), (4, 70, 1.0)):
        cells = rng.normal(shift, 1, (count, 3))
        path = tmp_path / f"day{day}.csv"
        lines = [f"cell {i},{x:.4f},{y:.4f},{z:.4f}" for i, (x, y, z) in enumerate(cells)]
        path.write_text("\n".join([f"day {day},PC 1,PC 2,PC 3", *lines]))
        days.append(path)
    with someone(browser, service, "single cell") as person:
        person.give(*days)
        person.page.wait_for_url("**/solve/transport")
        person.press("Find the cheapest plan")
        solved(person.page)
        plan = np.load(person.save("npz", tmp_path))["plan"]
    assert plan.shape == (60, 70)
    assert plan.min() >= 0
    assert 0 < plan.sum() < 1.0001


def test_machine_learning_an_array_in_an_array_out(browser: Any, service: Service, tmp_path: Path) -> None:
    """A cost matrix from NumPy, checked in the browser, and the program that does the same."""
    cost = np.random.default_rng(5).random((256, 256))
    np.save(tmp_path / "cost.npy", cost)
    with someone(browser, service, "machine learning") as person:
        person.give(tmp_path / "cost.npy")
        person.step()
        person.page.get_by_text("The same from a program").click()
        person.step()
        person.page.locator("label:has-text('Python')").click()
        assert "import httpx" in person.page.get_by_label("The job in Python").inner_text()
        person.press("Find the best assignment")
        solved(person.page)
        person.press("Verify in your browser")
        person.page.wait_for_selector("text=Verified here")
        found = np.load(person.save("npz", tmp_path))["assignment"]
    assert cost[np.arange(256), found].sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum())


def test_facility_planning_from_a_workbook_to_paper(browser: Any, service: Service, office: Path) -> None:
    """Trips, distances, rooms and today's seats in a workbook; the layout on a page of A4."""
    with someone(browser, service, "facility planning") as person:
        person.give(office)
        person.page.wait_for_url("**/solve/layout")
        person.press("Find a better layout")
        solved(person.page, 60_000)
        person.page.wait_for_selector("h1:has-text('less than today')")
        person.page.evaluate("window.print = () => (window.printed = true)")
        person.press("Print")
        assert person.page.evaluate("window.printed")
        person.page.emulate_media(media="print")
        assert person.page.locator("#picture").is_visible()
        assert person.page.locator("h1").is_visible()
        assert person.page.get_by_role("rowheader").first.is_visible()
        assert not person.page.get_by_role("button", name="Run a copy").is_visible()
        keep_picture(person.page, "printed")
        paper = person.page.pdf(landscape=True, format="A4")
        person.page.emulate_media(media="screen")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") <= 3


def test_facility_planning_from_lists_alone(browser: Any, service: Service, tmp_path: Path) -> None:
    """What a planner has who never made a table: trips as a list below a title, rooms with positions, no distances."""
    trips: list[list[Any]] = [["Trips of March"], [], ["from", "to", "trips a week"]]
    trips += [[*sorted([one, other]), count] for (one, other), count in TRIPS.items()]
    rooms: list[list[Any]] = [["room", "x", "y", "w", "h"], *([name, x, y, 9, 11] for name, x, y in ROOMS)]
    path = write_workbook(tmp_path / "lists.xlsx", {"Trips": trips, "Rooms": rooms})
    with someone(browser, service, "facility planning, lists") as person:
        person.give(path)
        person.page.wait_for_url("**/solve/layout")
        icon = ".icon path >> nth=0"
        good = person.page.locator(f"p:has-text('so I can draw the floor') {icon}").get_attribute("d")
        bad = person.page.locator(f".notice:has-text('A layout needs distances') {icon}").get_attribute("d")
        assert good != bad  # what is well has no warning beside it
        person.press("Measure them")
        person.press("Find the best layout")
        solved(person.page, 60_000)
        assert "The best possible" in person.page.inner_text(".lede")
        saved = table(person.save("CSV", tmp_path))
    seats = {row[0]: row[1] for row in saved}
    assert sorted(seats) == sorted({name for pair in TRIPS for name in pair})
    told = float(person.headline.split(" ")[0].replace(",", ""))
    assert told == pytest.approx(walked(seats))


def test_a_file_on_the_wrong_tab_is_told_where_it_belongs(browser: Any, service: Service, office: Path) -> None:
    """Whoever chose a problem keeps it; the other is one press away."""
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/transport")
        page.locator("input[type=file]").set_input_files(office)
        page.wait_for_selector("text=This looks like a layout")
        assert page.url.endswith("/solve/transport")
        assert faults_of(page) == []
        page.locator(".notice").get_by_role("link", name="Layout").click()
        page.wait_for_selector("text=puts all 6 departments into rooms")
        assert page.get_by_text("This looks like").count() == 0


def test_operations_who_takes_which_shift(browser: Any, service: Service, tmp_path: Path) -> None:
    """Pasted from a spreadsheet, with a word in a cell; one pair is refused afterwards; who asked gets a link."""
    text = "hours\tEarly\tLate\tNight\nAda\t1\t4\tn/a\nBen\t2\t3\t5\nCy\t3\t3\t4"
    with someone(browser, service, "operations") as person:
        page = person.page
        person.step()
        page.evaluate(PASTE, text)
        page.wait_for_selector("text=is text: “n/a”")
        person.press("Find the best assignment")
        solved(page)
        person.step()
        page.get_by_role("button", name="not this: Ada").click()
        before = page.url
        person.press("Run again without these")
        page.wait_for_url(lambda url: url != before)
        solved(page)
        rows = table(person.save("CSV", tmp_path))
        person.press("Share")
        person.press("Make a link")
        assert "/shared#" in page.get_by_label("The link").input_value()
        person.press("Close")
    given = {row[0]: row[1] for row in rows}
    assert given["Ada"] == "Late"
    assert sorted(given.values()) == ["Early", "Late", "Night"]


SEEN = """(() => {
  const tables = [...document.querySelectorAll("main table, main pre, main svg")].map((one) => one.innerText || "");
  return [tables.join("\\n"), document.querySelector("main").innerText];
})()"""
"""Tables and all text of one moment: a program that appears between two looks would be read as prose."""
PASTE = """text => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true}));
}"""
