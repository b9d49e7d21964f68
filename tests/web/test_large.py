"""A picture of 4,000 points is drawn once, on a canvas; scrolling draws nothing of it again, and stays smooth."""

from typing import Any

import httpx
import numpy as np

from tests.app.conftest import Service
from tests.web.browser import opened, solved
from tests.workers.service import allowed

N = 4000
SCROLLED = """async () => {
  const took = [];
  let last = performance.now();
  for (let at = 0; at < 60; at++) {
    scrollTo(0, (at % 20) * 30);
    await new Promise(requestAnimationFrame);
    took.push(performance.now() - last);
    last = performance.now();
  }
  return took.sort((a, b) => a - b)[30];
}"""


def test_four_thousand_points_while_the_page_is_scrolled(browser: Any, service: Service) -> None:
    rng = np.random.default_rng(8)
    columns = np.sort(np.stack([np.arange(N), (np.arange(N) + 7) % N], axis=1), axis=1)
    worth = rng.integers(1, 99, 2 * N).tolist()
    csr = {
        "indptr": list(range(0, 2 * N + 1, 2)),
        "indices": columns.ravel().tolist(),
        "values": worth,
        "shape": [N, N],
    }
    told = {"solver": "auction", "inputs": {"benefit": {"csr": csr}}, "keep_inputs": True}
    job = httpx.post(f"{service.url}/v1/jobs", json=told, headers={"Prefer": "wait=30"}, timeout=60).json()["id"]
    places = rng.random((2, N, 2)).round(4).tolist()
    note = {"title": "Many", "from": places[0], "to": places[1]}
    assert httpx.put(f"{service.url}/v1/jobs/{job}/note", json=note).is_success
    with opened(browser, service.url) as (page, _):
        page.goto(f"/jobs/{job}")
        solved(page)
        page.wait_for_selector("canvas.many")
        assert page.get_by_role("img", name="4000 of 4000 rows with one column each").count() == 1
        marks = page.evaluate("document.querySelectorAll('#main *').length")
        assert marks < 2000
        took = page.evaluate(SCROLLED)
        print("median ms of a frame:", took)
        assert took < allowed(50)
