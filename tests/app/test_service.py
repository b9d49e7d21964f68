import dataclasses
import re
from typing import get_args

import httpx
import numpy as np
import pytest

from app.http.schemas import CertificateView
from app.http.service import round_up
from kernels import SOLVERS, Phase, Progress
from tests.app.conftest import LAP, ready_or_not
from tests.app.test_bad_input import check
from tests.workers.service import allowed


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_openapi_example_works_when_pasted(client: httpx.Client, solver: str) -> None:
    api = client.get("/openapi.json").json()
    example = api["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]["examples"][solver]
    answer = client.post("/v1/jobs", json=example["value"] | {"time_limit_s": 5}, headers={"Prefer": "wait=40"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["certificate"]["holds"]


def test_openapi_is_whole(client: httpx.Client) -> None:
    text = client.get("/openapi.json").text
    api = client.get("/openapi.json").json()
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert names <= api["components"]["schemas"].keys()
    mapping = api["components"]["schemas"]["JobRequest"]["discriminator"]["mapping"]
    assert mapping.keys() == SOLVERS.keys()
    for card in SOLVERS.values():
        inputs = api["components"]["schemas"][f"{card.name.capitalize()}Inputs"]
        assert set(inputs["properties"]) == {spec.name for spec in card.inputs}
    for path, verbs in api["paths"].items():
        for verb, operation in verbs.items():
            assert operation["description"], (verb, path)


def test_the_phase_of_a_job_is_documented(client: httpx.Client) -> None:
    fields = client.get("/openapi.json").json()["components"]["schemas"]["Progress"]["properties"]
    assert fields["phase"]["enum"] == list(get_args(Phase))
    assert fields.keys() == {field.name for field in dataclasses.fields(Progress)}


def test_solvers(client: httpx.Client) -> None:
    told = {one["name"]: one for one in client.get("/v1/solvers").json()["solvers"]}
    assert told.keys() == SOLVERS.keys()
    assert "maximize" in told["lap"]["options_schema"]["properties"]
    assert told["qap"]["files"] == ["qaplib", "sln"]


def test_devices(client: httpx.Client) -> None:
    told = client.get("/v1/devices").json()
    assert "cpu" in told["devices"]
    assert told["workers"][0]["heartbeat_age_s"] < allowed(10)


def test_estimates(client: httpx.Client) -> None:
    told = client.post("/v1/estimates", json=LAP).json()
    assert told["estimates"]["cpu"]["host_bytes"] > 0
    assert told["device"] == "cpu"
    check(client.post("/v1/estimates", json={"solver": "lap", "inputs": {"cost": [[1], [2, 3]]}}), 422, "cost")


def test_estimates_keep_to_the_time_limit_and_to_two_digits(client: httpx.Client) -> None:
    flow = [[(i * 7 + j * 13) % 31 for j in range(40)] for i in range(40)]
    job = {"solver": "qap", "inputs": {"flow": flow, "distance": flow}, "time_limit_s": 4.5678}
    told = client.post("/v1/estimates", json=job).json()["estimates"]["cpu"]
    assert 4.3 < told["seconds"] + told["certify_seconds"] < 4.7
    assert all(value == float(f"{value:.2g}") for value in told.values())
    told = client.post("/v1/estimates", json=job | {"time_limit_s": 0}).json()["estimates"]["cpu"]
    assert told["seconds"] == told["first_seconds"] > 0


def test_bytes_are_rounded_up() -> None:
    assert [round_up(count) for count in (0, 7, 99, 100, 101, 1234, 9901)] == [0, 7, 99, 100, 110, 1300, 10000]


def test_health(client: httpx.Client) -> None:
    assert client.get("/livez").json() == {"status": "alive"}
    assert ready_or_not(client).json()["checks"] == {"redis": "ok", "store": "ok", "worker": "ok"}


def test_docs_load_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"(src|href)=\"(https?:)?//", page.text)


def test_a_large_matrix_as_json(client: httpx.Client) -> None:
    cost = np.random.default_rng(0).integers(0, 100, (600, 600)).tolist()
    answer = client.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": cost}}, headers={"Prefer": "wait=30"})
    assert answer.status_code == 200
    assert len(answer.json()["assignment"]) == 600


def test_openapi_says_what_is_answered(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"304"} <= paths["/v1/jobs/{job_id}"]["get"]["responses"].keys()
    for path, verbs in paths.items():  # whatever asks for a key says so, and that one can ask too often
        for verb, told in verbs.items():
            asks = path not in ("/livez", "/readyz")
            assert not asks or {"401", "403", "429"} <= told["responses"].keys(), (verb, path)
    assert {"304"} <= paths["/v1/blobs/{digest}"]["get"]["responses"].keys()
    events = paths["/v1/jobs/{job_id}/events"]["get"]["responses"]
    assert "400" in events
    assert set(events["200"]["content"]) == {"text/event-stream"}
    assert set(paths["/metrics"]["get"]["responses"]["200"]["content"]) == {"text/plain"}
    assert set(paths["/v1/blobs/{digest}"]["get"]["responses"]["200"]["content"]) == {"application/octet-stream"}
    told = client.post("/v1/jobs", json=LAP, headers={"Prefer": "wait=30"}).json()
    CertificateView.model_validate(told["certificate"], strict=True)
    assert told["certificate"].keys() == CertificateView.model_fields.keys()
