"""The Compose files and Dockerfiles, without a Docker engine: their structure, and that whatever they name exists."""

import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.main import parser
from app.http.config import HttpSettings
from deploy.pins import pinned
from workers.runtime.config import Settings

ROOT = Path(__file__).parent.parent
FILES = ("docker-compose.yml", "docker/compose.per-gpu.yml", "docker/compose.s3.yml")
DOCKERFILES = ("docker/api.Dockerfile", "docker/worker.Dockerfile")

# What the Compose specification allows, as far as these files use it. A key that is not here is a slip of the pen.
TOP = {"services", "volumes", "secrets"}
SERVICE: dict[str, type | tuple[type, ...]] = {
    "build": dict, "image": str, "command": list, "entrypoint": list, "environment": dict, "ports": list,
    "volumes": list, "depends_on": dict, "deploy": dict, "profiles": list, "healthcheck": dict, "restart": str,
    "read_only": bool, "secrets": list, "tmpfs": list, "cap_drop": list, "security_opt": list, "init": bool,
    "stop_grace_period": str,
}  # fmt: skip
BUILD = {"context", "dockerfile"}
HEALTH = {"test", "interval", "timeout", "retries", "start_period"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
DEVICE = {"driver", "count", "device_ids", "capabilities"}
DURATION = re.compile(r"\d+(ms|s|m|h)")
OTHERS = {
    "REDISCLI_AUTH", "MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", "S3_KEY", "S3_SECRET", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PIP_NO_CACHE_DIR",
    "ALLOT_REDIS_PASSWORD_FILE", "ALLOT_LOG_FORMAT", "ALLOT_METRICS_HOST", "ALLOT_METRICS_PORT", "ALLOT_DOMAIN",
    "OTEL_EXPORTER_OTLP_ENDPOINT", "GF_SECURITY_ADMIN_PASSWORD", "GF_USERS_ALLOW_SIGN_UP", "FSYNC", "MAXMEMORY",
    "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
}  # fmt: skip
"""Variables that programs of others read, and those of ours that are no field of the settings."""
OURS = {f"ALLOT_{field.name.upper()}" for field in (*dataclasses.fields(Settings), *dataclasses.fields(HttpSettings))}


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return document


SERVICES = [(file, name) for file in FILES for name in load(file)["services"]]


@pytest.mark.parametrize("file", FILES)
def test_top_level(file: str) -> None:
    document = load(file)
    assert {key for key in document if not key.startswith("x-")} <= TOP
    for volume in filter(None, document.get("volumes", {}).values()):
        assert volume.keys() <= {"driver", "driver_opts"}
        assert all(isinstance(value, str) for value in volume["driver_opts"].values())


@pytest.mark.parametrize(("file", "name"), SERVICES)
def test_service_is_built_as_the_specification_says(file: str, name: str) -> None:
    service = load(file)["services"][name]
    for key, value in service.items():
        assert key in SERVICE, key
        assert isinstance(value, SERVICE[key]), key
    for key in ("command", "entrypoint", "tmpfs", "cap_drop", "security_opt", "profiles"):
        assert all(isinstance(word, str) for word in service.get(key, []))
    assert set(service.get("build", {})) <= BUILD
    assert service.get("restart", "no") in ("no", "always", "on-failure", "unless-stopped")
    assert DURATION.fullmatch(service.get("stop_grace_period", "1s"))
    for port in service.get("ports", []):
        assert re.fullmatch(r"(127\.0\.0\.1:)?(\$\{\w+:-\d+\}|\d+):\d+", port)
    check_health(service.get("healthcheck", {"test": ["NONE"]}))
    check_deploy(service.get("deploy", {}))


def check_health(health: dict[str, Any]) -> None:
    assert set(health) <= HEALTH
    assert health["test"][0] in ("CMD", "CMD-SHELL", "NONE")
    assert all(DURATION.fullmatch(health[key]) for key in ("interval", "timeout", "start_period") if key in health)
    assert isinstance(health.get("retries", 1), int)


def check_deploy(deploy: dict[str, Any]) -> None:
    assert set(deploy) <= {"resources", "replicas"}
    assert set(deploy.get("resources", {})) <= {"reservations", "limits"}
    for device in deploy.get("resources", {}).get("reservations", {}).get("devices", []):
        assert set(device) <= DEVICE
        assert ("count" in device) != ("device_ids" in device)
        assert device["capabilities"] == ["gpu"]


@pytest.mark.parametrize(("file", "name"), SERVICES)
def test_services_and_volumes_that_are_named_exist(file: str, name: str) -> None:
    service = load(file)["services"][name]
    base = load(FILES[0])
    known = base["services"].keys() | load(file)["services"].keys()
    for other, how in service.get("depends_on", {}).items():
        assert other in known
        assert how["condition"] in CONDITIONS
    volumes = base["volumes"].keys() | load(file).get("volumes", {}).keys()
    for mount in service.get("volumes", []):
        volume, target = mount.removesuffix(":ro").split(":")
        assert volume in volumes or (volume.startswith("./") and (ROOT / volume).exists() and mount.endswith(":ro"))
        assert target.startswith("/")
    assert set(service.get("secrets", [])) <= base["secrets"].keys()
    if build := service.get("build"):
        assert (ROOT / build["context"] / build["dockerfile"]).is_file()


@pytest.mark.parametrize(("file", "name"), SERVICES)
def test_commands_and_variables_exist(file: str, name: str) -> None:
    service = load(file)["services"][name]
    for variable in service.get("environment", {}):
        assert variable in OURS | OTHERS, variable
    check_command(service.get("command", []))


def check_command(words: list[str]) -> None:
    """An `allot` command line must parse; parse_args ends the process when it does not."""
    if words[:1] == ["allot"]:
        parser().parse_args(words[1:])


@pytest.mark.parametrize("file", DOCKERFILES)
def test_dockerfiles(file: str) -> None:
    text = (ROOT / file).read_text()
    lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", text)).splitlines()
    steps = [line.split(None, 1) for line in lines if line.strip()]
    verbs = [verb for verb, _ in steps]
    assert set(verbs) <= {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
                          "STOPSIGNAL", "CMD"}  # fmt: skip
    assert "HEALTHCHECK" in verbs
    assert ["USER", "allot"] in steps
    assert verbs.index("USER") < verbs.index("CMD")
    for verb, rest in steps:
        if verb == "COPY":
            *sources, _ = shlex.split(rest)
            assert all((ROOT / source).exists() for source in sources)
        elif verb == "ENV":
            assert {pair.split("=")[0] for pair in shlex.split(rest)} <= OURS | OTHERS
        elif verb in ("CMD", "HEALTHCHECK"):
            check_command(yaml.safe_load(rest[rest.index("[") :]))
        elif verb == "RUN":
            for command in re.findall(r"allot (\w+)", rest):
                if command != "allot" and not rest.startswith("python"):
                    check_command(["allot", command])


def test_the_api_image_has_no_cuda() -> None:
    assert "cuda" not in re.sub(r"(?m)^#.*", "", (ROOT / DOCKERFILES[0]).read_text())


def test_what_the_images_need_passes_the_ignore_file() -> None:
    passed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {source for file in DOCKERFILES for line in (ROOT / file).read_text().splitlines()
              if line.startswith("COPY") for source in line.split()[1:-1]}  # fmt: skip
    assert copied <= passed


def test_redis_is_durable_and_has_a_password() -> None:
    command = " ".join(load(FILES[0])["services"]["redis"]["command"])
    assert "--appendonly yes" in command
    assert "requirepass %s" in command
    assert "/run/secrets/redis_password" in command
    assert "--maxmemory $$MAXMEMORY" in command
    assert "--maxmemory-policy noeviction" in command


def test_who_shares_a_store_shares_a_bounded_memory_too() -> None:
    """The API and every worker of a machine, as the user of the images, and as much as they are told that there is."""
    options = load(FILES[0])["volumes"]["arena"]["driver_opts"]
    assert (options["type"], options["device"]) == ("tmpfs", "tmpfs")
    mounted = dict(part.split("=", 1) for part in options["o"].split(","))
    assert mounted.pop("size") == "${ALLOT_ARENA_BYTES:-1073741824}"
    assert mounted == {"uid": "10001", "gid": "10001", "mode": "0700"}
    assert all("useradd --uid 10001 " in (ROOT / file).read_text() for file in DOCKERFILES)
    sharing = [one for file, name in SERVICES for one in [load(file)["services"][name]]
               if "data:/data" in one.get("volumes", [])]  # fmt: skip
    assert len(sharing) == 5
    for one in sharing:
        assert "arena:/arena" in one["volumes"]
        assert one["environment"]["ALLOT_ARENA_DIR"] == "/arena"
        assert one["environment"]["ALLOT_ARENA_BYTES"] == options["o"].split(",")[0].removeprefix("size=")


def test_plain_http_is_for_this_machine_alone() -> None:
    for file in FILES:
        for name, service in load(file)["services"].items():
            for port in service.get("ports", []):
                assert name == "caddy" or port.startswith("127.0.0.1:"), (name, port)


@pytest.mark.parametrize("name", ["api", "worker"])
def test_images_install_nothing_without_its_hash(name: str) -> None:
    file, lock = (ROOT / f"docker/{name}.Dockerfile").read_text(), (ROOT / f"docker/{name}.lock").read_text()
    installs = re.findall(r"pip install ([^&\\\n]+)", file)
    assert [one.strip() for one in installs] == [
        f"--require-hashes --no-deps --requirement {name}.lock",
        "--no-deps --no-build-isolation .",
    ]
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)
    assert {"redis", "rq", "numba", "setuptools"} <= {entry.split("==")[0] for entry in entries}
    assert ("cupy-cuda13x" in lock) == (name == "worker")
    assert not re.search(r"index-url|find-links|://", lock)


def test_a_release_names_images_by_digest() -> None:
    digest = "sha256:" + "0" * 64
    asked: list[str] = []
    found = yaml.safe_load(pinned(lambda image: (asked.append(image), digest)[1]))["services"]  # type: ignore[func-returns-value]
    named = {name: one["image"] for name, one in load(FILES[0])["services"].items() if "build" not in one}
    assert set(asked) == {*named.values(), "python:3.12-slim"}
    for name, image in named.items():
        assert found[name]["image"] == f"{image.rpartition(':')[0]}@{digest}"
    for name, one in load(FILES[0])["services"].items():
        assert "build" not in one or found[name]["build"]["args"]["PYTHON"] == f"python@{digest}"


def test_no_secret_is_written_down() -> None:
    for file in FILES:
        for name, service in load(file)["services"].items():
            for variable, value in service.get("environment", {}).items():
                if re.search("PASSWORD|SECRET|KEY|AUTH|REDIS_URL", variable):
                    told = "${" in str(value) or str(value).startswith("/run/secrets/")
                    assert told or (variable == "ALLOT_REDIS_URL" and "@" not in str(value)), (name, variable)
