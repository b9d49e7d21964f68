"""The certificate of assignments and auctions on the device, against the CPU's, the exact one, and spoiled answers.

Answers come from the CPU's solvers, so that a failure here is one of the certificate; the last tests go the whole way.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, InputChanged, Inputs, Solution, Termination, solve_and_prove
from kernels.solution import OnDevice
from tests.conftest import gpu_is_here
from tests.instances import Case, assignment, auction
from tests.kernels.lap_cases import FAMILIES, draw, is_true
from tests.kernels.on_device import certify_on_device, differences, disproved, solved

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
LAP, AUCTION = SOLVERS["lap"], SOLVERS["auction"]
EXACTLY = 20_000
"""Entries up to which the exact certificate is asked too: it is slow."""
LEFT_TO_THE_CPU = {"lap-one-per-row", "lap-wide-range"}
STEPS = (5e-324, 1e-300, 1e-16, 1e-12, 1e-6, 1.0, 1e6, 1e18, 1e300, np.inf, -np.inf, np.nan)


def mixed(case: Case) -> str:
    return str(case)


@pytest.mark.parametrize("case", [*assignment.LAP_CASES, *auction.CASES], ids=mixed)
def test_cases(case: Case) -> None:
    """Every family of the contract test: the same words and numbers as the CPU's certificate, and true."""
    inputs = case.inputs()
    problem, solution, cpu = solved(case.solver, inputs, case.options)
    found = certify_on_device(SOLVERS[case.solver], problem, solution)
    if found is None:
        assert is_left_to_the_cpu(case, problem, solution), f"{case}: not certified on the device; the CPU says {cpu}"
        return
    assert not differences(found, cpu, steps=2), f"{case}: {differences(found, cpu, steps=2)}"
    assert found.max_violation == pytest.approx(cpu.max_violation, rel=1e-12), f"{case}: {found} {cpu}"
    if sum(getattr(array, "size", 0) for array in inputs.values()) <= EXACTLY:
        assert not disproved(case.solver, inputs, case.options, solution, found), f"{case}: {found}"


def is_left_to_the_cpu(case: Case, problem: Any, solution: Solution) -> bool:
    """Graphs, points, infeasible problems, prices in several words, and integers with prices that are not whole."""
    dense = isinstance(problem.weights, np.ndarray) and problem.weights.size > 0
    if not dense or solution.termination is Termination.INFEASIBLE:
        return True
    if "v_finer" in solution.arrays or "u_finer" in solution.arrays:
        return True
    if case.solver == "lap":
        return False
    fractional = problem.weights.dtype.kind == "i" and solution.arrays["prices"].dtype.kind == "f"
    other = problem.reject is not None and problem.reject.dtype.kind != problem.weights.dtype.kind
    return fractional or other


@pytest.mark.parametrize("family", FAMILIES)
def test_small_problems(family: str) -> None:
    """1 x 1 to 6 x 6 of strange numbers, against all assignments."""
    rng = np.random.default_rng([3, *family.encode()])
    said = 0
    for number in range(60):
        cost, maximize, start = draw(family, rng)
        problem, solution, cpu = solved("lap", {"cost": cost, **start}, {"maximize": maximize})
        found = certify_on_device(LAP, problem, solution)
        if found is None:
            continue
        said += 1
        is_true(found, cost, maximize, solution)
        assert not differences(found, cpu, steps=2), f"{family} {number}: {differences(found, cpu, 2)}\n{cost!r}"
    assert said >= 15, f"{family}: only {said} of 60 problems were certified on the device"


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1),
        (1, 4097),
        (4097, 1),
        (63, 63),
        (64, 65),
        (300, 301),
        (301, 300),
        (2, 9000),
        (9000, 2),
        (7, 31, 33),
        (7, 33, 31),
    ],
    ids=str,
)
def test_shapes(shape: tuple[int, ...], dtype: str) -> None:
    """Words that straddle two rows or two problems, lines in several pieces, more rows than columns."""
    cost = (np.random.default_rng([4, *shape]).random(shape) * 2e6 - 1e6).astype(dtype)
    for maximize in (False, True):
        problem, solution, cpu = solved("lap", {"cost": cost}, {"maximize": maximize})
        found = certify_on_device(LAP, problem, solution)
        assert found is not None, f"{shape} {dtype} maximize={maximize}: not certified; the CPU says {cpu}"
        assert not differences(found, cpu, steps=2), f"{shape} {dtype}: {differences(found, cpu, 2)}"


