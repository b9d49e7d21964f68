"""The floor: ways along its corridors, one department's alone, straight lines on request."""

from typing import Any

from tests.app.conftest import Service
from tests.web.browser import faults_of, keep_picture, opened, solved
from tests.workers.service import allowed


def test_ways_go_along_corridors_and_fade_for_one_department(browser: Any, service: Service) -> None:
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/layout?sample=office")
        page.wait_for_selector("text=Starts at once")
        page.get_by_role("button", name="Find a better layout").click()
        page.wait_for_selector("text=and the proof goes on")
        page.get_by_role("button", name="Stop and keep best").click()
        solved(page)
        assert page.locator("#picture .flow").count() == 0
        bands = page.locator("#picture .ways path").count()
        assert 60 < bands < 2000  # many trips share a band, and the document stays small
        page.mouse.move(0, 0)
        room = page.get_by_role("button", name="Reception,")
        room.hover()
        page.wait_for_selector("#picture .ways.off")
        assert 0 < page.locator("#picture .ways.far path").count() < bands
        page.wait_for_selector("text=/Reception: [0-9,]+ trips, most with /")
        keep_picture(page, "floor")
        assert faults_of(page) == []
        page.mouse.move(0, 0)
        page.wait_for_selector("#picture .ways.off", state="detached")
        room.focus()  # the same by key
        page.wait_for_selector("#picture .ways.off")
        page.get_by_role("button", name="Draw straight lines").click()
        page.wait_for_selector("#picture .flow")
        assert page.locator("#picture .ways").count() == 0
        page.get_by_role("button", name="Draw ways along corridors").click()
        page.wait_for_selector("#picture .ways")
        took = page.evaluate(POINTED)
        assert took < allowed(50), "median milliseconds of a frame while the pointer goes from room to room"


POINTED = """async () => {
  const rooms = [...document.querySelectorAll(".seat")], took = [];
  let last = performance.now();
  for (let at = 0; at < 40; at++) {
    rooms[at % rooms.length].dispatchEvent(new PointerEvent("pointerenter"));
    await new Promise(requestAnimationFrame);
    took.push(performance.now() - last);
    last = performance.now();
  }
  return took.sort((a, b) => a - b)[20];
}"""
