"""What is in deploy/, held against its own tools where they are installed and against the code everywhere."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.main import parser
from benchmarks import sizing
from workers.runtime.config import Settings
from workers.runtime.redis_server import COMPACT

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana/dashboards/allot.json").read_text())
NAME = re.compile(r"\ballot_[a-z_]+")


def run(*command: str, cwd: Path = ROOT) -> str:
    """What a tool says; the test is skipped where it is not installed, and fails where it finds fault."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def queries() -> list[str]:
    return [rule["expr"] for rule in RULES] + [one["expr"] for panel in DASHBOARD["panels"] for one in panel["targets"]]


def base(name: str) -> str:
    """The family that a series belongs to."""
    return re.sub(r"_(bucket|sum|count|total)$", "", name)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert re.fullmatch(r"\d+m", rule.get("for", "0m"))
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor == rule["alert"].lower()
    assert f"## {rule['alert']}\n" in (ROOT / page).read_text()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_has_a_time_to_fire_and_a_time_to_be_silent(rule: dict[str, Any]) -> None:
    tests = yaml.safe_load((DEPLOY / "prometheus/alerts_test.yml").read_text())["tests"]
    mine = [one for test in tests for one in test["alert_rule_test"] if one["alertname"] == rule["alert"]]
    assert {bool(one["exp_alerts"]) for one in mine} == {True, False}


def test_every_page_of_the_runbooks_is_an_alert() -> None:
    pages = re.findall(r"^## (\w+)$", (ROOT / "docs/operations/runbooks.md").read_text(), re.M)
    assert pages == [rule["alert"] for rule in RULES]


def test_every_query_of_the_dashboard_parses(tmp_path: Path) -> None:
    shown = [one["expr"].replace("$__rate_interval", "1m") for panel in DASHBOARD["panels"] for one in panel["targets"]]
    rules = [{"record": f"panel:{k}", "expr": expression} for k, expression in enumerate(shown)]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(shown)} rules found" in run("promtool", "check", "rules", str(tmp_path / "panels.yml"))


def test_promtool_finds_no_fault(tmp_path: Path) -> None:
    config = (DEPLOY / "prometheus/prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(config.replace("/etc/prometheus", str(DEPLOY / "prometheus")))
    run("promtool", "check", "config", str(tmp_path / "prometheus.yml"))
    assert "SUCCESS" in run("promtool", "test", "rules", str(DEPLOY / "prometheus/alerts_test.yml"))


PANEL: dict[str, Any] = {
    "type": "object",
    "required": ["id", "title", "type", "datasource", "gridPos", "targets", "fieldConfig"],
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "title": {"type": "string", "minLength": 1},
        "type": {"enum": ["timeseries", "stat"]},
        "datasource": {"const": {"type": "prometheus", "uid": "prometheus"}},
        "gridPos": {
            "type": "object",
            "required": ["x", "y", "w", "h"],
            "additionalProperties": False,
            "properties": {
                "x": {"type": "integer", "minimum": 0, "maximum": 23},
                "y": {"type": "integer", "minimum": 0},
                "w": {"type": "integer", "minimum": 1, "maximum": 24},
                "h": {"type": "integer", "minimum": 1},
            },
        },
        "targets": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["refId", "expr"],
                "properties": {
                    "refId": {"type": "string", "pattern": "^[A-Z]$"},
                    "expr": {"type": "string", "minLength": 1},
                    "legendFormat": {"type": "string"},
                },
            },
        },
        "fieldConfig": {
            "type": "object",
            "required": ["defaults", "overrides"],
            "properties": {"overrides": {"type": "array"}, "defaults": {"type": "object"}},
        },
    },
}
SCHEMA = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "version", "time", "templating", "annotations", "panels"],
    "properties": {
        "uid": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "title": {"type": "string"},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "time": {"type": "object", "required": ["from", "to"]},
        "refresh": {"type": "string", "pattern": "^[0-9]+[smh]$"},
        "panels": {"type": "array", "minItems": 1, "items": PANEL},
    },
}
"""What Grafana's model of a dashboard asks of the parts that are used here."""


