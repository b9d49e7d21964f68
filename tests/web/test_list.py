"""What the list of jobs says of each is what its own page says."""

import json
from typing import Any

import httpx
import numpy as np

from tests.app.conftest import Service
from tests.web.browser import opened

COST = np.random.default_rng(31).integers(1, 99, (520, 3)).T.tolist()


def solved_job(service: Service) -> dict[str, Any]:
    told = {"solver": "lap", "inputs": {"cost": COST}, "keep_inputs": True}
    answer: dict[str, Any] = httpx.post(
        f"{service.url}/v1/jobs", json=told, headers={"Prefer": "wait=30"}, timeout=60
    ).json()
    return answer


def test_a_large_job_is_listed_with_its_answer(browser: Any, service: Service) -> None:
    """The last report of a search was shown as the answer: 221,144 and "the best possible", where that was 164,259."""
    answer = solved_job(service)
    asked: list[str] = []

    def reported(route: Any) -> None:
        told = route.fetch().json()
        for job in told["jobs"]:
            if job["id"] == answer["id"]:
                job["progress"] = {"phase": "solve", "objective": 98765, "bound": 1, "elapsed_s": 0.1}
        route.fulfill(body=json.dumps(told), content_type="application/json")

    with opened(browser, service.url) as (page, _):
        page.route("**/v1/jobs?limit=50*", reported)
        page.on("request", lambda request: asked.append(request.url))
        page.goto("/jobs")
        row = page.locator(f"#job-{answer['id']}")
        row.get_by_text("the best possible; proved").wait_for()
        assert row.locator(".ans b").inner_text() == f"{answer['objective']:,}"
    assert any(one.endswith(f"{answer['id']}/result?arrays=false") for one in asked)