def test_ragged_batches_of_both_ways() -> None:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 24, (40, 2))
    for dtype in (np.float64, np.float32, np.int32, np.int64):
        cost = (rng.random((40, 23, 23)) * 1e6).astype(dtype)
        problem, solution, cpu = solved("lap", {"cost": cost, "sizes": sizes}, {})
        found = certify_on_device(LAP, problem, solution)
        assert found is not None, f"{dtype}: {cpu}"
        for name, listed in found.facts["problems"].items():
            there = cpu.facts["problems"][name]
            if name == "terminations" or np.dtype(dtype).kind == "i":
                assert listed == there, f"{dtype} {name}"
            else:
                np.testing.assert_allclose(listed, there, rtol=4e-16, atol=1e-9, err_msg=f"{dtype} {name}")


def test_subnormal_float32_is_not_lost() -> None:
    """CuPy compiles so that a plain conversion would flush these to 0."""
    cost = (np.random.default_rng(6).integers(1, 4000, (70, 70)) * 1e-45).astype(np.float32)
    problem, solution, cpu = solved("lap", {"cost": cost}, {})
    found = certify_on_device(LAP, problem, solution)
    assert found is not None, cpu
    assert found.objective == cpu.objective, (found, cpu)
    assert found.objective, "flushed to zero"


def spoiled(rng: np.random.Generator, solution: Solution, names: tuple[str, ...]) -> Iterator[tuple[str, Solution]]:
    """The solution with one array changed in one place, by one ulp to a lot."""
    for name in names:
        for step in STEPS:
            array = solution.arrays[name].copy()
            k = tuple(int(rng.integers(extent)) for extent in array.shape)
            if array.dtype.kind == "f":
                array[k] = np.nextafter(array[k], np.inf) if step == STEPS[0] else array[k] + step
            elif np.isfinite(step) and abs(step) < 2.0**60:
                array[k] += np.int64(max(1, step))
            yield f"{name}{list(k)} + {step}", replace(solution, arrays=solution.arrays | {name: array})
    answer = solution.arrays["assignment"]
    if answer.size > 1:
        swapped, doubled = answer.copy(), answer.copy()
        swapped[..., [0, 1]] = answer[..., [1, 0]]
        doubled[..., 0] = answer[..., 1]
        yield "two rows swapped", replace(solution, arrays=solution.arrays | {"assignment": swapped})
        yield "a column twice", replace(solution, arrays=solution.arrays | {"assignment": doubled})
    beyond, out = answer.copy(), answer.copy()
    beyond[..., 0], out[..., 0] = 10**9, -1
    yield "a column out of range", replace(solution, arrays=solution.arrays | {"assignment": beyond})
    yield "a row left out", replace(solution, arrays=solution.arrays | {"assignment": out})


@pytest.mark.parametrize(
    "family", ["uniform", "ties", "scales", "big-m", "distances", "float32", "tiny", "huge", "int", "int-large"]
)
def test_spoiled_assignments(family: str) -> None:
    """A spoiled answer is left to the CPU, or what is said of it is true."""
    rng = np.random.default_rng([7, *family.encode()])
    said = 0
    for _ in range(6):
        cost, maximize, _ = draw(family, rng)
        problem, solution, _ = solved("lap", {"cost": cost}, {"maximize": maximize})
        if solution.termination is Termination.INFEASIBLE:
            continue
        for claim in (Termination.OPTIMAL, Termination.TIME_LIMIT):
            for what, wrong in spoiled(rng, replace(solution, termination=claim, evidence={}), ("u", "v")):
                found = certify_on_device(LAP, problem, wrong)
                if found is None:
                    continue
                said += 1
                is_a_pairing = valid(cost, wrong.arrays["assignment"])
                assert found.holds == is_a_pairing or found.objective is None, f"{family} {what}: {found}"
                false = disproved("lap", {"cost": cost}, {"maximize": maximize}, wrong, found)
                assert not false, f"{family}, {claim}, {what}: {false}\n{found}"
    assert said > 20, f"{family}: only {said} spoiled answers were looked at"


def valid(cost: Array, answer: Array) -> bool:
    """Whether this is a pairing at all, complete or not."""
    taken = answer[answer != -1]
    if len(taken) != len(set(taken.tolist())) or ((taken < 0) | (taken >= cost.shape[1])).any():
        return False
    rows = np.flatnonzero(answer != -1)
    chosen = cost[rows, taken]
    return bool((np.isfinite(chosen) if cost.dtype.kind == "f" else chosen != -(2**63)).all())


