"""Inputs that name a file of the operator's: off by default, frozen when placed, in any form, for its owner alone."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import Service, serve

COST = np.array([[4.0, 1, 3], [2, 0, 5], [3, 2, 2]])


@pytest.fixture(scope="module")
def opened(
    service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, httpx.Client, httpx.Client]]:
    """A folder of ann's, and ann and bob at a service that opens it."""
    folder = tmp_path_factory.mktemp("files")
    (ann, entry), (bob, other) = new_key("ann"), new_key("bob")
    url, stop = serve(create_app(service.settings, HttpSettings(api_keys=(entry, other), file_dirs=f"ann={folder}")))
    with (
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {ann}"}, timeout=60) as first,
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {bob}"}, timeout=60) as second,
    ):
        yield folder, first, second
    stop()


def post(client: httpx.Client, **inputs: Any) -> httpx.Response:
    return client.post("/v1/jobs", json={"solver": "lap", "inputs": inputs}, headers={"Prefer": "wait=30"})


def test_a_named_file_is_read_and_frozen(opened: tuple[Path, httpx.Client, httpx.Client]) -> None:
    folder, ann, _ = opened
    np.save(folder / "c.npy", COST)
    answer = post(ann, cost={"file": "c.npy"}).json()
    assert answer["objective"] == 5
    kept = answer["input_digests"]["cost"]
    assert kept.keys() == {"blob", "format", "dtype", "shape"}
    np.save(folder / "c.npy", COST + 1)
    again = post(ann, cost=kept).json()
    assert again["objective"] == 5
    assert np.array_equal(np.load(io.BytesIO(ann.get(f"/v1/blobs/{kept['blob']}").content)), COST)
    assert post(ann, cost={"file": "c.npy"}).json()["objective"] == 8


def test_the_form_stands_in_the_reference(opened: tuple[Path, httpx.Client, httpx.Client]) -> None:
    folder, ann, _ = opened
    (folder / "raw.bin").write_bytes(COST.astype(np.float32).tobytes())
    np.savez(folder / "two.npz", x=COST, y=COST[::-1])
    raw = {"file": "raw.bin", "format": "raw", "dtype": "float32", "shape": [3, 3]}
    assert post(ann, cost=raw).json()["objective"] == 5
    both = post(ann, x={"file": "two.npz", "member": "x"}, y={"file": "two.npz", "member": "y"}).json()
    assert both["objective"] == 0
    assert both["assignment"] == [2, 1, 0]


@pytest.mark.parametrize(
    "named",
    [
        {"file": "../c.npy"}, {"file": "/etc/passwd"}, {"file": "none.npy"}, {"file": ""}, {"file": "empty"},
        {"file": "c.npy", "extra": 1}, {"file": 7}, {"file": ["c.npy"]}, {"file": "c.npy", "url": "s3://a/b"},
        {"url": "s3://bucket/key"}, {"url": "http://127.0.0.1/x"}, {"file": "raw.bin", "format": "exe"},
    ],
)  # fmt: skip
def test_wrong_names_are_wrong_input(opened: tuple[Path, httpx.Client, httpx.Client], named: Any) -> None:
    folder, ann, _ = opened
    (folder / "empty").write_bytes(b"")
    (folder / "raw.bin").write_bytes(b"12345678")
    refused = post(ann, cost=named)
    assert refused.status_code == 422
    assert "inputs.cost" in refused.text


def test_a_file_is_its_owners_and_off_by_default(
    opened: tuple[Path, httpx.Client, httpx.Client], client: httpx.Client
) -> None:
    folder, _, bob = opened
    np.save(folder / "c.npy", COST)
    for other in (bob, client):
        refused = post(other, cost={"file": "c.npy"})
        assert refused.status_code == 422
        assert "may read here" in refused.text


def test_a_file_that_is_too_large_is_413(opened: tuple[Path, httpx.Client, httpx.Client], service: Service) -> None:
    folder, ann, _ = opened
    with (folder / "large").open("wb") as file:
        file.truncate(service.settings.max_upload_bytes + 1)
    assert post(ann, cost={"file": "large"}).status_code == 413


def test_points_are_solved_and_their_answer_can_be_checked(client: httpx.Client, tmp_path: Path) -> None:
    from app.cli.main import main

    rng = np.random.default_rng(1)
    job = {
        "solver": "lap",
        "inputs": {"x": rng.random((6, 3)).tolist(), "y": rng.random((7, 3)).tolist()},
        "options": {"metric": "correlation"},
    }
    answer = client.post("/v1/jobs", json=job, headers={"Prefer": "wait=30"})
    assert answer.json()["termination"] == "optimal"
    assert answer.json()["certificate"]["facts"]["metric"] == "correlation"
    (tmp_path / "answer.json").write_text(answer.text)
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert main(["verify", str(tmp_path / "answer.json"), str(tmp_path / "job.json")]) == 0
