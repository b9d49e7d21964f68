"""`allot mcp`, spoken to over its standard input and output by the protocol's own client."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from app.agents.doors import Doors, Refused, explained, short
from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from kernels import SOLVERS
from tests.app.conftest import Service, long_job, serve

mcp = pytest.importorskip("mcp")
httpx2 = pytest.importorskip("httpx2")
COST = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]


def spoken(work: Callable[[Any], Awaitable[None]], url: str, *args: str, key: str = "") -> None:
    """Start the server, speak to it, and see it end."""
    env = {**os.environ, "ALLOT_URL": url, "ALLOT_API_KEY": key}
    how = mcp.StdioServerParameters(command=sys.executable, args=["-m", "app.cli.main", "mcp", *args], env=env)

    async def run() -> None:
        async with mcp.Client(how) as client:
            await work(client)

    asyncio.run(asyncio.wait_for(run(), 120))


async def called(client: Any, tool: str, **given: Any) -> Any:
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refused(client: Any, tool: str, **given: Any) -> str:
    answer = await client.call_tool(tool, given)
    assert answer.is_error
    return str(answer.content[0].text)


def test_an_agent_solves_and_asks_what_was_proved(service: Service) -> None:
    async def work(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"solve", "estimate", "job_status", "job_result", "explain_certificate"} <= tools.keys()
        assert all(tool.description for tool in tools.values())
        listed = await called(client, "list_solvers")
        assert [one["name"] for one in listed["solvers"]] == list(SOLVERS)
        assert all(f"{name}: " in str(client.instructions) for name in SOLVERS)
        for one in listed["solvers"]:
            example = {name: one["example"].get(name) for name in ("solver", "inputs", "options")}
            answer = await called(client, "solve", **example, time_limit_s=2)
            assert answer["certificate"]["holds"], one["name"]
        answer = await called(client, "solve", solver="lap", inputs={"cost": COST})
        assert answer["objective"] == np.array(COST)[linear_sum_assignment(COST)].sum()
        assert "it is the best possible; proved" in answer["in_words"]
        words = await called(client, "explain_certificate", job_id=answer["id"])
        assert "optimal by duals" in json.dumps(words)
        resource = await client.read_resource(f"allot://jobs/{answer['id']}/result")
        assert json.loads(resource.contents[0].text)["assignment"] == answer["assignment"]
        needs = await called(client, "estimate", solver="lap", inputs={"cost": COST})
        assert needs["fits"]

    spoken(work, service.url)


def test_a_long_job_is_looked_at_and_stopped(service: Service) -> None:
    async def work(client: Any) -> None:
        body = long_job(60)
        job = await called(client, "solve", **body, wait_s=0.5)
        assert job["state"] in ("queued", "running")
        while not (await called(client, "job_status", job_id=job["id"])).get("progress"):
            await asyncio.sleep(0.1)
        await called(client, "cancel_job", job_id=job["id"])
        seen = await called(client, "job_status", job_id=job["id"], wait_s=20)
        assert seen["state"] == "succeeded"
        answer = await called(client, "job_result", job_id=job["id"])
        assert answer["termination"] == "stopped"
        assert sorted(answer["permutation"]) == list(range(40))

    spoken(work, service.url)


def test_what_is_wrong_is_told_in_the_services_words(service: Service) -> None:
    async def work(client: Any) -> None:
        assert "solver" in await refused(client, "solve", solver="magic", inputs={})
        assert "/v1/blobs" in await refused(client, "solve", solver="lap", inputs={"cost": [[0.0] * 201] * 200})
        assert "no job" in await refused(client, "job_status", job_id="0" * 32)
        assert "no job" in await refused(client, "job_status", job_id="../blobs")
        assert "--files" in await refused(client, "solve", solver="lap", inputs={"cost": {"path": "c.npy"}})

    spoken(work, service.url)


def test_files_only_below_the_folder(service: Service, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    np.save(folder / "c.npy", np.array(COST))
    np.save(tmp_path / "secret.npy", np.array(COST))
    (folder / "link.npy").symlink_to(tmp_path / "secret.npy")

    async def work(client: Any) -> None:
        answer = await called(client, "solve", solver="lap", inputs={"cost": {"path": "c.npy"}})
        assert answer["objective"] == 5
        for name in ("../secret.npy", str(tmp_path / "secret.npy"), "link.npy", "none.npy"):
            told = await refused(client, "solve", solver="lap", inputs={"cost": {"path": name}})
            assert "below the folder" in told

    spoken(work, service.url, "--files", str(folder))


def test_the_key_goes_to_the_service_and_not_to_the_agent(service: Service) -> None:
    secret, entry = new_key("ann")
    address, stop = serve(create_app(service.settings, HttpSettings(api_keys=(entry,))))

    async def work(client: Any) -> None:
        answer = await client.call_tool("list_jobs", {})
        assert not answer.is_error
        assert secret not in answer.model_dump_json()

    async def stranger(client: Any) -> None:
        assert "API key" in await refused(client, "list_jobs")

    try:
        spoken(work, address, key=secret)
        spoken(stranger, address)
    finally:
        stop()


def test_a_service_that_is_not_there_is_told() -> None:
    async def work() -> None:
        async with httpx.AsyncClient(base_url="http://127.0.0.1:9") as http:
            with pytest.raises(Refused, match="does not answer"):
                await Doors(http).ask("GET", "/v1/jobs")

    asyncio.run(work())


def test_long_arrays_are_cut_and_named() -> None:
    cut = short({"assignment": list(range(5000)), "plan": [[0] * 100] * 100, "few": [1]}, "GET here")
    assert (len(cut["assignment"]["first"]), cut["assignment"]["of"], cut["few"]) == (2000, 5000, [1])
    assert (len(cut["plan"]["first"]), cut["plan"]["all_of_it"]) == (20, "GET here")


@pytest.mark.parametrize(
    ("objective", "bound", "words"),
    [
        (5, 5, "it is the best possible; proved"),
        (110, 100, "it is within 10% of the best possible; proved"),
        (3, 0, "it is within 3 of the best possible; proved"),
        (7, None, "no bound"),
    ],
)
def test_a_certificate_in_words(objective: float, bound: float | None, words: str) -> None:
    certificate: dict[str, Any] = {"bound": bound, "proved": "x", "holds": True, "facts": {}}
    told = {"solver": "qap", "termination": "time_limit", "objective": objective, "certificate": certificate}
    assert words in explained(told)


def test_the_same_tools_over_http_with_the_rights_of_a_key(service: Service) -> None:
    (secret, entry), (reader, other) = new_key("ann"), new_key("bob")
    keys = HttpSettings(api_keys=(entry, f"{other};read"), mcp=True)
    address, stop = serve(create_app(service.settings, keys))

    async def work(key: str) -> tuple[Any, Any]:
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            mcp.Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            solved = await client.call_tool("solve", {"solver": "lap", "inputs": {"cost": COST}})
            path = await client.call_tool("solve", {"solver": "lap", "inputs": {"cost": {"path": "/etc/x.npy"}}})
            return solved, path

    try:
        solved, path = asyncio.run(asyncio.wait_for(work(secret), 60))
        assert solved.structured_content["objective"] == 5
        assert path.is_error
        solved, _ = asyncio.run(asyncio.wait_for(work(reader), 60))
        assert solved.is_error
        assert "scope submit" in solved.content[0].text
        assert httpx.post(f"{address}/mcp", json={}).status_code == 401
    finally:
        stop()


def test_a_foreign_page_finds_no_agents_door(service: Service) -> None:
    address, stop = serve(create_app(service.settings, HttpSettings(mcp=True)))
    try:
        assert httpx.post(f"{address}/mcp", json={}, headers={"Origin": "https://else.where"}).status_code == 403
        assert httpx.post(f"{address}/mcp", json={}, headers={"Host": "else.where"}).status_code == 403
    finally:
        stop()
    assert httpx.post(f"{service.url}/mcp", json={}).status_code == 404  # closed where nobody has opened it


@pytest.mark.parametrize(
    "body",
    [b'{"jsonrpc":"2.0","x":[' + b"[1]," * 200_000 + b"1]}", b'{"jsonrpc":"2.0","x":"' + b"x" * (2 << 20) + b'"}'],
    ids=["many values", "many bytes"],
)
def test_a_message_of_an_agent_has_a_limit(service: Service, body: bytes) -> None:
    address, stop = serve(create_app(service.settings, HttpSettings(mcp=True)))
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        answer = httpx.post(f"{address}/mcp", content=body, headers=kinds, timeout=60)
        assert (answer.status_code, "/v1/blobs" in answer.json()["detail"]) == (413, True)
    finally:
        stop()


def test_messages_of_an_agent_count_as_requests(service: Service) -> None:
    secret, entry = new_key("ann")
    few = HttpSettings(api_keys=(entry,), mcp=True, requests_per_s=0.01)
    address, stop = serve(create_app(service.settings, few))
    try:
        headers = {"Authorization": f"Bearer {secret}"}
        answers = [httpx.post(f"{address}/mcp", json={}, headers=headers).status_code for _ in range(8)]
        assert 429 in answers
    finally:
        stop()
