"""What is read off a transport plan, from the plan and from its potentials."""

from typing import Any

import numpy as np
import pytest
from allot_client import Client, flows, plans

random = np.random.default_rng(3)
X, Y = random.normal(size=(40, 3)), random.normal(size=(30, 3)) + 0.5
A, B = random.random(40), random.random(30)
LABELS = np.array(["red", "green", "blue"])[random.integers(0, 3, 30)]


@pytest.fixture(scope="module", params=["plan", "potentials"])
def found(request: pytest.FixtureRequest, allot: Client) -> tuple[Any, dict[str, Any], Any]:
    """(answer, where its rows come from, the plan)."""
    options: dict[str, Any] = {"reg": 0.4, "reg_m": 2.0, "tolerance": 1e-9}
    plan = allot.uot(x=X, y=Y, a=A, b=B, **options).plan
    answer = allot.uot(x=X, y=Y, a=A, b=B, output=request.param, **options)
    assert ("plan" in answer.arrays) == (request.param == "plan")
    return answer, {} if request.param == "plan" else {"x": X, "y": Y, "a": A, "b": B}, plan


def test_barycentric(found: tuple[Any, dict[str, Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    answer, source, plan = found
    monkeypatch.setattr(plans, "BLOCK", 100)  # a few rows at a time
    expected = plan @ Y / plan.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer.barycentric(Y, **source), expected, rtol=1e-4)


def test_labels(found: tuple[Any, dict[str, Any], Any]) -> None:
    answer, source, plan = found
    labels, confidence = answer.transfer_labels(LABELS, **source)
    masses = np.stack([plan[:, name == LABELS].sum(axis=1) for name in ("blue", "green", "red")], axis=1)
    assert labels.tolist() == np.array(["blue", "green", "red"])[masses.argmax(axis=1)].tolist()
    np.testing.assert_allclose(confidence, masses.max(axis=1) / masses.sum(axis=1), rtol=1e-4)


def test_top(found: tuple[Any, dict[str, Any], Any]) -> None:
    answer, source, plan = found
    columns, masses = answer.top(4, **source)
    assert columns.tolist() == np.argsort(-plan, axis=1, kind="stable")[:, :4].tolist()
    np.testing.assert_allclose(masses, -np.sort(-plan, axis=1)[:, :4], rtol=1e-3)
    with pytest.raises(ValueError, match="expected 1 to 30"):
        answer.top(31, **source)


def test_a_cost_matrix_does_as_well(allot: Client) -> None:
    cost = ((X[:, None] - Y[None]) ** 2).sum(-1)
    for reference in ("product", "uniform"):
        options: dict[str, Any] = {"reg": 0.4, "reference": reference, "tolerance": 1e-9}
        plan = allot.uot(cost, **options)
        answer = allot.uot(cost, output="potentials", **options)
        np.testing.assert_allclose(answer.barycentric(Y, cost=cost), plan.barycentric(Y), rtol=1e-4)
        np.testing.assert_allclose(answer.barycentric(Y), plan.barycentric(Y), rtol=1e-4)
    with pytest.raises(ValueError, match="give cost="):
        allot.job(answer.id).result().barycentric(Y)  # type: ignore[attr-defined]


def test_a_row_without_mass_goes_nowhere() -> None:
    plan = np.array([[0.0, 0.0], [0.25, 0.75]])
    rows = plans.given_rows(plan)
    assert np.isnan(plans.barycentric(rows, 2, np.eye(2))[0]).all()
    labels, share = plans.labels(rows, 2, ["a", "b"])
    assert (labels.tolist(), share.tolist()) == ([None, "b"], [0.0, 0.75])


@pytest.mark.parametrize("output", ["plan", "potentials"])
@pytest.mark.parametrize("clouds", [True, False], ids=["clouds", "batch"])
def test_each_of_several_problems(allot: Client, output: str, clouds: bool) -> None:
    """What is read off each plan of many is what is read off it alone."""
    sizes = ((4, 6), (7, 3), (5, 5)) if clouds else ((4, 6),) * 3
    x, y = ([random.normal(size=(size[side], 2)) for size in sizes] for side in (0, 1))
    costs = [((left[:, None] - right) ** 2).sum(-1) for left, right in zip(x, y, strict=True)]
    a = [random.random(len(one)) + 0.1 for one in x]
    options: dict[str, Any] = {"regs": np.array([0.3, 0.5, 0.8]), "reg_m": 2.0, "tolerance": 1e-9, "output": output}
    answer = allot.uot(x=x, y=y, a=a, **options) if clouds else allot.uot(np.stack(costs), a=np.stack(a), **options)
    alone = [
        allot.uot(cost, a=mass, reg=reg, reg_m=2.0, tolerance=1e-9).plan
        for cost, mass, reg in zip(costs, a, (0.3, 0.5, 0.8), strict=True)
    ]
    source: dict[str, Any] = {}
    if output == "potentials":
        source = {"x": x, "y": y, "a": a} if clouds else {"cost": np.stack(costs), "a": np.stack(a)}
    if output == "potentials":  # the other side's masses, which nobody gave
        source["b"] = [np.full(len(one), 1 / len(one)) for one in y]
    places = [plan @ right / plan.sum(axis=1, keepdims=True) for plan, right in zip(alone, y, strict=True)]
    for found, expected in zip(answer.barycentric(y, **source), places, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    for (columns, masses), plan in zip(answer.top(2, **source), alone, strict=True):
        assert columns.tolist() == np.argsort(-plan, axis=1, kind="stable")[:, :2].tolist()
        np.testing.assert_allclose(masses, -np.sort(-plan, axis=1)[:, :2], rtol=1e-3, atol=1e-6)
    names = [list("ab" * 3)[: len(right)] for right in y]
    for (label, share), plan, known in zip(answer.transfer_labels(names, **source), alone, names, strict=True):
        of_a = plan[:, np.array(known) == "a"].sum(axis=1) / plan.sum(axis=1)
        assert label.tolist() == np.where(of_a >= 0.5, "a", "b").tolist()
        np.testing.assert_allclose(share, np.maximum(of_a, 1 - of_a), rtol=1e-3)
    if not clouds:  # the same for all
        shared = answer.transfer_labels(names[0], **source)
        assert [one[0].tolist() for one in shared] == [
            one[0].tolist() for one in answer.transfer_labels(names, **source)
        ]


def test_labels_of_several_say_where_to_look(allot: Client) -> None:
    with pytest.raises(ValueError, match="transfer_labels"):
        allot.uot(x=[X, X], y=[Y, Y], labels=[[0] * 30, [1] * 30])


def test_a_plan_comes_as_a_file_and_by_one_request(allot: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[flows.Call] = []
    types: list[str] = []
    carry_out = allot._carry_out

    def told(call: flows.Call) -> flows.Answer:
        calls.append(call)
        answer = carry_out(call)
        types.append(answer.headers.get("content-type", ""))
        return answer

    monkeypatch.setattr(allot, "_carry_out", told)
    whole = allot.uot(x=X, y=Y, a=A, b=B, reg=0.4)
    assert [call.method for call in calls] == ["POST"]
    job = allot.submit("uot", {"x": X, "y": Y, "a": A, "b": B}, reg=0.4)
    job.wait()
    before = len(calls)
    again = job.result()
    fetched = [call.path for call in calls[before:] if call.path.endswith("/result")]
    assert fetched == [f"/v1/jobs/{job.id}/result"]
    assert all(types[k].startswith(flows.SAFETENSORS) for k in (0, -1))
    np.testing.assert_array_equal(again.arrays["plan"], whole.plan)
    assert again.certificate.holds
    assert again.gap == whole.gap


def test_a_service_that_sends_no_file_is_understood(allot: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = allot.uot(x=X, y=Y, a=A, b=B, reg=0.4)
    monkeypatch.setattr(flows, "A_FILE", "application/json")
    np.testing.assert_array_equal(allot.uot(x=X, y=Y, a=A, b=B, reg=0.4).plan, expected.plan)
    job = allot.submit("uot", {"x": X, "y": Y, "a": A, "b": B}, reg=0.4)
    np.testing.assert_array_equal(job.result().arrays["plan"], expected.plan)
