"""The certificate of transport on the device, against the CPU's, the exact one, and spoiled answers.

Answers come from the CPU's solver, so that a failure here is one of the certificate; the last tests go the whole way.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, InputChanged, Solution, Termination, solve_and_prove
from kernels.certificates.several.stated import SAID
from kernels.problems.several import SeveralTransports
from kernels.solution import OnDevice
from tests.conftest import gpu_is_here
from tests.instances import Case, transport
from tests.kernels.on_device import certify_on_device, differences, disproved, solved

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
UOT = SOLVERS["uot"]
CLOSE = 1e-11
"""Values on the device and on the CPU differ by less than this of the larger: both round outward, by other routes."""
STEPS = (5e-324, 1e-300, 1e-17, 1e-12, 1e-6, 1e-2, 1.0, 1e3, 1e6, 1e18, 1e300, np.inf, -np.inf, np.nan)
INFINITE_POTENTIALS = {"uot-forbidden"}
"""Lines that no permitted entry reaches are the CPU's."""


def apart(device: Certificate, cpu: Certificate) -> list[str]:
    """Where the two certificates differ by more than their ways of rounding."""
    found = differences(device, cpu, steps=CLOSE / 2.0**-52)
    for name in ("gap_rel", "max_violation"):
        here, there = getattr(device, name), getattr(cpu, name)
        if (here is None) != (there is None) or (here is not None and abs(here - there) > CLOSE):
            found.append(f"{name}: {here!r} on the device, {there!r} on the CPU")
    for name, there in cpu.facts.items():
        here = device.facts.get(name)
        if type(here) is not type(there) or (isinstance(there, float) and abs(float(str(here)) - there) > 1e-9):
            found.append(f"facts[{name}]: {here!r} on the device, {there!r} on the CPU")
    return found


@pytest.mark.parametrize("output", ["plan", "potentials"])
@pytest.mark.parametrize("case", transport.CASES, ids=str)
def test_cases(case: Case, output: str) -> None:
    """Every family of the contract test: as the CPU's certificate, and true."""
    inputs, options = case.inputs(), {"output": output, **case.options}
    problem, solution, cpu = solved("uot", inputs, options)
    found = certify_on_device(UOT, problem, solution)
    if found is None:
        top = "top_columns" in solution.arrays
        left = top or str(case) in INFINITE_POTENTIALS or isinstance(problem, SeveralTransports)
        assert left, f"{case} {output}: not certified; the CPU says {cpu}"
        return
    assert not apart(found, cpu), f"{case} {output}: {apart(found, cpu)}"
    assert not disproved("uot", inputs, options, solution, found), f"{case} {output}: {found}"


def clouds(m: int, n: int, d: int, dtype: str) -> dict[str, Array]:
    rng = np.random.default_rng([1, m, n, d])
    return {"x": rng.random((m, d)).astype(dtype), "y": (rng.random((n, d)) + 0.1).astype(dtype)}


def costs(m: int, n: int, dtype: str, forbidden: bool = False) -> dict[str, Array]:
    rng = np.random.default_rng([2, m, n])
    cost = rng.random((m, n)).astype(dtype)
    if forbidden:
        cost[rng.random((m, n)) < 0.3] = np.inf
    return {"cost": cost, "a": rng.random(m), "b": rng.random(n)}


LARGER: dict[str, tuple[Any, dict[str, Any]]] = {
    "rows in pieces": (lambda: costs(37, 4500, "float64"), {}),
    "rows in pieces, float32": (lambda: costs(41, 4501, "float32"), {}),
    "columns in pieces": (lambda: costs(700, 33, "float64"), {}),
    "columns in pieces, float32": (lambda: costs(701, 33, "float32"), {"output": "potentials"}),
    "forbidden entries": (lambda: costs(90, 101, "float32", forbidden=True), {}),
    "forbidden entries, potentials": (lambda: costs(90, 101, "float64", forbidden=True), {"output": "potentials"}),
    "points, odd number": (lambda: clouds(303, 301, 3, "float32"), {"output": "potentials"}),
    "points, one dimension": (lambda: clouds(200, 210, 1, "float64"), {"output": "potentials"}),
    "points, nine dimensions": (lambda: clouds(120, 90, 9, "float32"), {"metric": "euclidean"}),
    "points, 60 dimensions": (lambda: clouds(80, 70, 60, "float64"), {"reg": 1.0}),
    "points, inner": (lambda: clouds(80, 70, 20, "float32"), {"metric": "inner", "reg": 0.5}),
    "points, balanced": (lambda: clouds(90, 80, 2, "float64"), {"reg_m": "inf", "output": "potentials"}),
    "balanced, float32": (lambda: {"cost": costs(90, 80, "float32")["cost"]}, {"reg_m": "inf"}),
    "balanced, coarse": (
        lambda: {"cost": costs(90, 80, "float64")["cost"]},
        {"reg_m": "inf", "output": "potentials", "tolerance": 0.01},
    ),
    "one side balanced": (lambda: costs(60, 50, "float64"), {"reg_m": ("inf", 0.5), "output": "potentials"}),
    "uniform reference": (lambda: costs(60, 50, "float32"), {"reference": "uniform"}),
    "large reg": (lambda: costs(60, 50, "float64"), {"reg": 1e4, "reg_m": 1e4}),
    "small units": (
        lambda: {"cost": np.ldexp(costs(60, 50, "float64")["cost"], -40)},
        {"reg": 0.05 * 2.0**-40, "reg_m": 2.0**-40},
    ),
    "batch": (lambda: transport.batch(9, 31, 33), {"reg": 0.05, "reg_m": 1.0}),
    "batch, float32, potentials": (
        lambda: {"cost": transport.batch(9, 31, 33)["cost"].astype(np.float32)},
        {"output": "potentials", "reg": 0.05, "reg_m": 1.0},
    ),
}


