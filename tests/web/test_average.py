"""A table of shapes, from the form to the masses of their average."""

from typing import Any

import pytest

from tests.app.conftest import Service
from tests.web.browser import faults_of, is_too_wide, opened


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.again), 390])
def test_an_average_of_two_days(browser: Any, service: Service, width: int) -> None:
    with opened(browser, service.url, width) as (page, _):
        page.goto("/solve/average")
        assert not is_too_wide(page)
        page.get_by_role("button", name="Type a small table").click()
        page.get_by_role("button", name="Find the average").click()
        page.wait_for_selector("text=cost of moving", timeout=60_000)
        page.wait_for_selector("text=Nothing is lost on the way", timeout=20_000)
        page.get_by_role("rowheader", name="10 h").first.wait_for()
        assert not is_too_wide(page)
        assert faults_of(page) == []
