"""What a Gromov-Wasserstein problem will need. Constants are from one core of a server, rounded up."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device, Estimate
from kernels.gromov.lower import LARGEST_SPECTRUM
from kernels.outline import dense
from kernels.pace import pace
from kernels.problems import Inputs, InvalidProblem
from kernels.problems.gromov import GromovWasserstein

if TYPE_CHECKING:
    from kernels.gromov import GromovOptions

MIB = 1 << 20
FIXED = 40 * MIB
CALL_S, STEP_S = 2e-3, 2e-4
"""Of a solve, and of one step, however small."""
PRODUCT_S, SCALING_S, EXP_S = 4e-11, 5e-10, 8e-9
"""Of one product of a matrix product, of one entry read by a scaling, and of one exponential."""
SIMPLEX_S = 4e-8
"""Of exact transport, divided by n m (n + m)^0.5."""
SPECTRUM_S = 6e-10
"""Of all eigenvalues and vectors, divided by n^3."""
USUAL_STEPS, USUAL_SCALINGS, EXACT_STEPS = 60, 60, 8
"""Of a descent, of one of its steps, and of the conditional gradient after it."""
GPU_CALL_S, GPU_FASTER = 0.05, 60
"""Of a solve on a GPU, and how many times faster its products are than those of a core."""


def estimate(problem: GromovWasserstein, options: "GromovOptions", device: Device) -> Estimate:
    """A guess: how many steps it takes nobody knows before."""
    n, m = problem.shape
    entries, products = float(n * m), float(n * n * m + n * m * m)
    factor = 1.0 if problem.symmetric else 2.0
    step_s = STEP_S + factor * products * PRODUCT_S + entries * (4 * EXP_S + USUAL_SCALINGS * SCALING_S)
    simplex_s = CALL_S + SIMPLEX_S * entries * (n + m) ** 0.5
    levels = min(4 * max(n, m), max(16, (1 << 33) // (n * m)))
    bound_s = factor * (2 * PRODUCT_S * entries * levels + 2e-8 * (n + m) * (n + m + levels))
    steps = min(options.max_iterations, USUAL_STEPS)
    exact_s = EXACT_STEPS * (simplex_s + factor * products * PRODUCT_S)
    start_s = exact_s if options.reg == 0 else steps * step_s + (2 * exact_s if n + m <= 1000 else 0.0)
    seconds = CALL_S + bound_s + 2 * simplex_s + options.starts * start_s
    if device == "gpu":
        seconds = GPU_CALL_S + simplex_s + (seconds - simplex_s) / GPU_FASTER
    host = FIXED + 8 * (6 * n * n + 6 * m * m + 16 * n * m) + 16 * (n + m) * levels
    held = 8 * (2 * n * n + 2 * m * m + 16 * n * m + (n + m) * levels) if device == "gpu" else 0
    first_s = CALL_S + factor * products * PRODUCT_S + 10 * entries * SCALING_S
    spectrum_s = SPECTRUM_S * (n**3 + m**3) if problem.symmetric and max(n, m) <= LARGEST_SPECTRUM else 0.0
    certify_s = 2e-3 + spectrum_s + 3 * factor * products * PRODUCT_S + 2 * bound_s + 60 * entries * SCALING_S
    return Estimate(host, held, pace() * seconds, pace() * certify_s, pace() * first_s)


def outline(inputs: Inputs, alpha: float | None) -> GromovWasserstein:
    """A problem of the sizes of its matrices. Raises InvalidProblem where a space is missing."""
    sides = []
    for name in ("x", "y"):
        given = dense(inputs, name if name in inputs else f"{name}_distance")
        if name not in inputs and given.shape[0] != given.shape[1]:
            raise InvalidProblem(f"{name}_distance", f"has shape {given.shape}; expected a square matrix")
        sides.append(given.shape[0])
    x, y = (np.broadcast_to(np.float64(1), (size, size)) for size in sides)
    a, b = (np.broadcast_to(np.float64(1 / size), (size,)) for size in sides)
    return GromovWasserstein(x, y, a, b, None, 1.0 if alpha is None else alpha)
