"""The dashboard and the alerts, asked of a real Prometheus that scrapes a live service: every panel shows something."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.app.conftest import LAP, Service
from tests.workers.cluster import free_port
from tests.workers.service import allowed, eventually
from workers.runtime.connection import connect

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
PANELS = json.loads((DEPLOY / "grafana/dashboards/allot.json").read_text())["panels"]
RULES = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
SCRAPE_S = 0.5
GPU: dict[str, Any] = {
    "device": "gpu", "queue": "gpu", "state": "idle", "host_bytes": 1 << 34, "broken": {},
    "gpu": {"uuid": "GPU-1", "name": "A GPU", "driver": "1", "bytes_total": 8 << 30, "bytes_free": 6 << 30, "count": 1,
            "readings": [{"uuid": "GPU-1", "utilisation": 0.5, "bytes_used": 2 << 30, "celsius": 60}]},
}  # fmt: skip
"""What a worker with a GPU writes of itself. Nothing else here tells of one on a machine that has none."""


class Prometheus:
    """The real one, on a free port, with the alerts and one service to scrape."""

    def __init__(self, folder: Path, target: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": f"{int(1000 * SCRAPE_S)}ms", "evaluation_interval": "1s"},
            "rule_files": [str(DEPLOY / "prometheus/alerts.yml")],
            "scrape_configs": [{"job_name": "allot", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        program = shutil.which("prometheus")
        assert program is not None
        command = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=log, stderr=log
            )

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def asked(self, query: str) -> list[Any]:
        """The series that a query gives now. Raises where it does not parse."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=30).json()
        assert answer["status"] == "success", f"{query}: {answer}"
        return list(answer["data"]["result"])


@pytest.fixture(scope="module")
def prometheus(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has scraped the service before, amid and behind some jobs."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    redis = connect(service.settings.redis_url)
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), service.url.removeprefix("http://"))
    try:
        redis.hset("allot:workers", "gpu-0-one", json.dumps({**GPU, "heartbeat": time.time() + 3600}))
        eventually(made.ready, 60)
        eventually(lambda: bool(made.asked("allot_redis_up == 1")), 30)
        give_up = time.monotonic() + allowed(6)
        while time.monotonic() < give_up:
            job = {**LAP, "device": "cpu"}
            assert httpx.post(f"{service.url}/v1/jobs", json=job, headers={"Prefer": "wait=30"}).status_code == 200
            time.sleep(0.1)
        yield made
    finally:
        redis.hdel("allot:workers", "gpu-0-one")
        made.process.terminate()
        made.process.wait(30)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_query_of_every_panel_returns_data(prometheus: Prometheus, panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", "60s")
        assert "$" not in query
        eventually(lambda query=query: has_numbers(prometheus.asked(query)), 20)  # type: ignore[misc]
        legend = re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
        for series in prometheus.asked(query):
            assert series["metric"].keys() >= set(legend), (query, legend, series)


def has_numbers(found: list[Any]) -> bool:
    """Whether a series has a value that a panel can draw."""
    return any(series["value"][1] != "NaN" for series in found)


def test_a_healthy_service_raises_no_alert(prometheus: Prometheus) -> None:
    groups = httpx.get(f"{prometheus.url}/api/v1/rules", timeout=30).json()["data"]["groups"]
    known = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert known.keys() == {rule["alert"] for rule in RULES}
    assert {rule["health"] for rule in known.values()} <= {"ok", "unknown"}
    eventually(lambda: all(rule_health(prometheus).values()), 20)
    assert [name for name, rule in known.items() if rule["state"] == "firing"] == []


def rule_health(prometheus: Prometheus) -> dict[str, bool]:
    """Whether each rule was evaluated without an error."""
    groups = httpx.get(f"{prometheus.url}/api/v1/rules", timeout=30).json()["data"]["groups"]
    return {rule["name"]: rule["health"] == "ok" for group in groups for rule in group["rules"]}
