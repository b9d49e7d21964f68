"""A certificate takes any arrays: whatever stands there, it refuses them or states what is true of them."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Csr, Solution, Termination
from tests.fuzz.case import Case
from tests.fuzz.mutate import verdict_on
from tests.fuzz.outcome import run

RNG = np.random.default_rng(3)
FLOATS, WHOLE = RNG.random((4, 4)), RNG.integers(0, 9, (4, 5))
SIZES = np.array([[2, 3], [4, 4], [1, 1]])
BARRED = np.array([np.full(3, np.inf), *np.eye(2, 3)])
SQUARE = RNG.integers(0, 80, (9, 9))
TRIANGLE = RNG.random((9, 9))
GRAPH = Csr(np.array([0, 2, 4, 6]), np.array([0, 1, 1, 2, 0, 2]), np.array([7, 4, 6, 3, 5, 8]), (3, 3))
MASSES = {"a": np.array([0.5, 0.2, 0.3, 0.4]), "b": np.array([0.6, 0.5, 0.3, 0.2, 0.1])}
ROUND = {"a": np.full(4, 0.25), "b": np.full(4, 0.25)}
TRANSPORT = FLOATS @ RNG.random((4, 5))
SHAPES = np.array([[0.5, 0.2, 0.3, 0, 0], [0, 0.1, 0.2, 0.3, 0.4]])
BLOCKED = np.array([[np.inf, np.inf, np.inf, 1], [np.inf, np.inf, np.inf, 2], [1, 1, 1, 1], [1, 1, 1, 1]])
SOFT = {"reg": 0.1, "reg_m": 1.0}
BOUNDED = {"bounds": ("gilmore-lawler", "projection", "rlt1"), "rounds": 1}
CASES = {
    "lap": Case("lap", "", {"cost": FLOATS}),
    "lap, integers": Case("lap", "", {"cost": WHOLE}),
    "lap, tall": Case("lap", "", {"cost": RNG.random((5, 3))}),
    "lap, wide range": Case("lap", "", {"cost": np.ldexp(FLOATS, RNG.integers(-200, 200, (4, 4)))}),
    "lap, ragged": Case("lap", "", {"cost": RNG.integers(0, 9, (3, 4, 4)), "sizes": SIZES}),
    "lap, infeasible": Case("lap", "", {"cost": np.array([[np.inf, np.inf], [1, 2]])}),
    "lap, one infeasible": Case("lap", "", {"cost": np.array([[[np.inf, np.inf], [1, 2]], [[1, 2], [3, 4]]])}),
    "auction": Case("auction", "", {"benefit": FLOATS}, {"epsilon": 0.1, "trace": True}),
    "auction, integers": Case("auction", "", {"benefit": WHOLE}),
    "auction, reject": Case("auction", "", {"benefit": FLOATS, "reject": np.full(4, 0.3)}),
    "auction, sparse": Case("auction", "", {"benefit": GRAPH}),
    "auction, infeasible": Case("auction", "", {"benefit": np.array([[-np.inf, 1], [-np.inf, 2]])}),
    "auction, points": Case("auction", "", {"x": FLOATS[:, :2], "y": RNG.random((5, 2))}, {"neighbours": 3}),
    "qap": Case("qap", "", {"flow": WHOLE[:, :4], "distance": WHOLE[:, 1:]}, {"population": True}),
    "qap, bounds": Case("qap", "", {"flow": SQUARE % 9, "distance": SQUARE}, BOUNDED),
    "qap, floats": Case("qap", "", {"flow": TRIANGLE + TRIANGLE.T, "distance": TRIANGLE * TRIANGLE.T}, BOUNDED),
    "uot": Case("uot", "", {"cost": TRANSPORT, **MASSES}, SOFT),
    "uot, potentials": Case("uot", "", {"cost": TRANSPORT, **MASSES}, {**SOFT, "output": "potentials", "top_k": 2}),
    "uot, balanced": Case("uot", "", {"cost": FLOATS, **ROUND}, {"reg": 0.1, "reg_m": "inf"}),
    "uot, balanced potentials": Case("uot", "", {"cost": FLOATS, **ROUND}, {
        "reg": 0.1, "reg_m": "inf", "output": "potentials",
    }),
    "uot, points": Case("uot", "", {"x": FLOATS[:, :2], "y": RNG.random((5, 2)), **MASSES}, SOFT),
    "uot, batch": Case("uot", "", {"cost": np.stack([TRANSPORT, 2 * TRANSPORT]), **{
        name: np.stack([mass, mass]) for name, mass in MASSES.items()
    }}, SOFT),
    "uot, infeasible": Case("uot", "", {"cost": BLOCKED, **ROUND}, {"reg": 0.1, "reg_m": "inf"}),
    "qap, infeasible": Case("qap", "", {"flow": np.eye(3), "distance": np.eye(3), "linear": BARRED}),
    "barycenter": Case("barycenter", "", {"histograms": SHAPES, "cost": TRANSPORT}, {"reg": 0.1}),
    "barycenter, debiased": Case("barycenter", "", {"histograms": SHAPES, "cost": np.abs(
        np.arange(5.0)[:, None] - np.arange(5)
    )}, {"reg": 0.5, "debiased": True}),
    "barycenter, exact": Case("barycenter", "", {"histograms": SHAPES, "cost": TRANSPORT}, {"reg": 0}),
    "barycenter, free": Case("barycenter", "", {"x": np.stack([FLOATS[:, :2], FLOATS[:, 2:]])}),
}  # fmt: skip
DTYPES: tuple[Any, ...] = (np.float32, np.float64, np.int8, np.int32, np.uint64, bool, complex, object, "U8")
NUMBERS = {"i": (-1, -2, 7, 10**6, 2**62), "u": (7,), "f": (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324), "b": ()}
NONSENSE: tuple[Any, ...] = ("x", None, float("nan"), [1], -1, {"a": "b"}, {"gilmore-lawler": "many"})


def corruptions(array: Array) -> Iterator[tuple[str, Array]]:
    """Arrays of other types, other shapes, and with numbers that are no places, prices or duals."""
    for dtype in DTYPES:
        with np.errstate(all="ignore"):
            yield f"as {dtype}", array.astype(dtype)
    yield "empty", np.zeros(0, array.dtype)
    yield "0-dimensional", np.zeros((), array.dtype)
    yield "without lines", np.zeros((0, *array.shape[1:]), array.dtype)
    yield "deeper", array[None]
    yield "twice", np.concatenate([array, array]) if array.ndim else np.stack([array, array])
    yield "turned", array.T.copy()
    yield "flat", array.reshape(-1)
    if array.ndim:
        yield "shorter", array[:-1]
    for number in NUMBERS[array.dtype.kind]:
        with np.errstate(over="ignore"):
            value = np.array(number).astype(array.dtype)
        changed = array.copy()
        changed.flat[:1] = value
        yield f"begins with {number}", changed
        yield f"all {number}", np.full(array.shape, value)


def corrupted(solution: Solution) -> Iterator[tuple[str, Solution]]:
    """Copies of an answer with one thing wrong."""
    for holder in ("arrays", "evidence"):
        for name in getattr(solution, holder):
            bad = copy.deepcopy(solution)
            del getattr(bad, holder)[name]
            yield f"no {name}", bad
            for what, array in corruptions(np.asarray(getattr(solution, holder)[name])):
                bad = copy.deepcopy(solution)
                getattr(bad, holder)[name] = array
                yield f"{name} {what}", bad
    for fact in {*solution.facts, "bounds", "epsilon", "proved"}:
        for nonsense in NONSENSE:
            bad = copy.deepcopy(solution)
            bad.facts[fact] = nonsense
            yield f"fact {fact}: {nonsense}", bad
    for word in Termination:
        bad = copy.deepcopy(solution)
        bad.termination = word
        yield f"called {word}", bad


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_no_corruption_fools_or_breaks_the_certificate(name: str) -> None:
    case = CASES[name]
    outcome = run(case, limit_s=5.0)
    assert outcome.solution is not None, outcome.error or outcome.turned_away
    fooled = {what: verdict_on(case, outcome.problem, bad) for what, bad in corrupted(outcome.solution)}
    assert len(fooled) > 30
    assert {what: verdict for what, verdict in fooled.items() if verdict is not None} == {}


@pytest.mark.parametrize(("name", "key", "codes"), [
    ("lap, ragged", "ended", np.array([0, 0, 99])), ("lap, ragged", "ended", np.array([0, 0])),
    ("lap, ragged", "ended", np.array([0, 0, list(Termination).index(Termination.GAP_REACHED)])),
])  # fmt: skip
def test_endings_that_are_none_are_refused(name: str, key: str, codes: Array) -> None:
    case = CASES[name]
    outcome = run(case, limit_s=5.0)
    assert outcome.solution is not None
    outcome.solution.evidence[key] = codes
    assert not SOLVERS[case.solver].certify(outcome.problem, outcome.solution).holds


def test_mass_too_small_to_be_told_from_zero_is_seen_where_there_may_be_none() -> None:
    draw = np.random.default_rng(1)
    masses = {"a": draw.integers(1, 9, 12) / 8.0, "b": draw.integers(1, 9, 12) / 8.0}
    masses["a"][3] = 0
    masses["b"] *= masses["a"].sum() / masses["b"].sum()
    case = Case("uot", "", {"cost": draw.random((12, 12)), **masses}, {
        "reg": 0.2, "reg_m": "inf", "output": "potentials", "reference": "uniform", "tolerance": 1e-9,
    })  # fmt: skip
    outcome = run(case, limit_s=5.0)
    assert outcome.solution is not None
    assert 0 < outcome.solution.arrays["rest_b"].max() < 0.5  # so that each product is rounded to 0
    outcome.solution.arrays["rest_a"][3] = 5e-324
    assert verdict_on(case, outcome.problem, outcome.solution) is None