@pytest.mark.parametrize(
    "family", ["dense-int", "dense-float", "dense-float32-wide", "dense-forbidden", "dense-negative"]
)
def test_spoiled_auctions(family: str) -> None:
    rng = np.random.default_rng([8, *family.encode()])
    inputs = auction.FAMILIES[family]()
    problem, solution, _ = solved("auction", inputs, {})
    said = 0
    for claim in (Termination.OPTIMAL, Termination.TIME_LIMIT):
        for what, wrong in spoiled(rng, replace(solution, termination=claim), ("prices", "profits")):
            found = certify_on_device(AUCTION, problem, wrong)
            if found is None:
                continue
            said += 1
            false = disproved("auction", inputs, {}, wrong, found)
            if (found.termination or claim) is not Termination.OPTIMAL:  # then it says nothing of profits
                false = [words for words in false if not words.startswith("profits")]
            assert not false, f"{family}, {claim}, {what}: {false}\n{found}"
    assert said >= 10, f"{family}: only {said} spoiled answers were looked at"


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
@pytest.mark.parametrize("shape", [(50, 51), (51, 50), (5, 21, 23)], ids=str)
def test_a_stray_write_is_seen(shape: tuple[int, ...], dtype: str) -> None:
    """One bit in one entry, a run of zeros, a negated row, two entries exchanged."""
    import cupy

    rng = np.random.default_rng([9, *shape])
    cost = (rng.random(shape) * 1e6 + 1).astype(dtype)
    problem, solution, _ = solved("lap", {"cost": cost}, {})
    weights = problem.weights
    for k in range(12):
        written = weights.copy()
        flat = written.reshape(-1)
        at, other = rng.choice(flat.size, 2, replace=False)
        if k < 6:
            flat[at : at + 1].view(np.uint8)[int(rng.integers(flat.itemsize))] ^= 1 << int(rng.integers(8))
        elif k < 8:
            flat[at : at + 33] = 0
        elif k < 10:
            flat[at : at + 40] *= -1
        else:
            flat[[at, other]] = flat[[other, at]]
        wrong = replace(solution, uploads=[OnDevice(weights, cupy.asarray(written))])
        with pytest.raises(InputChanged):
            certify_on_device(LAP, problem, wrong)
    kept = replace(solution, uploads=[OnDevice(weights, cupy.asarray(weights))])
    assert certify_on_device(LAP, problem, kept) is not None


def test_large_arrays_reach_the_device_whole() -> None:
    """Through page-locked buffers, several times around, with an odd end; and straight from page-locked memory."""
    import cupyx

    from kernels.certificates.gpu.gpu_arrays import STAGE, copied

    pageable = np.random.default_rng(11).integers(0, 256, 5 * STAGE // 2 + 4321, np.uint8)
    assert (copied(pageable).get() == pageable).all()
    locked = cupyx.empty_pinned(2 * STAGE, np.uint8)
    locked[:] = pageable[: 2 * STAGE]
    assert (copied(locked).get() == locked).all()


@pytest.mark.parametrize(
    ("solver", "name", "shape", "dtype"),
    [
        ("lap", "cost", (400, 400), np.float64),
        ("lap", "cost", (400, 500), np.float32),
        ("lap", "cost", (500, 400), np.int32),
        ("lap", "cost", (200, 30, 30), np.float32),
        ("lap", "cost", (2200, 2200), np.float64),
        ("auction", "benefit", (600, 600), np.int32),
        ("auction", "benefit", (600, 700), np.float64),
    ],
    ids=str,
)
def test_a_job_on_the_gpu_is_certified_there(solver: str, name: str, shape: tuple[int, ...], dtype: type) -> None:
    """Solve, hand over what lies on the device, certify: as a worker does it."""
    inputs: Inputs = {name: (np.random.default_rng(10).random(shape) * 1e5).astype(dtype)}
    card = SOLVERS[solver]
    options = card.options()
    problem = card.build(inputs, options)
    solution = card.solve(problem, options, Deadline(60), "gpu")
    assert solution.uploads, "the solver left nothing on the device"
    assert any(upload.host is problem.weights for upload in solution.uploads), "of another array"
    found, cpu = certify_on_device(card, problem, solution), card.certify(problem, solution)
    # Auctions of floats may leave a little open; then the CPU's certificate says so, and the answer is mended.
    assert found is not None or cpu.termination is not None, f"left to the CPU: {cpu}"
    assert found is None or not differences(found, cpu, 2), (found, cpu)
    solution, certificate = solve_and_prove(card, problem, options, Deadline(60), "gpu")
    assert found is None or certificate.facts.get("certified_on") == "gpu", certificate
    assert not solution.uploads, "device memory is still held"
