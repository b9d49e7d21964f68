"""Low precision over HTTP: what is solved is exactly what came, and every answer says what that was."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import ml_dtypes
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, save_npz

from app.cli.main import main
from kernels import Array
from tests.app.references import solve
from tests.app.test_bad_input import npy

SCALE = float(np.float32(0.01))


def costs(n: int, dtype: str = "int16") -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(4).integers(limits.min, limits.max, (n, n), dtype, endpoint=True)


def asked(client: httpx.Client, data: bytes, reference: dict[str, Any], **job: Any) -> dict[str, Any]:
    """The answer for one file part."""
    document = {"solver": "lap", "inputs": {"cost": {"part": "c", **reference}}, **job}
    answer = client.post(
        "/v1/jobs", data={"job": json.dumps(document)}, files={"c": ("c", data)}, headers={"Prefer": "wait=30"}
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("n", [8, 700])
@pytest.mark.parametrize("raw", [False, True])
def test_the_certificate_is_one_of_the_scaled_matrix(client: httpx.Client, n: int, raw: bool) -> None:
    given = costs(n)
    said = {"dtype": "int16", "shape": [n, n]} if raw else {}
    answer = asked(client, given.tobytes() if raw else npy(given), {**said, "scale": SCALE})
    rows, columns = linear_sum_assignment(given.astype(np.int64))
    best = Fraction(SCALE) * int(given[rows, columns].astype(np.int64).sum())
    assert answer["termination"] == "optimal"
    assert answer["objective"] == pytest.approx(float(best), rel=1e-12)
    assert Fraction(answer["certificate"]["bound"]) <= best
    told = answer["input_digests"]["cost"]
    assert (told["dtype"], told["scale"], told["shape"]) == ("int16", SCALE, [n, n])
    assert set(told) <= {"blob", "digest", "format", "dtype", "shape", "scale"}
    if "blob" in told:
        assert solve(client, "lap", {"cost": told})["objective"] == answer["objective"]


def test_bfloat16_is_solved_as_what_it_holds(client: httpx.Client) -> None:
    given = np.random.default_rng(5).random((600, 600)).astype(ml_dtypes.bfloat16)
    answer = asked(client, given.tobytes(), {"dtype": "bfloat16", "shape": [600, 600]})
    wide = given.astype(np.float64)
    assert answer["objective"] == pytest.approx(wide[linear_sum_assignment(wide)].sum(), rel=1e-6)
    assert answer["input_digests"]["cost"]["dtype"] == "bfloat16"
    uploaded = client.post("/v1/blobs", content=given.tobytes(), params={"dtype": "bfloat16", "shape": "600,600"})
    assert uploaded.status_code == 201, uploaded.text
    assert uploaded.json()["dtype"] == "bfloat16"
    assert solve(client, "lap", {"cost": uploaded.json()})["objective"] == answer["objective"]


def test_allot_solves_and_verifies_a_file_of_booleans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A service refuses them among costs; whoever has the file at hand means 0 and 1."""
    cost = np.eye(4, dtype=bool)
    np.save(tmp_path / "cost.npy", cost)
    np.savez(tmp_path / "cost.npz", cost=cost)
    save_npz(tmp_path / "sparse.npz", csr_array(cost))
    for name, objective in (("cost.npy", 0), ("cost.npz", 0), ("sparse.npz", 4)):
        assert main(["solve", str(tmp_path / name), "--json"]) == 0
        (tmp_path / "answer.json").write_text(capsys.readouterr().out)
        assert json.loads((tmp_path / "answer.json").read_text())["objective"] == objective
        given = f"benefit={tmp_path / name}" if objective else str(tmp_path / name)
        assert main(["verify", str(tmp_path / "answer.json"), given]) == 0
        capsys.readouterr()


def test_transport_takes_a_scale_too(client: httpx.Client) -> None:
    given = costs(40, "uint8")
    cost = {"part": "c", "scale": 2.0**-8}
    document = {"solver": "uot", "inputs": {"cost": cost}, "options": {"reg": 0.05}}
    narrow = client.post("/v1/jobs", data={"job": json.dumps(document)}, files={"c": ("c", npy(given))},
                         headers={"Prefer": "wait=30"}).json()  # fmt: skip
    wide = solve(client, "uot", {"cost": (given / 256).tolist()}, options={"reg": 0.05})
    assert narrow["objective"] == pytest.approx(wide["objective"], rel=1e-9)


@pytest.mark.parametrize(
    ("reference", "field"),
    [
        ({"scale": 0.1}, "inputs.cost.scale"),
        ({"scale": "2"}, "inputs.cost.scale"),
        ({"scale": 0}, "inputs.cost.scale"),
        ({"scale": 2.0, "dtype": "bfloat16"}, "inputs.cost.dtype"),
    ],
)
def test_what_is_wrong_with_a_scale_is_told(client: httpx.Client, reference: dict[str, Any], field: str) -> None:
    document = {"solver": "lap", "inputs": {"cost": {"part": "c", **reference}}}
    answer = client.post("/v1/jobs", data={"job": json.dumps(document)}, files={"c": ("c", npy(costs(4)))})
    assert answer.status_code == 422
    assert field in answer.text


def test_an_answer_of_a_scaled_file_is_verified(
    client: httpx.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = costs(30)
    (tmp_path / "c.npy").write_bytes(npy(given))
    answer = asked(client, npy(given), {"scale": SCALE})
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["verify", str(tmp_path / "answer.json"), f"cost={tmp_path / 'c.npy'}"]))
    assert ended.value.code == 0, capsys.readouterr().out


def test_an_estimate_of_a_scaled_file_is_one_of_floats(client: httpx.Client) -> None:
    document = {"solver": "lap", "inputs": {"cost": {"part": "c", "scale": 0.5}}}
    answer = client.post("/v1/estimates", data={"job": json.dumps(document)}, files={"c": ("c", npy(costs(300)))})
    assert answer.status_code == 200, answer.text
