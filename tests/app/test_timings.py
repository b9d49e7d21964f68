"""Where the time of a job went adds up to all of it, and its answer comes on one way."""

import json

import httpx
import numpy as np
import pytest
import safetensors.numpy

from tests.app.test_bad_input import npy
from workers.store.upload import WORTH_A_SLAB


@pytest.mark.parametrize("n", [20, 400, 1000])
def test_what_is_told_of_a_jobs_time_adds_up(client: httpx.Client, n: int) -> None:
    cost = np.random.default_rng(1).uniform(0, 1000, (n, n))
    shares: list[float] = []
    while len(shares) < 30 and min(shares, default=1) >= 0.05:  # a busy machine may stop between two stations
        body = {"job": json.dumps({"solver": "lap"})}
        files = {"cost": ("c.npy", npy(cost))}
        spent = client.post("/v1/jobs", data=body, files=files, headers={"Prefer": "wait=30"}).json()["timings_ms"]
        assert {"receive", "parse", "build", "keep", "queued", "load", "solve", "certify"} < spent.keys()
        assert ("hash" in spent) is (cost.nbytes > WORTH_A_SLAB)
        assert all(value >= 0 for value in spent.values())
        total = spent.pop("total")
        shares.append(abs(total - sum(spent.values())) / total)
    assert min(shares) < 0.05, shares


def test_an_answer_that_is_packed_brings_its_arrays_once(client: httpx.Client) -> None:
    """Beside the job: its arrays of 17 KiB are no files of the store, and no numbers of the document."""
    n = 720
    body = {"job": json.dumps({"solver": "lap"})}
    files = {"cost": ("cost.npy", npy(np.random.default_rng(0).random((n, n))))}
    headers = {"Prefer": "wait=20", "Accept": "application/x-safetensors"}
    answer = client.post("/v1/jobs", data=body, files=files, headers=headers)
    length = int.from_bytes(answer.content[:8], "little")
    told = json.loads(json.loads(answer.content[8 : 8 + length])["__metadata__"]["document"])
    assert told["assignment"] == {"dtype": "<i8", "shape": [n]}
    assert told["duals"]["u"] == {"dtype": "<f8", "shape": [n]}
    assignment = safetensors.numpy.load(answer.content)["assignment"]
    assert assignment.shape == (n,)
    assert client.get(told["links"]["result"]).json()["assignment"] == assignment.tolist()
