"""The Helm chart: that it renders, and that what it renders hangs together."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.main import parser
from app.http.config import HttpSettings
from tests.chart import CHART, Chart
from tests.test_compose import OTHERS, OURS
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.primary import replicas_of

TOOLS = Path(__file__).parent.parent / ".venv-tools/bin"
EXTERNAL = {"redis": {"external": {"address": "redis.example.com:6379"}}}
VARIANTS: list[dict[str, Any]] = [
    {},
    EXTERNAL,
    {"ingress": {"enabled": True}, "workers": {"keda": False, "gpu": {"enabled": False}}},
    {
        "networkPolicy": {"metricsFrom": {"team": "ops"}},
        "settings": {"ALLOT_RESULT_TTL_S": "3600"},
        "together": {"enabled": True, "gpus": 2, "storageClass": "fast"},
    },
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


def test_memory_is_shared_by_containers_of_one_pod_alone() -> None:
    """A worker of another pod would not find there what a job's caller does not wait for on the disk."""
    values = {"together": {"enabled": True, "gpus": 2, "arenaBytes": 5e9}}
    (one,) = [one for one in pods(Chart(**values).all()) if one["metadata"]["name"] != "one-redis"]
    assert (one["spec"]["replicas"], one["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert not {"HorizontalPodAutoscaler", "ScaledObject"} & kinds(Chart(**values).all()).keys()
    pod = one["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["arena"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "5000000000"}
    assert volumes["data"]["persistentVolumeClaim"] == {"claimName": "one-data"}
    for container in pod["containers"]:
        told = {variable["name"]: variable.get("value") for variable in container["env"]}
        settings = Settings.from_env({name: value for name, value in told.items() if value is not None and
                                      name != "ALLOT_REDIS_PASSWORD_FILE"})  # fmt: skip
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert settings.arena_dir == mounts["arena"]
        assert settings.arena_bytes == 5_000_000_000
        assert str(settings.data_dir) == mounts["data"]
        assert settings.store_url == "file:"
    assert pod["containers"][1]["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert "ALLOT_ARENA_DIR" not in str(Chart().all())


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


def test_an_upgrade_leaves_the_number_of_workers_to_keda() -> None:
    for keda in (True, False):
        for one in Chart(workers={"keda": keda}).documents("workers.yaml"):
            if one["kind"] == "Deployment":
                assert ("replicas" in one["spec"]) != keda
    assert "replicas" not in Chart().documents("api.yaml")[0]["spec"]


def test_a_pod_has_the_time_that_its_end_takes() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    api = Chart().documents("api.yaml")[0]["spec"]["template"]["spec"]
    lame = next(float(one["value"]) for one in api["containers"][0]["env"] if one["name"] == "ALLOT_LAME_S")
    assert 0 < lame + HttpSettings().http_drain_s < api["terminationGracePeriodSeconds"]
    for one in pods(Chart().documents("workers.yaml")):
        assert one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > values["workers"]["drainSeconds"]


def tool(name: str) -> str:
    """Where a program of `make charttools` is; the test is skipped where there is none."""
    found = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}{TOOLS}")
    if found is None:
        pytest.skip(f"{name} is not installed; make charttools")
    return found


def helm(values: dict[str, Any], folder: Path) -> str:
    """What Helm itself makes of the chart."""
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    command = [tool("helm"), "template", "one", str(CHART), "--namespace", "here"]
    command += ["--values", str(folder / "values.yaml")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_helm_finds_no_fault() -> None:
    done = subprocess.run([tool("helm"), "lint", "--strict", str(CHART)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubeconform_finds_no_fault(tmp_path: Path) -> None:
    command = [tool("kubeconform"), "-strict", "-ignore-missing-schemas"]
    subprocess.run(command, input=helm({}, tmp_path), text=True, check=True)


@pytest.mark.parametrize("values", VARIANTS)
def test_helm_renders_what_the_tests_look_at(values: dict[str, Any], tmp_path: Path) -> None:
    def by_name(documents: Iterable[Any]) -> dict[tuple[str, str], Any]:
        return {(one["kind"], one["metadata"]["name"]): one for one in documents if one}

    assert by_name(yaml.safe_load_all(helm(values, tmp_path))) == by_name(Chart(**values).all())


@pytest.mark.parametrize("version", ["1.27", "1.30", "1.34", "1.37"])
def test_objects_are_what_kubernetes_takes(version: str, tmp_path: Path) -> None:
    """Against the schemas of the oldest release that the chart allows, of the newest, and of two between."""
    named = []
    for variant, values in enumerate(VARIANTS):
        for k, one in enumerate(Chart(**values).all()):
            if one["kind"] != "ScaledObject":  # KEDA's own, whose schema is below
                named.append(tmp_path / f"{variant}-{k}.yaml")
                named[-1].write_text(yaml.safe_dump(one))
    command = [tool("kubernetes-validate"), "--strict", "--quiet", "-k", version, *map(str, named)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_object_is_found(tmp_path: Path) -> None:
    wrong = Chart().documents("api.yaml")[0]
    wrong["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] = "http"
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    command = [tool("kubernetes-validate"), "--strict", "--quiet", "-k", "1.34", str(tmp_path / "wrong.yaml")]
    assert subprocess.run(command, capture_output=True).returncode != 0


SCALED: dict[str, Any] = {
    "type": "object",
    "required": ["scaleTargetRef", "triggers"],
    "additionalProperties": False,
    "properties": {
        "scaleTargetRef": {"type": "object", "required": ["name"]},
        "minReplicaCount": {"type": "integer"},
        "maxReplicaCount": {"type": "integer"},
        "cooldownPeriod": {"type": "integer"},
        "triggers": {
            "type": "array",
            "items": {
                "required": ["type", "metadata"],
                "properties": {"metadata": {"additionalProperties": {"type": "string"}}},
            },
        },
    },
}
"""What KEDA's documentation says of a ScaledObject, as far as the chart uses it."""


def test_workers_are_scaled_by_a_number_that_the_api_tells() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    ports = {one["metadata"]["name"]: one["spec"]["ports"] for one in Chart().all() if one["kind"] == "Service"}
    for one in Chart().documents("workers.yaml"):
        if one["kind"] != "ScaledObject":
            continue
        jsonschema.validate(one["spec"], SCALED)
        (trigger,) = one["spec"]["triggers"]
        host, port = re.findall(r"http://([\w-]+)\.here\.svc:(\d+)/metrics", trigger["metadata"]["url"])[0]
        assert int(port) in [found["port"] for found in ports[host]]
        assert re.fullmatch(r'allot_jobs_waiting\{queue="(cpu|gpu)"\}', trigger["metadata"]["valueLocation"])
