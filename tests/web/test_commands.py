"""The command bar: everything by its name, from the keyboard."""

from typing import Any

import httpx

from tests.app.conftest import LAP, Service, long_job
from tests.web.browser import faults_of, is_too_wide, keep_picture, opened


def test_a_sample_a_job_a_page_and_a_setting_by_name(browser: Any, service: Service) -> None:
    job = httpx.post(f"{service.url}/v1/jobs", json=LAP).json()["id"]
    with opened(browser, service.url) as (page, _):
        page.goto("/workers")
        page.wait_for_selector("h1")
        page.keyboard.press("Control+k")
        line = page.get_by_role("combobox", name="Command")
        line.wait_for()
        keep_picture(page, "commands")
        line.fill("clinic")
        page.wait_for_selector("[role=option]:has-text('Outpatient clinic')")
        assert faults_of(page) == []
        page.keyboard.press("Enter")
        page.wait_for_selector("text=puts all 24 departments into rooms")
        assert page.url.endswith("/solve/layout")  # a reload does not load the sample over what was typed since
        page.keyboard.press("Control+k")
        line.fill(job[:8])
        page.wait_for_selector(f"[role=option]:has-text('{job[:8]}')")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/jobs/{job}")
        page.keyboard.press("Control+k")
        line.fill("dark theme")
        page.keyboard.press("Enter")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.keyboard.press("Control+k")
        line.fill("facility planning")
        page.wait_for_selector("[role=option]:has-text('Facility planning')")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_url("**/docs/guides/facility-planning*")


def test_what_the_page_can_do_comes_first(browser: Any, service: Service) -> None:
    job = httpx.post(f"{service.url}/v1/jobs", json=long_job(100)).json()["id"]
    with opened(browser, service.url, 390) as (page, _):
        page.goto(f"/jobs/{job}")
        page.wait_for_selector(".curve")
        page.get_by_role("button", name="Theme and key").click()  # a phone has no keys
        page.get_by_role("button", name="Commands").click()
        page.wait_for_selector("[role=option]:has-text('Stop and keep the best')")
        assert not is_too_wide(page)
        assert faults_of(page) == []
        page.get_by_role("combobox", name="Command").fill("nothing is called this")
        page.wait_for_selector("text=Nothing here is called")
        page.get_by_role("combobox", name="Command").fill("stop and")
        page.get_by_role("option", name="Stop and keep the best").click()
        page.wait_for_selector("text=Stopped by you")
        page.keyboard.press("Control+k")
        page.wait_for_selector("dialog.commands")
        assert page.get_by_role("option", name="Stop and keep the best").count() == 0  # there is nothing to stop
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog.commands", state="detached")