def test_the_dashboard_is_what_grafana_reads() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(DASHBOARD, SCHEMA)
    for one in DASHBOARD["panels"]:
        assert one["gridPos"]["x"] + one["gridPos"]["w"] <= 24
        assert len({target["refId"] for target in one["targets"]}) == len(one["targets"])


def test_the_dashboard_is_one() -> None:
    assert DASHBOARD.keys() >= {"uid", "title", "schemaVersion", "panels", "time"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [tuple(panel["gridPos"][side] for side in "xy") for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    for panel in DASHBOARD["panels"]:
        assert panel.keys() >= {"title", "type", "datasource", "gridPos", "targets", "fieldConfig"}
        assert panel["datasource"]["uid"] == "prometheus"
        assert all(target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"])


def test_grafana_finds_what_it_is_given() -> None:
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert [source["uid"] for source in sources] == ["prometheus"]
    providers = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/allot.yml").read_text())["providers"]
    mounts = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["grafana"]["volumes"]
    assert any(mount.split(":")[1] == providers[0]["options"]["path"] for mount in mounts)


def test_caddy_finds_no_fault() -> None:
    run("caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "caddy/Caddyfile"))


def test_a_password_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("a/b@c\n")
    environ = {"ALLOT_REDIS_URL": "redis://redis:6379/0", "ALLOT_REDIS_PASSWORD_FILE": str(tmp_path / "password")}
    assert Settings.from_env(environ).redis_url == "redis://:a%2Fb%40c@redis:6379/0"
    given = environ | {"ALLOT_REDIS_URL": "redis://:mine@redis:6379/0"}
    assert Settings.from_env(given).redis_url == "redis://:mine@redis:6379/0"
    with pytest.raises(ValueError, match="ALLOT_REDIS_PASSWORD_FILE"):
        Settings.from_env(environ | {"ALLOT_REDIS_PASSWORD_FILE": "/nowhere"})


@pytest.mark.parametrize("file", ["docker-compose.yml", "deploy/helm/allot/templates/redis.yaml"])
def test_a_redis_of_its_own_host_is_as_compact_as_the_embedded_one(file: str) -> None:
    text = (ROOT / file).read_text()
    assert all(f"--{name} {value}" in text for name, value in COMPACT.items())


def test_log_formats_are_taken_by_the_command_line() -> None:
    for command in ("serve", "worker"):
        assert parser().parse_args([command, "--log-format", "json"]).log_format == "json"


def test_every_metric_that_is_asked_for_exists() -> None:
    text = (ROOT / "app/http/metrics.py").read_text()
    if "allot_job_queue_seconds" not in text:
        pytest.skip("the metrics of this version have other names")
    for what in re.findall(r"\"allot_jobs_\{what\}\"", text):
        text = text.replace(what, '"allot_jobs_waiting" "allot_jobs_running"')
    known = {base(name) for name in NAME.findall(text)}
    assert {base(name) for query in queries() for name in NAME.findall(query)} <= known


def test_nothing_is_summed_that_every_process_tells() -> None:
    """Jobs are counted in Redis: each API process tells the same number, and a plain sum would multiply it."""
    for query in queries():
        if re.search(r"allot_jobs_(total|waiting|running)|allot_workers", query) and "/" not in query:
            assert "max by" in query or "== 0" in query, query


def test_the_sizing_page_is_what_was_measured() -> None:
    text = sizing.PAGE.read_text()
    assert sizing.page(text) == text
    assert all(f"<!-- {name} -->\n" in text for name in sizing.TABLES.keys() - {"soak"})


def test_the_soak_page_is_what_was_counted() -> None:
    text = sizing.README.read_text()
    assert sizing.page(text) == text
    assert "<!-- soak -->\n" in text
    longest = max(sizing.rows("soak"), key=lambda row: row["minutes"])
    assert longest["grown"] == longest["wrong"] == []