@pytest.mark.parametrize("label", LARGER)
def test_larger(label: str) -> None:
    """Several pieces of a line, words that straddle rows, dimensions, units; against the CPU's certificate."""
    make, options = LARGER[label]
    problem, solution, cpu = solved("uot", make(), options)
    found = certify_on_device(UOT, problem, solution)
    assert found is not None, f"{label}: not certified; {solution.termination}, the CPU says {cpu}"
    assert not apart(found, cpu), f"{label}: {apart(found, cpu)}"


def test_potentials_of_a_balanced_side_that_forbids_are_left_to_the_cpu() -> None:
    inputs = {"cost": costs(9, 8, "float64", forbidden=True)["cost"]}
    problem, solution, _ = solved("uot", inputs, {"reg_m": ("inf", 1.0), "output": "potentials"})
    assert certify_on_device(UOT, problem, solution) is None


@pytest.mark.parametrize("label", ["rows in pieces", "batch", "one side balanced", "points, one dimension"])
@pytest.mark.parametrize("power", [-240, -66, 66, 300])
def test_other_units(label: str, power: int) -> None:
    """Costs, reg and reg_m times a power of two: the same certificate, in these units."""
    make, options = LARGER[label]
    problem, solution, _ = solved("uot", make(), options)
    found = certify_on_device(UOT, problem, solution)
    scaled = replace(
        problem,
        cost=None if problem.cost is None else np.ldexp(problem.cost.astype(np.float64), power),
        x=None if problem.x is None else np.ldexp(problem.x.astype(np.float64), power // 2),
        y=None if problem.y is None else np.ldexp(problem.y.astype(np.float64), power // 2),
        reg=np.ldexp(problem.reg, power),
        reg_m=tuple(np.ldexp(problem.reg_m, power).tolist()),
    )
    arrays = {name: np.ldexp(array, power) if name in "fg" else array for name, array in solution.arrays.items()}
    facts = {name: said for name, said in solution.facts.items() if name not in ("reg", "reg_m", *SAID)}
    there = certify_on_device(UOT, scaled, replace(solution, arrays=arrays, facts=facts))
    assert found is not None
    assert there is not None
    assert (there.gap_rel, there.max_violation, there.termination) == (
        found.gap_rel,
        found.max_violation,
        found.termination,
    )
    for name in ("objective", "bound", "gap_abs"):
        assert getattr(there, name) == np.ldexp(getattr(found, name), power), name


def spoiled(rng: np.random.Generator, solution: Solution) -> Iterator[tuple[str, Solution]]:
    """The solution with one array changed in one place, or as a whole, by one ulp to a lot."""
    for name in ("f", "g", "plan", "rest_a", "rest_b"):
        for step in STEPS:
            for whole in (False, True):
                if name not in solution.arrays:
                    continue
                array = solution.arrays[name].copy()
                k: Any = ... if whole else tuple(int(rng.integers(extent)) for extent in array.shape)
                with np.errstate(over="ignore"):
                    array[k] = np.nextafter(array[k], np.inf) if step == STEPS[0] else array[k] + step
                yield f"{name}{k} + {step}", replace(solution, arrays=solution.arrays | {name: array})
    if "plan" in solution.arrays:
        plan = solution.arrays["plan"]
        for factor in (1 + 1e-12, 1.01, 0.0, -1.0):
            yield f"plan * {factor}", replace(solution, arrays=solution.arrays | {"plan": plan * factor})


SPOILED: dict[str, tuple[Any, dict[str, Any]]] = {
    "plan": (lambda: costs(9, 8, "float64"), {}),
    "plan, float32": (lambda: costs(9, 8, "float32"), {"tolerance": 1e-4}),
    "plan, forbidden": (lambda: costs(9, 8, "float64", forbidden=True), {}),
    "plan, balanced": (lambda: {"cost": costs(9, 8, "float64")["cost"]}, {"reg_m": "inf"}),
    "plan, uniform": (lambda: costs(9, 8, "float64"), {"reference": "uniform"}),
    "potentials": (lambda: costs(9, 8, "float64"), {"output": "potentials"}),
    "potentials, rows balanced": (lambda: costs(9, 8, "float64"), {"output": "potentials", "reg_m": ("inf", 1.0)}),
    "potentials, balanced": (
        lambda: {"cost": costs(9, 8, "float64")["cost"]},
        {"output": "potentials", "reg_m": "inf", "tolerance": 0.01},
    ),
    "potentials, strong": (lambda: costs(9, 8, "float64"), {"output": "potentials", "reg_m": 1e5}),
    "points": (lambda: clouds(8, 9, 3, "float32"), {"output": "potentials"}),
    "points, euclidean": (lambda: clouds(8, 9, 2, "float64"), {"metric": "euclidean"}),
    "points, inner": (lambda: clouds(8, 9, 4, "float64"), {"metric": "inner", "reg": 0.5}),
}


@pytest.mark.parametrize("label", SPOILED)
def test_spoiled_answers(label: str) -> None:
    """A spoiled answer is left to the CPU, or what is said of it is true."""
    make, options = SPOILED[label]
    rng = np.random.default_rng([3, *label.encode()])
    inputs = make()
    problem, solution, _ = solved("uot", inputs, options)
    said = 0
    for claim in (Termination.GAP_REACHED, Termination.TIME_LIMIT):
        for what, wrong in spoiled(rng, replace(solution, termination=claim)):
            found = certify_on_device(UOT, problem, wrong)
            if found is None:
                continue
            said += 1
            false = disproved("uot", inputs, options, wrong, found)
            assert not false, f"{label}, {claim}, {what}: {false}\n{found}"
    assert said >= 8, f"{label}: only {said} spoiled answers were looked at"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_stray_write_is_seen(dtype: str) -> None:
    import cupy

    rng = np.random.default_rng(4)
    for inputs, name in (
        (costs(51, 53, dtype), "cost"),
        (clouds(51, 53, 3, dtype), "x"),
        (clouds(51, 53, 3, dtype), "y"),
    ):
        problem, solution, _ = solved("uot", inputs, {"output": "potentials"})
        given = getattr(problem, name)
        for bit in range(8):
            written = given.copy()
            raw = written.reshape(-1).view(np.uint8)
            raw[int(rng.integers(raw.size))] ^= 1 << bit
            with pytest.raises(InputChanged):
                certify_on_device(UOT, problem, replace(solution, uploads=[OnDevice(given, cupy.asarray(written))]))
        assert certify_on_device(UOT, problem, replace(solution, uploads=[OnDevice(given, cupy.asarray(given))]))


WHOLE: dict[str, tuple[Any, dict[str, Any]]] = {
    "cost": (lambda: costs(600, 700, "float64"), {}),
    "cost, float32": (lambda: costs(1001, 999, "float32"), {}),
    "balanced": (lambda: {"cost": costs(500, 500, "float64")["cost"]}, {"reg_m": "inf", "tolerance": 1e-4}),
    "points, potentials": (lambda: clouds(1000, 1200, 3, "float32"), {"output": "potentials"}),
    "batch": (
        lambda: {"cost": transport.batch(40, 60, 60)["cost"].astype(np.float32)},
        {"tolerance": 1e-4, "reg": 0.05, "reg_m": 1.0},
    ),
}


@pytest.mark.parametrize("label", WHOLE)
def test_a_job_on_the_gpu_is_certified_there(label: str) -> None:
    make, given = WHOLE[label]
    options = UOT.options(**given)
    problem = UOT.build(make(), options)
    solution, certificate = solve_and_prove(UOT, problem, options, Deadline(60), "gpu")
    assert certificate.facts.get("certified_on") == "gpu", f"{solution.termination}: {certificate}"
    cpu = UOT.certify(problem, solution)
    assert not apart(certificate, cpu), f"{label}: {apart(certificate, cpu)}"
    assert not solution.uploads, "device memory is still held"
