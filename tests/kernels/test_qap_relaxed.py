"""The semidefinite bound of quadratic assignment: its solver, and its certificate against every permutation."""

from itertools import permutations

import numpy as np
import pytest

from kernels import SOLVERS, Deadline
from kernels.certificates.relaxed import certify
from kernels.certificates.relaxed.bound import proved_bound
from kernels.problems import Array, QuadraticAssignment
from kernels.qap import QapOptions
from kernels.qap.bounds.lower import gilmore_lawler, projection
from kernels.qap.bounds.relaxed import blas
from kernels.qap.bounds.relaxed.ascent import Ascent, fits
from kernels.qap.bounds.relaxed.cone import ByProducts, BySpectrum
from kernels.qap.bounds.relaxed.eigenvalue import exceeds, top
from kernels.qap.bounds.relaxed.floor import worthwhile
from kernels.qap.bounds.relaxed.lifted import Frame, inner_indices, open_entries, pair_costs, reflection
from kernels.qap.whole import rounded
from kernels.solution import Solution, Termination


def instance(rng: np.random.Generator, n: int, kind: str) -> QuadraticAssignment:
    """Symmetric, asymmetric, with linear costs, with forbidden pairs, with negative entries."""
    low = -9 if kind == "negative" else 0
    flow, distance = rng.integers(low, 10, (2, n, n))
    if kind == "symmetric":
        flow, distance = flow + flow.T, distance + distance.T
        np.fill_diagonal(flow, 0)
    linear = rng.integers(-20, 40, (n, n)) if kind in ("linear", "forbidden") else None
    forbidden = None
    if kind == "forbidden":
        forbidden = rng.random((n, n)) < 0.3
        forbidden[np.arange(n), rng.permutation(n)] = False
        assert linear is not None
        linear = np.where(forbidden, 0, linear)
    return QuadraticAssignment(flow, distance, linear, None, forbidden)


KINDS = ("symmetric", "asymmetric", "linear", "forbidden", "negative")


def grid() -> QuadraticAssignment:
    """Random flows between 20 places on a grid."""
    places = np.array([(i, j) for i in range(4) for j in range(5)])
    flow = np.triu(np.random.default_rng(6).integers(0, 10, (20, 20)), 1)
    return QuadraticAssignment(flow + flow.T, np.abs(places[:, None] - places[None]).sum(axis=2))


def optimum(problem: QuadraticAssignment) -> float:
    every = (np.array(p) for p in permutations(range(problem.n)))
    return min(problem.objective(p) for p in every if problem.allows(p))


def ascended(problem: QuadraticAssignment, steps: int = 25) -> Ascent:
    ascent = Ascent(problem, dtype=np.float64)
    for _ in range(steps):
        ascent.step()
    ascent.measure()
    return ascent


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_a_bound_is_at_most_the_optimum_and_its_certificate_says_as_much(n: int, kind: str) -> None:
    problem = instance(np.random.default_rng(n), n, kind)
    best = ascended(problem).best
    assert best is not None
    found = proved_bound(problem, best.evidence)
    assert found is not None
    assert best.value <= found <= optimum(problem)


def test_it_closes_more_of_the_gap_than_the_cheap_bounds() -> None:
    for seed in range(6):
        problem = instance(np.random.default_rng(seed), 7, "symmetric")
        best = ascended(problem, 150).best
        other = projection(problem)
        assert best is not None
        assert other is not None
        cheap = max(gilmore_lawler(problem).raw, other.raw)
        assert best.raw >= cheap
        assert optimum(problem) - best.raw <= 0.5 * (optimum(problem) - cheap) + 1


