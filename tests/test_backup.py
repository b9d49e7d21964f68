"""deploy/backup.py: a copy of a running service is a service, with its jobs, keys and arrays."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from workers.jobs.job import State, Submission
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.keyring import Keyring, digest_of
from workers.runtime.redis_server import EmbeddedRedis

SCRIPT = Path(__file__).parent.parent / "deploy/backup.py"
LARGE = np.arange(128.0 * 128).reshape(128, 128)


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True)


def submit(jobs: Jobs, seed: int) -> str:
    reference = jobs.store.put(LARGE + seed, "ann")
    return jobs.submit(Submission("ann", "lap", {"cost": reference}, queue="cpu"))[0].id


def test_a_copy_has_every_job_with_its_arrays(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "data") as url:
        jobs = Jobs(Settings(redis_url=url, data_dir=tmp_path / "data"))
        ids = [submit(jobs, seed) for seed in range(20)]
        jobs.cancel(ids[0], "ann")
        secret, _ = Keyring(url).create("ann")
        more = threading.Thread(target=lambda: [submit(jobs, 100 + seed) for seed in range(50)])
        more.start()  # while it is copied
        done = run(tmp_path / "data", tmp_path / "copy")
        more.join()
        assert done.returncode == 0, done.stderr
        assert jobs._redis.config_get("auto-aof-rewrite-percentage")["auto-aof-rewrite-percentage"] == "100"
    assert run("--restore", tmp_path / "copy", tmp_path / "again").returncode == 0
    with EmbeddedRedis(tmp_path / "again") as url:
        again = Jobs(Settings(redis_url=url, data_dir=tmp_path / "again"))
        assert again.get(ids[0], "ann").state is State.CANCELLED
        assert again.get(ids[1], "ann").state is State.QUEUED
        found = again.list("ann", limit=100)[0]
        assert {job.id for job in found} >= set(ids)
        for job in found:
            if job.state is not State.CANCELLED:
                assert np.asarray(again.store.resolve(job.inputs["cost"], "ann")).shape == LARGE.shape
        assert Keyring(url).find(digest_of(secret)) is not None


@pytest.mark.parametrize("words", [["--restore", "copy", "data"], ["data", "copy"]])
def test_nothing_is_overwritten(tmp_path: Path, words: list[str]) -> None:
    for name in ("data", "copy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("mine")
    done = run(*(tmp_path / word if not word.startswith("-") else word for word in words))
    assert done.returncode != 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["file", "file"]
