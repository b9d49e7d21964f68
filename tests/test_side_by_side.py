"""A rolling upgrade: processes of an earlier state of the code and of this one, at once, on one Redis and one store.

Each API is asked for what the other was given, and each worker solves what either API took. The earlier code comes out
of the repository's history. Its kernels run uncompiled, so that nothing has to be compiled for two trees.
"""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tests.workers.cluster import free_port
from tests.workers.service import eventually
from workers.runtime.redis_server import EmbeddedRedis

ROOT = Path(__file__).parent.parent
FORMER = "28a78af4424bbc9336c99b4be85d9442ee9a9b01"
READY_S = 240.0


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the earlier commit."""
    folder = tmp_path_factory.mktemp("former-code")
    packed = subprocess.run(["git", "archive", FORMER], cwd=ROOT, capture_output=True)
    if packed.returncode != 0:
        pytest.skip("the history of this repository is not here")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


class Host:
    """One command of either code."""

    def __init__(self, tree: Path, folder: Path, redis_url: str, *words: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
        env |= {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'client'}", "NUMBA_DISABLE_JIT": str(int(tree != ROOT))}
        env |= {"ALLOT_REDIS_URL": redis_url, "ALLOT_WARM_SOLVERS": "lap"}
        command = [sys.executable, "-m", "app.cli.main", *words, "--data-dir", str(folder / "data")]
        self._log = folder / f"{'-'.join(words)}-{free_port()}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=tree, env=env, stdout=log, stderr=log)

    def stop(self) -> None:
        """End it as an operator does."""
        self.process.terminate()
        code = self.process.wait(60)
        assert code == 0, self._log.read_text()[-2000:]


class Api(Host):
    """One that answers."""

    def __init__(self, tree: Path, folder: Path, redis_url: str) -> None:
        port = free_port()
        super().__init__(tree, folder, redis_url, "serve", "--workers", "0", "--port", str(port))
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        eventually(self._answers, 60)

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/livez").status_code == 200
        return False

    def workers(self) -> int:
        """How many it has heard of that wait for jobs."""
        return sum(one["state"] in ("idle", "busy") for one in self.client.get("/v1/devices").json()["workers"])


def submitted(api: Api, seed: int) -> tuple[str, int]:
    """A job, every third with an upload: its id, and the best objective."""
    cost = np.random.default_rng(seed).integers(0, 100, (60, 60) if seed % 3 == 0 else (6, 6))
    inputs: dict[str, Any] = {"cost": cost.tolist()}
    if seed % 3 == 0:
        data = io.BytesIO()
        np.save(data, cost)
        inputs = {"cost": {"blob": api.client.post("/v1/blobs", content=data.getvalue()).json()["blob"]}}
    answer = api.client.post("/v1/jobs", json={"solver": "lap", "inputs": inputs})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"], int(cost[linear_sum_assignment(cost)].sum())


def check(api: Api, job: str, best: int) -> None:
    """It succeeds on its first attempt, with the right answer."""

    def ended() -> bool:
        return bool(api.client.get(f"/v1/jobs/{job}", params={"wait": 5}).json()["state"] not in ("queued", "running"))

    eventually(ended, READY_S)
    told = api.client.get(f"/v1/jobs/{job}").json()
    assert (told["state"], told["attempt"]) == ("succeeded", 1), str(told)
    assert api.client.get(f"/v1/jobs/{job}/result").json()["objective"] == best


@pytest.fixture
def apis(former: Path, tmp_path: Path) -> Iterator[tuple[Api, Api, str]]:
    with EmbeddedRedis(tmp_path) as url:
        both = Api(former, tmp_path, url), Api(ROOT, tmp_path, url)
        try:
            yield *both, url
        finally:
            for api in both:
                api.stop()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_both_work_on_what_the_other_took(apis: tuple[Api, Api, str], former: Path, tmp_path: Path) -> None:
    before, now, url = apis
    crossed = [(before, now), (now, before)]
    with_former = Host(former, tmp_path, url, "worker", "--workers", "1")
    eventually(lambda: now.workers() == before.workers() == 1, READY_S)
    for seed, (taker, teller) in enumerate(crossed * 3):
        check(teller, *submitted(taker, seed))

    waiting = [(teller, *submitted(taker, 10 + seed)) for seed, (taker, teller) in enumerate(crossed * 10)]
    with_present = Host(ROOT, tmp_path, url, "worker", "--workers", "1")
    with_former.stop()
    for teller, job, best in waiting:
        check(teller, job, best)

    eventually(lambda: now.workers() == before.workers() == 1, READY_S)
    for seed, (taker, teller) in enumerate(crossed * 3):
        check(teller, *submitted(taker, 40 + seed))
    assert {one["id"] for one in before.client.get("/v1/jobs", params={"limit": 100}).json()["jobs"]} == {
        one["id"] for one in now.client.get("/v1/jobs", params={"limit": 100}).json()["jobs"]
    }
    with_present.stop()