def corrupted(evidence: dict[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    """Evidence with one thing in it changed: entries, prices, the unit, the guess, a type or a shape."""
    changed = {name: array.copy() for name, array in evidence.items()}
    kind = int(rng.integers(0, 9))
    if kind < 4:
        name = ("costs", "prices", "leaders", "costs")[kind]
        array = changed[name] = changed[name].astype(np.int64)
        count = int(rng.integers(1, array.size + 1))
        size = 2 ** int(rng.integers(0, 62))
        array.flat[rng.integers(0, array.size, count)] += rng.integers(-size, size, count)
    elif kind == 4:
        changed["exponent"] = np.array(int(changed["exponent"]) + int(rng.integers(-40, 40)))
    elif kind == 5:
        changed["eigenvalue"] = np.array(rng.choice([-1e9, 0.0, 1e-300, 1e300, np.inf, np.nan, -np.inf, 5.0]))
    elif kind == 6:
        name = str(rng.choice(sorted(changed)))
        changed[name] = changed[name].astype(rng.choice(["f8", "i8", "c16", "u1"]))
    elif kind == 7:
        name = str(rng.choice(sorted(changed)))
        changed[name] = changed[name][..., :-1] if changed[name].ndim else np.zeros(2)
    else:
        changed["costs"] = np.roll(changed["costs"], int(rng.integers(1, 40)), axis=int(rng.integers(0, 2)))
    return changed


@pytest.mark.parametrize("kind", KINDS)
def test_no_evidence_proves_more_than_the_optimum(kind: str) -> None:
    """Any Q, any prices, any guess: a bound that holds, or none."""
    rng = np.random.default_rng(len(kind))
    kept = dropped = 0
    for n in (2, 3, 4, 5):
        problem = instance(rng, n, kind)
        least = optimum(problem)
        best = ascended(problem).best if fits(problem) else None
        for _ in range(60):
            if best is not None and rng.random() < 0.7:
                evidence = corrupted(best.evidence, rng)
            else:
                size = 2 ** int(rng.integers(1, 40))
                evidence = {
                    "costs": rng.integers(-size, size, (n * n, n * n)),
                    "prices": rng.integers(-size, size, (n * n, n)),
                    "leaders": rng.integers(-size, size, n),
                    "exponent": np.array(-int(rng.integers(0, 40))),
                    "eigenvalue": np.array(float(rng.normal() * size)),
                }
            with np.errstate(all="ignore"):
                found = proved_bound(problem, evidence)
            kept, dropped = kept + (found is not None), dropped + (found is None)
            assert found is None or found <= least
    assert kept > 60
    assert dropped > 10


def test_an_asymmetric_q_and_a_multiple_of_the_identity_change_nothing() -> None:
    """Q + A with A antisymmetric and Q + c I stand for the same Z, but for x' x = n."""
    problem = instance(np.random.default_rng(3), 6, "asymmetric")
    best = ascended(problem, 60).best
    assert best is not None
    moved = dict(best.evidence)
    moved["costs"] = best.evidence["costs"].astype(np.int64) + 2**20 * np.eye(36, dtype=np.int64)
    moved["eigenvalue"] = best.evidence["eigenvalue"] + 2**20
    first, second = proved_bound(problem, best.evidence), proved_bound(problem, moved)
    assert first is not None
    assert second is not None
    assert abs(float(first - second)) <= problem.granularity


@pytest.mark.parametrize("bits", [10, 40])
def test_floats_are_bounded_by_way_of_integers(bits: int) -> None:
    rng = np.random.default_rng(bits)
    flow, distance = rng.random((2, 6, 6)) * 2.0**bits
    problem = QuadraticAssignment(flow, distance)
    near = rounded(problem)
    assert near is not None
    best = ascended(near.problem).best
    assert best is not None
    stated = near.bound(best)
    found = proved_bound(problem, stated.evidence)
    assert found is not None
    assert stated.value <= float(found) * (1 + 1e-12)
    assert found <= optimum(problem)


def test_a_certificate_takes_the_bound_in() -> None:
    """At n above 8, where nobody tries every permutation."""
    problem = instance(np.random.default_rng(1), 10, "symmetric")
    best, cheap = ascended(problem, 80).best, gilmore_lawler(problem)
    assert best is not None
    evidence = {f"sdp:{name}": array for name, array in best.evidence.items()}
    evidence |= {f"{cheap.name}:{name}": array for name, array in cheap.evidence.items()}
    facts = {"bounds": {cheap.name: cheap.value, "sdp": best.value}}
    arrays = {"permutation": np.arange(10)}
    given = Solution(Termination.TIME_LIMIT, "memetic", arrays, 1, 0, {}, facts, evidence)
    found = certify(problem, given)
    assert found.holds
    assert found.bound == best.value > cheap.value
    assert found.facts["bounds_checked"] == {cheap.name: cheap.value, "sdp": best.value}
    assert "sdp" in found.proved
    assert "claimed_bound" not in found.facts
    evidence["sdp:costs"] = evidence["sdp:costs"] + 2**20  # a uniform shift: more is promised than is there
    facts["bounds"]["sdp"] = 10**9
    lied = certify(problem, given)
    assert lied.facts["claimed_bound"] == 10**9
    assert lied.bound is not None
    assert lied.bound <= best.value + 1


def test_the_span_is_that_of_permutations() -> None:
    n, rng = 5, np.random.default_rng(0)
    frame = Frame(n, np, np.float64)
    x = np.eye(n)[rng.permutation(n)].ravel()
    inside = frame.inside(np.outer(x, x))
    assert np.allclose(np.trace(inside), n)
    assert np.allclose(frame.outside(inside), np.outer(x, x))
    turned = np.kron(reflection(n), reflection(n))[:, inner_indices(n)]
    assert np.allclose(turned.T @ np.outer(x, x) @ turned, inside)


def test_lifted_costs_are_the_objective() -> None:
    rng = np.random.default_rng(0)
    problem = instance(rng, 6, "linear")
    assert problem.linear is not None
    lifted = pair_costs(problem.flow.astype(float), problem.distance.astype(float), problem.linear, np)
    kept = lifted * open_entries(problem)
    for _ in range(5):
        p = rng.permutation(6)
        x = np.eye(6)[p].ravel()
        assert x @ kept @ x == problem.objective(p)


def test_a_projection_by_products_is_near_that_by_the_spectrum() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((60, 60))
    matrix = matrix + matrix.T
    exact, near = BySpectrum(), ByProducts(np, smallest=1e-4)
    want = exact(matrix.copy(), 8.0)
    assert np.isclose(np.trace(want), 8.0)
    for _ in range(12):
        got = near(matrix.copy(), 8.0)
    assert abs(near.shift - exact.shift) < 1e-3
    assert np.linalg.norm(got - want) < 1e-2 * np.linalg.norm(want)


def test_a_penalty_that_changes_does_not_throw_the_projection_off() -> None:
    """By products alone the shift is that of the last call, of another penalty."""
    exact, near = Ascent(grid()), Ascent(grid(), project=ByProducts(np, 1e-4))
    for _ in range(40):
        exact.step()
        near.step()
    true, found = exact.measure(), near.measure()
    assert true is not None
    assert found is not None
    assert found.raw == pytest.approx(true.raw, rel=0.01)


def test_large_and_empty_data_have_no_bound() -> None:
    empty = np.zeros((6, 6), np.int64)
    assert not fits(QuadraticAssignment(empty, empty))
    large = np.full((6, 6), 2**25)
    assert not fits(QuadraticAssignment(large, large))
    assert not fits(QuadraticAssignment(empty[:3, :3] + 1, empty[:3, :3] + 1))


def test_auto_leaves_it_out_where_a_tree_ends_or_time_is_short() -> None:
    assert not worthwhile(12, 1e9)
    assert worthwhile(30, 40.0)
    assert not worthwhile(30, 1.0)
    assert worthwhile(42, 40.0)
    assert not worthwhile(60, 40.0)


def test_one_thread_is_given_back() -> None:
    before = [get() for get, _ in blas._libraries()]
    with blas.one_thread(), blas.one_thread():
        assert all(get() == 1 for get, _ in blas._libraries())
    assert [get() for get, _ in blas._libraries()] == before


@pytest.mark.parametrize("order", [1, 2, 30, 200])
def test_the_largest_eigenvalue_is_estimated_from_products_and_shown_by_a_factorisation(order: int) -> None:
    matrix = np.random.default_rng(order).normal(size=(order, order))
    matrix = matrix + matrix.T
    true, size = np.linalg.eigvalsh(matrix)[-1], np.linalg.norm(matrix)
    low, high = top(matrix, np)
    assert true - 1e-3 * size <= low <= true + 1e-9 * size
    assert low - 1e-9 * size <= high <= true + 1e-3 * size
    assert exceeds(true + 1e-9 * size, matrix, np.linalg.cholesky, np)
    assert not exceeds(true - 1e-9 * size, matrix, np.linalg.cholesky, np)


def test_what_products_leave_open_is_halved_as_long_as_a_factorisation_shows_it() -> None:
    matrix = np.random.default_rng(2).normal(size=(40, 40))
    matrix = matrix + matrix.T
    true, ascent = float(np.linalg.eigvalsh(matrix)[-1]), Ascent(grid())
    for low, high in ((true - 1, true + 3), (true - 1e-3, true + 1e-3), (true, true + 1)):
        found = ascent._lowered(low, high, 1e-9, matrix)
        assert true - 1e-9 <= found <= true + (high - low) / 32
    assert ascent._lowered(true, true + 0.5, 1.0, matrix) == true + 0.5


def test_the_penalty_follows_the_residuals() -> None:
    """Places on a grid: less than a third of what the cheap bounds leave open is left, as no constant penalty does."""
    problem = grid()
    solution = SOLVERS["qap"].solve(problem, QapOptions(bounds=(), rounds=2), Deadline(20))
    best = problem.objective(solution.arrays["permutation"])
    ascent = Ascent(problem)
    for _ in range(60):
        ascent.step()
    found = ascent.measure()
    assert found is not None
    cheap = max(bound.raw for bound in (gilmore_lawler(problem), projection(problem)) if bound is not None)
    assert best - found.raw < 0.3 * (best - cheap)
