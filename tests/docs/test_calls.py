"""Every call of the reference is sent as it is shown, and what is shown as its answer was one.

ALLOT_RECORD=1 writes docs/builder/recorded.json anew.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from docs.builder.calls import BASE, CALLS, DIGEST, JOB, LANGUAGES, RECORDED, SECRET, SHARE, Shown
from docs.builder.contents import ROOT
from docs.builder.reference import openapi, operations
from tests.app.conftest import Service, long_job

LONGEST = 1100
GUIDES = [*sorted((ROOT / "docs/guides").glob("*.md")), ROOT / "docs/start.md"]
TRANSPORT = {"solver": "uot", "inputs": {"cost": [[0, 1], [1, 0]]}}


class Asked:
    """Sends what is shown, to a job and a blob that are there."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        lap = http.post("/v1/jobs", json=CALLS["jobs_post"].body, headers={"Prefer": "wait=30"}).json()
        self.job = lap["id"]

    def fill(self, name: str, text: str) -> str:
        if name == "jobs_cancel":
            job = self.http.post("/v1/jobs", json=long_job(60)).json()["id"]
        elif name == "workbench_picture":
            done = self.http.post("/v1/jobs", json=TRANSPORT | {"options": {}}, headers={"Prefer": "wait=30"})
            job = done.json()["id"]
        else:
            job = self.job
        if DIGEST in text:
            sent = (ROOT / "examples/costs.npy").read_bytes()
            blob = self.http.post("/v1/blobs?filename=costs.npy", content=sent).json()["blob"]
            text = text.replace(DIGEST, blob)
        return text.replace(JOB, job)

    def send(self, name: str, call: Shown) -> httpx.Response:
        content = (ROOT / call.binary).read_bytes() if call.binary else None
        path, headers = self.fill(name, call.path), dict(call.headers)
        if "Prefer" in headers:
            headers["Prefer"] = "wait=60"  # what is shown is for a machine that is not busy with tests
        if SHARE in path or SECRET in headers.values():
            made = self.http.post(f"/v1/jobs/{self.job}/shares", json={}).json()
            path = path.replace(SHARE, made["id"])
            headers = {"Allot-Share": made["secret"]} if headers else {}
        return self.http.request(call.method, path, json=call.body, headers=headers, content=content)


def in_order() -> list[str]:
    """What takes something away comes last."""
    return sorted(CALLS, key=lambda name: "delete" in name)


def shown(answer: httpx.Response, address: str) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "")
    text, language = answer.text.replace(address, BASE), "text"
    if answer.request.method == "HEAD":
        text = "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name.startswith("x-"))
    elif "json" in kind:
        text, language = json.dumps(answer.json(), indent=1), "json"
        text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)
    elif "octet-stream" in kind:
        text = f"{len(answer.content)} bytes of .npy"
    cut = text if len(text) <= LONGEST else text[: text.rfind("\n", 0, LONGEST)] + "\n..."
    return {"status": answer.status_code, "language": language, "shown": cut}


def test_each_call_of_the_service_is_shown() -> None:
    assert {one["operationId"] for _, _, one in operations(openapi())} == CALLS.keys()


def test_what_is_shown_as_an_answer_was_one(client: httpx.Client, service: Service) -> None:
    asked, found = Asked(client), {}
    for name in in_order():
        found[name] = shown(asked.send(name, CALLS[name]), service.url)
    if os.environ.get("ALLOT_RECORD") == "1":
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    recorded = json.loads(RECORDED.read_text())
    assert recorded.keys() == found.keys()
    for name, one in found.items():
        assert one["status"] < 300, name
        assert recorded[name]["status"] == one["status"], name
        names = [set(re.findall(r'^ "(\w+)":', text["shown"], re.M)) for text in (recorded[name], one)]
        both = min(len(names[0]), len(names[1]))  # an answer that was cut shows the first of its fields
        assert len(names[0] & names[1]) >= both - 1, name


def run(program: str, url: str) -> str:
    env = {**os.environ, "ALLOT_URL": url, "PYTHONPATH": f"{ROOT}:{ROOT}/client"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.python and "delete" not in name])
def test_the_client_says_it_as_shown(client: httpx.Client, service: Service, name: str) -> None:
    program = LANGUAGES["Python client"][1](CALLS[name])
    assert run(Asked(client).fill(name, program), service.url)


@pytest.mark.parametrize("name", ["jobs_post", "jobs_page", "blobs_post", "service_estimate"])
def test_curl_and_httpx_are_sent_as_shown(client: httpx.Client, service: Service, name: str) -> None:
    asked = Asked(client)
    command = asked.fill(name, LANGUAGES["curl"][1](CALLS[name])).replace(BASE, service.url)
    told = subprocess.run(["bash", "-c", f"{command} -s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "status" not in json.loads(told)  # a problem document has one
    program = asked.fill(name, LANGUAGES["Python httpx"][1](CALLS[name])).replace(BASE, service.url)
    assert run(program, service.url).startswith("20")


def program_of(path: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S))


@pytest.mark.parametrize("path", [path for path in GUIDES if program_of(path)], ids=lambda path: path.stem)
def test_the_programs_of_a_guide_run(service: Service, path: Path) -> None:
    run(program_of(path), service.url)


def test_the_document_is_the_one_that_is_served(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json()["paths"].keys() == openapi()["paths"].keys()
