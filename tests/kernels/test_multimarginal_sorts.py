"""Transport among three measures of all sorts: each answer is proved, and sixty digits say the same."""

import math
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Claim, Deadline, recheck, solve_and_prove

CARD = SOLVERS["multimarginal"]


@pytest.mark.parametrize("seed", range(60))
def test_all_sorts_of_small_problems_are_answered_and_proved(seed: int) -> None:
    """Sizes from 1, costs over many orders, points and masses of 0, tiny masses and regs, few iterations."""
    rng = np.random.default_rng(seed)
    sizes, scale_ = rng.integers(1, 7, 3), 10.0 ** rng.integers(-20, 20)
    inputs: dict[str, Any] = {}
    if seed % 2:
        orders = 3 * rng.random() * rng.normal(size=sizes)
        inputs["cost"] = scale_ * rng.normal(size=sizes) * 10**orders
    else:
        inputs |= {name: math.sqrt(scale_) * rng.random((size, 2)) for name, size in zip("xyz", sizes, strict=True)}
        inputs["pair_weights"] = rng.random(3) * (rng.random(3) < 0.8)
    for name, size in zip("abc", sizes, strict=True):
        inputs[name] = rng.random(size) * 10.0 ** (-rng.integers(0, 60, size) * (seed % 3 == 0))
        inputs[name] *= rng.random(size) < 0.8
        inputs[name][rng.integers(size)] = 1
    plain = CARD.build(inputs, CARD.options())
    reg = 0 if seed % 4 == 0 else max(plain.reg * 10.0 ** rng.integers(-5, 3), 1.01e-8 * plain.largest)
    output = ("potentials", "marginals", "plan")[seed % 3]
    with np.errstate(over="raise", invalid="raise"):
        options = CARD.options(reg=reg, output=output, iterations=int(rng.choice([1, 5, 300])))
        problem = CARD.build(inputs, options)
        solution, certificate = solve_and_prove(CARD, problem, options, Deadline(30), "cpu")
    assert certificate.holds, certificate
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert certificate.bound <= certificate.objective
    claim = Claim(str(certificate.termination or solution.termination), certificate.objective, certificate.bound,
                  certificate.gap_abs, certificate.gap_rel, certificate.max_violation, solution.arrays)  # fmt: skip
    said = recheck("multimarginal", inputs, {"reg": reg}, claim)
    assert all(one.holds for one in said), said
