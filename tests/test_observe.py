"""Real Prometheus with this repository's rules beside a running service: every series that is asked for is there."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.http.metrics import Exporter
from tests.app.conftest import LAP, Service
from tests.test_deploy import DEPLOY, NAME, queries
from tests.workers.cluster import free_port
from tests.workers.service import eventually

GPUS = re.compile(r"allot_gpu_\w+")
"""There is no GPU here."""


@pytest.fixture(scope="module")
def prometheus(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address. It scrapes the service every half second, and has the rules of deploy/."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    exporter = Exporter("127.0.0.1", 0, service.app.state.metrics, service.app.state.jobs)
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    config["rule_files"] = [str(DEPLOY / "prometheus/alerts.yml")]
    (job,) = config["scrape_configs"]
    del job["dns_sd_configs"]  # the one thing that compose alone has
    job["static_configs"] = [{"targets": [f"127.0.0.1:{exporter.port}"]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    here = f"127.0.0.1:{free_port()}"
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([program, *words, f"--web.listen-address={here}"], stdout=log, stderr=log)
    try:
        eventually(lambda: _up(here), 30)
        yield f"http://{here}"
    finally:
        running.kill()
        running.wait()
        exporter.stop()


def _up(here: str) -> bool:
    try:
        told = httpx.get(f"http://{here}/api/v1/targets").json()
    except (httpx.TransportError, json.JSONDecodeError):
        return False
    return [target["health"] for target in told["data"]["activeTargets"]] == ["up"]


def asked(prometheus: str, query: str) -> list[Any]:
    told = httpx.get(f"{prometheus}/api/v1/query", params={"query": query}).json()
    assert told["status"] == "success", (query, told)
    found: list[Any] = told["data"]["result"]
    return found


def test_every_series_that_is_asked_for_is_there(service: Service, prometheus: str) -> None:
    with httpx.Client(base_url=service.url, timeout=60) as client:
        client.post("/v1/jobs", json=LAP, headers={"Prefer": "wait=30"}).raise_for_status()
        client.get("/v1/jobs").raise_for_status()
    wanted = {name for query in queries() for name in NAME.findall(query) if not GPUS.fullmatch(name)}
    assert len(wanted) > 8
    missing: set[str] = set()

    def there() -> bool:
        missing.clear()
        missing.update(name for name in wanted if not asked(prometheus, name))
        return not missing

    try:
        eventually(there, 15)
    except AssertionError:
        raise AssertionError(f"nobody tells {missing}") from None


def test_every_query_of_the_dashboard_is_understood(prometheus: str) -> None:
    for query in queries():
        asked(prometheus, query.replace("$__rate_interval", "1m"))


def test_rules_are_evaluated_and_a_healthy_service_sets_off_none(prometheus: str) -> None:
    rules: list[Any] = []

    def evaluated() -> bool:
        groups = httpx.get(f"{prometheus}/api/v1/rules").json()["data"]["groups"]
        rules[:] = [rule for group in groups for rule in group["rules"]]
        return bool(rules) and all(rule["health"] == "ok" for rule in rules)

    eventually(evaluated, 20)
    assert {rule["name"] for rule in rules if rule["state"] == "firing"} == set()
