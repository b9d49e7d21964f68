"""Jobs of each problem side by side: what is found, what differs, and that nothing is called better that is not."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.conftest import Service
from tests.web.browser import faults_of, is_too_wide, keep_picture, opened


def solved_job(service: Service, note: dict[str, Any] | None = None, **told: Any) -> str:
    made = httpx.post(f"{service.url}/v1/jobs", json=told, headers={"Prefer": "wait=30"}, timeout=60)
    assert made.is_success, made.text
    job = httpx.get(f"{service.url}/v1/jobs/{made.json()['id']}?wait=30", timeout=60).json()
    assert job["state"] == "succeeded", job
    if note:
        assert httpx.put(f"{service.url}/v1/jobs/{job['id']}/note", json=note).is_success
    return str(job["id"])


def compared(page: Any, jobs: list[str]) -> str:
    page.goto(f"/compare?jobs={','.join(jobs)}")
    page.wait_for_selector("table.strips")
    return str(page.inner_text("h1"))


def looked_at(page: Any, name: str) -> None:
    """As axe-core, a phone and a person see it."""
    page.wait_for_selector("text=What differs")
    assert faults_of(page) == []
    keep_picture(page, f"compare-{name}")
    page.set_viewport_size({"width": 390, "height": 844})
    assert not is_too_wide(page)


def test_two_assignments_that_differ_by_rounding_alone(browser: Any, service: Service) -> None:
    """Their bound lies a rounding away from the answer: a scale of that width once kept the page busy for ever."""
    cost = (np.random.default_rng(11).random((48, 56)) * 60).round(1).tolist()
    jobs = [solved_job(service, solver="lap", inputs={"cost": cost}) for _ in range(2)]
    with opened(browser, service.url) as (page, _):
        assert compared(page, jobs).startswith("Both come to ")
        page.wait_for_selector("text=Nothing: the answers are the same, row by row.")
        looked_at(page, "assign")


def test_matchings_have_a_ceiling_and_tell_what_differs(browser: Any, service: Service) -> None:
    worth = [[7, 4, 0], [0, 6, 3], [5, 0, 8]]
    first, second = ({"benefit": worth}, {"benefit": [[1, 9, 0], *worth[1:]]})
    note = {"title": "Shifts", "rows": ["Ann", "Ben", "Cy"], "columns": ["Early", "Late", "Night"], "rowWord": "nurse"}
    options = {"allow_unassigned": True}
    jobs = [solved_job(service, note, solver="auction", inputs=one, options=options) for one in (first, second)]
    with opened(browser, service.url) as (page, _):
        assert "% more than the other" in compared(page, jobs)
        assert "not all given the same numbers" in page.inner_text(".lede")
        assert "above the ceiling" in page.inner_text(".legend")
        table = page.get_by_role("region", name="What differs")
        assert table.get_by_role("rowheader").first.inner_text() == "Ann"
        grey = page.locator(".strips tbody .f-line").first
        box = grey.bounding_box()
        dot = page.locator(".strips tbody circle.f-accent").first.bounding_box()
        assert box["x"] + box["width"] > dot["x"] + dot["width"]  # what nobody reaches lies beyond what was found
        looked_at(page, "match")


def test_transports_are_drawn_in_one_scale_of_colours(browser: Any, service: Service) -> None:
    x = np.random.default_rng(12).random((20, 2)).round(3).tolist()
    jobs = [
        solved_job(service, solver="uot", inputs={"x": x, "y": x[::-1]}, options={"reg": reg, "reg_m": "inf"})
        for reg in (0.01, 0.5)
    ]
    with opened(browser, service.url) as (page, _):
        compared(page, jobs)
        page.wait_for_selector(".plans canvas")
        assert page.locator(".plans h3").all_inner_texts() == ["Reg 0.01\n1 moved", "Reg 0.5\n1 moved"]
        scales = page.locator(".plans .heat-scale").all_text_contents()
        assert len(scales) == 2
        assert scales[0] == scales[1]
        shown = page.get_by_role("region", name="What differs").get_by_role("row").nth(1).inner_text().split("\t")
        plans = [np.array(httpx.get(f"{service.url}/v1/jobs/{one}/result").json()["plan"]) for one in jobs]
        most = np.abs(plans[0] - plans[1]).max()
        assert abs(float(shown[2]) - float(shown[3])) == pytest.approx(most, rel=1e-3)
        looked_at(page, "transport")


def test_other_questions_are_not_compared(browser: Any, service: Service) -> None:
    cost = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]
    jobs = [solved_job(service, solver="lap", inputs={"cost": cost}, options={"maximize": up}) for up in (True, False)]
    with opened(browser, service.url) as (page, _):
        page.goto(f"/compare?jobs={','.join(jobs)}")
        page.wait_for_selector("h1:has-text('These are different problems')")


def test_layouts_of_other_trips_are_not_measured_by_the_first(browser: Any, service: Service) -> None:
    distance = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    flows = ([[0, 5, 1], [5, 0, 1], [1, 1, 0]], [[0, 50, 10], [50, 0, 10], [10, 10, 0]])
    jobs = [solved_job(service, solver="qap", inputs={"flow": flow, "distance": distance}) for flow in flows]
    worth = [httpx.get(f"{service.url}/v1/jobs/{one}/result").json()["objective"] for one in jobs]
    with opened(browser, service.url) as (page, _):
        compared(page, jobs)
        assert [int(one) for one in page.locator(".strips tbody td:nth-child(3)").all_inner_texts()] == worth
        assert "not all given the same numbers" in page.inner_text(".lede")
