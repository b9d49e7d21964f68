"""The log of a branch and bound over HTTP: in an answer, in a later job, and under `allot verify`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.cli.main import main

Post = Callable[..., httpx.Response]


def job(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    flow, distance = rng.integers(0, 30, (2, 9, 9)).tolist()
    request = {"solver": "qap", "inputs": {"flow": flow, "distance": distance}, "options": {"seed": 1}, "device": "cpu"}
    return {**request, "time_limit_s": 60, **more}


def test_a_proof_is_kept_gone_on_with_and_verified(
    client: httpx.Client, post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = post(job(), wait=60).json()
    assert first["termination"] == "optimal"
    assert first["certificate"]["verified"] is True
    assert first["certificate"]["facts"]["tree"]["whole"] is True
    warm = post(job(warm_start=first["id"]), wait=60).json()
    assert warm["facts"]["tree"]["resumed"] is True
    assert warm["certificate"]["verified"] is True
    assert warm["tree"] == first["tree"]
    assert client.get(warm["links"]["self"]).json()["input_digests"].keys() >= {"tree0", "permutation0"}
    (tmp_path / "job.json").write_text(json.dumps(job()))
    (tmp_path / "answer.json").write_text(json.dumps(first))
    assert main(["verify", str(tmp_path / "answer.json"), str(tmp_path / "job.json")]) == 0
    assert "yes          tree" in capsys.readouterr().out
    first["tree"][-1] ^= 1
    (tmp_path / "answer.json").write_text(json.dumps(first))
    assert main(["verify", str(tmp_path / "answer.json"), str(tmp_path / "job.json")]) == 1
    assert "NO           tree" in capsys.readouterr().out


def test_a_log_that_is_none_is_turned_away(post: Post) -> None:
    request = job()
    request["inputs"]["tree0"] = [1, 2, 300]
    answer = post(request)
    assert answer.status_code == 422
    assert "tree0" in answer.text
