"""Transport on the entries of a sparse cost over HTTP, through the client and from files."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import scipy.sparse as sp
from allot_client import Client, InvalidInput, TransportResult

from app.cli.main import main
from tests.app.conftest import Service
from tests.app.test_bad_input import check


def graph(kind: Any = sp.csr_array) -> Any:
    """Costs of 30 rows and 40 columns, an entry of every row and column."""
    rng = np.random.default_rng(0)
    there = rng.random((30, 40)) < 0.2
    there[np.arange(40) % 30, np.arange(40)] = True
    return kind(np.where(there, rng.random((30, 40)) + 0.1, 0.0))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_scipys_matrices_are_costs(allot: Client, kind: Any) -> None:
    cost = graph(kind)
    answer = allot.uot(cost, reg=0.05, reg_m=1.0)
    assert isinstance(answer, TransportResult)
    assert answer.termination == "gap_reached"
    plan = answer.plan
    assert sp.issparse(plan)
    assert plan.shape == cost.shape
    there = cost.toarray() != 0
    assert (plan.toarray()[~there] == 0).all()
    rows = 1 / 30 * 1 / 40 * np.exp((answer.f[:, None] + answer.g - cost.toarray()) / 0.05)
    np.testing.assert_allclose(plan.toarray()[there], rows[there], rtol=1e-12)
    np.testing.assert_allclose(answer["row_marginal"], plan.toarray().sum(axis=1))
    dense = allot.uot(np.where(there, cost.toarray(), np.inf), reg=0.05, reg_m=1.0)
    beyond = 0.05 * (~there).sum() / 1200
    assert answer.objective is not None
    assert answer.objective + beyond == pytest.approx(dense.objective, rel=3e-6)


def test_what_is_read_off_a_sparse_plan(allot: Client) -> None:
    cost = graph()
    answer = allot.uot(cost, reg=0.05, reg_m=1.0)
    plan = answer.plan.toarray()
    columns, masses = answer.top(2)
    np.testing.assert_array_equal(columns[:, 0], plan.argmax(axis=1))
    np.testing.assert_array_equal(masses[:, 0], plan.max(axis=1))
    points = np.random.default_rng(1).random((40, 2))
    np.testing.assert_allclose(answer.barycentric(points), plan @ points / plan.sum(axis=1, keepdims=True))
    unknown = allot.job(answer.id).result()
    assert isinstance(unknown, TransportResult)
    assert unknown["entry_values"].shape == (cost.nnz,)
    with pytest.raises(AttributeError, match="no plan"):
        _ = unknown.plan


def test_a_sparse_plan_is_a_frame(allot: Client) -> None:
    pytest.importorskip("pandas")
    frame = allot.uot(graph(), reg=0.05, reg_m=1.0).frame()
    assert frame.shape == (30, 40)
    assert frame.sparse.density < 0.5


def test_no_plan_and_wrong_inputs(allot: Client, service: Service) -> None:
    crowded = allot.uot(sp.csr_array([[1.0, 0, 0], [2.0, 0, 0], [1.0, 1, 1]]), reg_m="inf")
    assert crowded.termination == "infeasible"
    assert crowded.certificate.verified
    assert crowded["hall_rows"].tolist() == [0, 1]
    with pytest.raises(InvalidInput, match="output"):
        allot.uot(graph(), output="potentials")
    csr: dict[str, Any] = {"indptr": [0, 1, 2], "indices": [0, 1], "values": [1, 2], "shape": [2, 2]}
    url = f"{service.url}/v1/jobs"
    job = {"solver": "uot", "inputs": {"cost": {"csr": csr}}}
    done = httpx.post(url, json=job, headers={"Prefer": "wait=10"}).json()
    assert len(done["entry_values"]) == 2
    for wrong, field in (
        ({"indices": [0, 2]}, "indices"),
        ({"shape": [2, 2**40]}, "cost"),
        ({"indptr": [0, 2, 1]}, "indptr"),
    ):
        check(httpx.post(url, json={"solver": "uot", "inputs": {"cost": {"csr": csr | wrong}}}), 422, field)
    check(httpx.post(url, json={"solver": "uot", "inputs": {"cost": {"csr": csr}, "a": {"csr": csr}}}), 422, "a")


@pytest.mark.parametrize("reg_m", ["1.0", '"inf"'])
def test_a_file_is_solved_and_checked_again(tmp_path: Path, capsys: Any, reg_m: str) -> None:
    cost = graph()
    sp.save_npz(tmp_path / "cost.npz", sp.csr_matrix(cost))
    masses = cost.toarray() / cost.sum()
    np.save(tmp_path / "a.npy", masses.sum(axis=1))
    np.save(tmp_path / "b.npy", masses.sum(axis=0))
    files = [f"{name}={tmp_path / file}" for name, file in (("cost", "cost.npz"), ("a", "a.npy"), ("b", "b.npy"))]
    asked = ["--solver", "uot", "-o", "reg=0.05", "-o", f"reg_m={reg_m}"]
    out = tmp_path / "answer.npz"
    assert main(["solve", *files, *asked, "--json", "--out", str(out)]) == 0
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert document["termination"] == "gap_reached"
    with np.load(out) as found:
        assert found["entry_values"].shape == (cost.nnz,)
    for factor, status in ((1.0, 0), (1.0 - 1e-9, 1)):
        document["objective"] *= factor
        (tmp_path / "answer.json").write_text(json.dumps(document))
        assert main(["verify", str(tmp_path / "answer.json"), *files, "--arrays", str(out)]) == status
        said = capsys.readouterr().out
        assert ("NO" in said) is (status == 1)
        assert "yes          bound" in said
