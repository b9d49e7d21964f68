"""A layout can be drawn while it is searched for: an improvement's event carries the permutation behind it."""

import json
from typing import Any

import httpx
import numpy as np

from kernels import Progress
from kernels.deadline import LONGEST_SHOWN, Deadline
from tests.app.conftest import long_job


def events(client: httpx.Client, url: str) -> list[tuple[str, dict[str, Any]]]:
    found, kind = [], ""
    with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                found.append((kind, json.loads(line.removeprefix("data: "))))
    return found


def test_each_improvement_carries_its_layout(client: httpx.Client) -> None:
    body = long_job(2)
    links = client.post("/v1/jobs", json=body).json()["links"]
    told = [data for kind, data in events(client, links["events"]) if kind == "incumbent"]
    flow, distance = (np.array(body["inputs"][name]) for name in ("flow", "distance"))
    drawn = [one for one in told if one["permutation"] is not None]
    assert drawn
    for one in drawn:
        places = np.array(one["permutation"])
        assert one["objective"] == (flow * distance[np.ix_(places, places)]).sum()
    assert drawn[-1]["objective"] == client.get(links["result"]).json()["objective"]
    assert "permutation" not in client.get(links["self"]).json()["progress"]


def test_a_layout_is_told_once_and_only_if_it_can_be_drawn() -> None:
    told: list[Progress] = []
    deadline = Deadline(on_progress=told.append)
    deadline.show([1, 0])
    deadline.report(1, 5)
    deadline.report(2, 5)
    deadline.enter("certify")
    deadline.show(range(LONGEST_SHOWN + 1))
    deadline.report(3, 4)
    assert [one.permutation for one in told] == [(1, 0), None, None, None]
