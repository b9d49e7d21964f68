"""Lines that break, stall or answer late: a page mends itself, and its curve has lost nothing."""

from typing import Any

import httpx

from tests.app.conftest import Service, long_job
from tests.web.browser import opened, solved, try_now

OFF = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def steps(page: Any) -> list[str]:
    return [page.locator(f".curve .{name}").get_attribute("d") for name in ("d-found", "d-floor")]


def test_a_curve_is_whole_after_a_break(browser: Any, service: Service) -> None:
    """The one that was cut off twice shows the same steps as one that heard all of it."""
    job = httpx.post(f"{service.url}/v1/jobs", json=long_job(60)).json()["id"]
    with opened(browser, service.url) as (page, heard):
        page.goto(f"/jobs/{job}")
        page.wait_for_selector(".curve")
        wire = page.context.new_cdp_session(page)
        wire.send("Network.enable")
        for _ in range(2):
            wire.send("Network.emulateNetworkConditions", OFF)
            page.wait_for_selector("text=The job goes on without you")
            page.wait_for_timeout(1500)
            wire.send("Network.emulateNetworkConditions", OFF | {"offline": False})
            page.wait_for_selector("text=The job goes on without you", state="detached")
        httpx.post(f"{service.url}/v1/jobs/{job}/cancel")
        solved(page, 40_000)
        cut = steps(page)
        page.reload()
        solved(page)
        page.wait_for_selector(".curve")
        page.wait_for_function("was => document.querySelector('.curve .d-found').getAttribute('d') === was", arg=cut[0])
        assert steps(page) == cut
        heard.errors.clear()  # the browser reports the requests that were cut


def test_a_record_that_cannot_be_fetched_when_the_job_ends_is_asked_for_again(browser: Any, service: Service) -> None:
    """The stream comes through, and nothing else does for a while: the page said that there was no such job."""
    job = httpx.post(f"{service.url}/v1/jobs", json=long_job(60)).json()["id"]
    with opened(browser, service.url) as (page, heard):
        page.goto(f"/jobs/{job}")
        page.wait_for_selector(".curve")
        page.route(f"**/v1/jobs/{job}", lambda route: route.abort())
        page.route(f"**/v1/jobs/{job}/result", lambda route: route.fulfill(status=503, json={"detail": "starting"}))
        httpx.post(f"{service.url}/v1/jobs/{job}/cancel")
        page.wait_for_selector("text=The job goes on without you")
        assert page.locator(".curve").count() == 1
        page.unroute(f"**/v1/jobs/{job}")
        try_now(page)
        page.wait_for_timeout(500)
        page.unroute(f"**/v1/jobs/{job}/result")
        solved(page, 30_000)
        heard.errors.clear()


def test_a_finished_job_opened_on_a_broken_line_comes_by_itself(browser: Any, service: Service) -> None:
    """Nothing of the service answers at first, then all but the stream; the answer was never asked for."""
    told = {"solver": "lap", "inputs": {"cost": [[4, 1, 3], [2, 0, 5], [3, 2, 2]]}}
    job = httpx.post(f"{service.url}/v1/jobs", json=told, headers={"Prefer": "wait=30"}, timeout=60).json()["id"]
    with opened(browser, service.url) as (page, heard):
        page.route("**/v1/**", lambda route: route.abort())
        page.goto(f"/jobs/{job}")
        page.wait_for_selector("text=No connection since")
        page.route("**/events", lambda route: route.abort())
        page.unroute("**/v1/**")
        page.wait_for_selector("h1")
        page.unroute("**/events")
        solved(page, 30_000)
        page.wait_for_selector("#picture")
        heard.errors.clear()


def test_improvements_are_drawn_twice_a_second_and_the_last_is_kept(browser: Any, service: Service) -> None:
    """A stream of fifty a second for three seconds; the page is drawn again at most twice in each."""
    job = httpx.post(f"{service.url}/v1/jobs", json=long_job(60)).json()["id"]
    with opened(browser, service.url) as (page, _):
        page.add_init_script(STREAM)
        page.goto(f"/jobs/{job}")
        page.wait_for_selector("h1:has-text('total way')")
        page.wait_for_function("() => window.sent === 150")
        page.wait_for_selector("h1:has-text('850 total way')")
        assert 4 <= page.evaluate("window.drawn") <= 3 + 2 * page.evaluate("window.took")
        assert page.locator("table.better tbody tr").count() == 6
        assert "150" in page.inner_text("h2:has-text('Improvements') + span")
    httpx.delete(f"{service.url}/v1/jobs/{job}")


STREAM = """
const real = window.fetch;
window.sent = 0;
window.drawn = 0;
window.fetch = (path, init) => {
  if (!String(path).endsWith("/events")) return real(path, init);
  const body = new ReadableStream({
    start(told) {
      const say = () => {
        const objective = 999 - window.sent;
        const data = {phase: "solve", fraction: null, iteration: 1, objective, bound: 10, gap: null,
                      elapsed_s: 0.02 * ++window.sent,
                      permutation: Array.from({length: 40}, (_, i) => (i + objective) % 40)};
        const lines = ["id: 1-" + window.sent, "event: incumbent", "data: " + JSON.stringify(data), "", ""];
        told.enqueue(new TextEncoder().encode(lines.join("\\n")));
        window.took = (performance.now() - begun) / 1000;
        if (window.sent === 150) clearInterval(timer);
      };
      const begun = performance.now();
      const timer = setInterval(say, 20);
    },
  });
  return Promise.resolve(new Response(body, {status: 200}));
};
addEventListener("DOMContentLoaded", () => {
  let was = "";
  new MutationObserver(() => {
    const now = document.querySelector("h1")?.textContent;
    if (now !== was && /total way/.test(now)) window.drawn += 1;
    was = now;
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
});
"""
