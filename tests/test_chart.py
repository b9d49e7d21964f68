"""The Helm chart: that it renders, and that what it renders hangs together."""

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from app.cli.main import parser
from tests.chart import CHART, Chart
from tests.test_compose import OTHERS, OURS
from workers.runtime.config import Settings
from workers.runtime.connection import connect, replicas_of

EXTERNAL = {"redis": {"external": {"address": "redis.example.com:6379"}}}
VARIANTS: list[dict[str, Any]] = [
    {},
    EXTERNAL,
    {"ingress": {"enabled": True}, "workers": {"keda": False, "gpu": {"enabled": False}}},
    {"networkPolicy": {"metricsFrom": {"team": "ops"}}, "settings": {"ALLOT_RESULT_TTL_S": "3600"}},
]


def kinds(documents: list[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in documents:
        found.setdefault(one["kind"], []).append(one["metadata"]["name"])
    return found


def pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in documents if one["kind"] in ("Deployment", "StatefulSet")]


@pytest.mark.parametrize("values", VARIANTS)
def test_every_object_is_whole(values: dict[str, Any]) -> None:
    documents = Chart(**values).all()
    for one in documents:
        assert one.keys() >= {"apiVersion", "kind", "metadata"}
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "allot"
    names = [(one["kind"], one["metadata"]["name"]) for one in documents]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("values", VARIANTS)
def test_selectors_find_their_pods(values: dict[str, Any]) -> None:
    documents = Chart(**values).all()
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in pods(documents)]
    for one in documents:
        spec = one.get("spec", {})
        wanted = spec.get("selector", spec.get("podSelector"))
        if wanted is None:
            continue
        wanted = wanted.get("matchLabels", {}) if "matchLabels" in wanted else wanted
        assert any(wanted.items() <= found.items() for found in labels), one["metadata"]["name"]


@pytest.mark.parametrize("values", VARIANTS)
def test_pods_are_bounded_probed_and_without_rights(values: dict[str, Any]) -> None:
    for one in pods(Chart(**values).all()):
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        volumes |= {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert "memory" in container["resources"]["limits"]
            assert "livenessProbe" in container
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            ports = {port["name"] for port in container.get("ports", [])}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asked = container.get(probe, {})
                port = asked.get("httpGet", asked.get("tcpSocket", {})).get("port")
                assert port is None or port in ports


@pytest.mark.parametrize("values", VARIANTS)
def test_commands_and_variables_exist(values: dict[str, Any]) -> None:
    for one in pods(Chart(**values).all()):
        for container in one["spec"]["template"]["spec"]["containers"]:
            if container.get("command", [""])[0] == "allot":
                parser().parse_args(container["command"][1:])
            for variable in container.get("env", []):
                assert variable["name"] in OURS | OTHERS | {"ALLOT_API_KEYS_FILE"}, variable


def test_what_is_there() -> None:
    found = kinds(Chart().all())
    assert found["Deployment"] == ["one-api", "one-gpu", "one-cpu"]
    assert found["ScaledObject"] == ["one-gpu", "one-cpu"]
    assert found["PodDisruptionBudget"] == ["one-api", "one-redis", "one-gpu", "one-cpu"]
    assert found["NetworkPolicy"] == ["one-api", "one-workers", "one-redis"]
    assert found["HorizontalPodAutoscaler"] == ["one-api"]
    assert "StatefulSet" not in kinds(Chart(**EXTERNAL).all())


def test_gpu_workers_get_gpus_and_others_none() -> None:
    workers = {one["metadata"]["name"]: one for one in pods(Chart().documents("workers.yaml"))}
    limits = {
        name: one["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] for name, one in workers.items()
    }
    assert limits["one-gpu"]["nvidia.com/gpu"] == 1
    assert "nvidia.com/gpu" not in limits["one-cpu"]


def test_the_address_of_redis_is_one_that_is_understood() -> None:
    def url(values: dict[str, Any]) -> str:
        api = Chart(**values).documents("api.yaml")[0]["spec"]["template"]["spec"]["containers"][0]
        return next(str(one["value"]) for one in api["env"] if one["name"] == "ALLOT_REDIS_URL")

    sentinel = url({})
    assert replicas_of(sentinel) == 1
    connect(sentinel).close()
    assert Settings.from_env({"ALLOT_REDIS_URL": url(EXTERNAL)}).redis_url == "redis://redis.example.com:6379/0"


def test_every_value_is_used_and_every_use_is_a_value() -> None:
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    used = set(re.findall(r"\.Values\.([A-Za-z]+)", text))
    assert used == values.keys()


def test_helm_finds_no_fault() -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed")
    subprocess.run(["helm", "lint", str(CHART)], check=True)
    rendered = subprocess.run(["helm", "template", "one", str(CHART)], check=True, capture_output=True, text=True)
    assert len([one for one in yaml.safe_load_all(rendered.stdout) if one]) == len(Chart().all())
    if shutil.which("kubeconform"):
        subprocess.run(
            ["kubeconform", "-strict", "-ignore-missing-schemas"], input=rendered.stdout, text=True, check=True
        )
