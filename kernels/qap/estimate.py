"""What a quadratic assignment will need. Constants are fitted by benchmarks/estimates.py."""

import math
from typing import TYPE_CHECKING

from kernels.card import Device, Estimate
from kernels.host_room import host_bytes
from kernels.pace import cores, pace
from kernels.problems import QuadraticAssignment

if TYPE_CHECKING:
    from kernels.qap import QapOptions

MIB = 1 << 20
ENUMERATED_N, PROVED_N, PROVABLE_N = 8, 16, 36
"""Up to here: all permutations are tried; a proof ends most searches; one is tried."""
CALL_S, EXACT_S, ORDER_S = 3e-5, 1.5e-5, 7e-8
"""Of trying all permutations: of a call, of an entry that is no integer, and of one permutation."""
CALLED_S, SEARCH_S, ITERATION_S, PLACE_S = 1e-4, 5e-5, 4e-7, 3.2e-8
"""Of searches: of a call, of one search, of one iteration in it, and of one facility in that."""
PROOF_S, STEEPER = 0.1, 0.55
"""Of a proof at n = 10, and the logarithm of how much longer one more facility makes it."""
GPU_CALL_S, GPU_PROOF = 1e-2, 0.22
"""Of a search on a GPU, however short; and what a proof takes with one, beside the CPU alone."""
TASKS, OPEN_BYTES = 64, 1 << 29
"""Nodes to which a tree is widened before they are dealt out, and their bytes at most (proof.py)."""
DEVICE_BYTES = 128
"""Of the semidefinite bound on a device, divided by n^4: arrays of float32, and of float64 while it is measured."""
FIXED, SHORT_LOG = 20 * MIB, 4 * MIB
"""Of every job; a tree's log up to the second is among them."""
LEDGER, FRONTIER = 24, 32 * MIB
"""Of a tree that grows by levels (ledger.py): bytes for each byte of its log, and for what lies open at any time."""
RELAXED_N: dict[Device, tuple[int, int]] = {"cpu": (16, 48), "gpu": (16, 100)}
"""Above the first and up to the second `auto` works out the semidefinite bound (floor.py, gpu_floor.py)."""
LARGE_N, LARGE_SHARE = 64, 4
"""Above so many facilities only where its certificate takes at most such a part of the machine's memory."""
RELAXED_S, FACTORED_S, LIFTED_BYTES = 8e-8, 6e-12, 100
"""Seconds of its certificate, divided by n^4, and of the factorisation in it, divided by n^6; bytes by n^4."""


def estimate(problem: QuadraticAssignment, options: "QapOptions", device: Device) -> Estimate:
    """Seconds where a number of rounds or a proof ends the search; else only a time limit does."""
    n = problem.n
    host, held = _host_bytes(n, options, device), _device_bytes(n, options, device)
    certify_s = pace() * _certify_s(problem, options)
    if n > ENUMERATED_N and may_relax(n, options, device):
        certify_s += relaxed_s(n) if options.bounds != "auto" else 0.0  # `auto` keeps that time once it has begun
        host += LIFTED_BYTES * n**4
        held += DEVICE_BYTES * n**4 if device == "gpu" else 0
    if n <= ENUMERATED_N:
        exact_s = 0.0 if problem.integer else EXACT_S * n * n
        seconds = pace() * (CALL_S + exact_s + math.factorial(n) * ORDER_S)
        return Estimate(host, held, seconds, certify_s, seconds)
    first_s = pace() * (CALLED_S + n * 1.5e-6)
    return Estimate(host, held, first_s + _search_s(problem, options, device), certify_s, first_s)


def relaxed_s(n: int) -> float:
    """Seconds of the semidefinite bound's certificate."""
    return float(pace() * (RELAXED_S * n**4 + FACTORED_S * n**6))


def _relaxes(n: int, device: Device) -> bool:
    """Whether `auto` works out the semidefinite bound of so many facilities, if there is time."""
    above, most = RELAXED_N[device]
    return above < n <= most and (n <= LARGE_N or LARGE_SHARE * LIFTED_BYTES * n**4 <= host_bytes())


def may_relax(n: int, options: "QapOptions", device: Device) -> bool:
    """Whether the semidefinite bound may be part of the answer."""
    if options.bounds != "auto":
        return options.wants("sdp")
    return options.method == "auto" and options.rounds is None and _relaxes(n, device)


def _search_s(problem: QuadraticAssignment, options: "QapOptions", device: Device) -> float:
    n, rounds = problem.n, options.rounds
    if rounds is None and options.method in ("tabu", "2opt") and options.iterations is not None:
        rounds = 1
    if rounds is None:
        proved = problem.integer and n <= PROVED_N and options.wants("rlt1")
        share = GPU_PROOF if device == "gpu" else 1.0
        return pace() * share * PROOF_S * math.exp(STEEPER * (n - 10)) if proved else math.inf
    size = options.starts or (max(8, 2 * cores()) if device == "cpu" else 528)
    iterations = options.iterations or max(500, 40 * n)
    if options.method == "2opt":
        iterations = min(iterations, n)  # it stops at the first local optimum
    if device == "gpu":
        return GPU_CALL_S + rounds * size * iterations * n * (n - 1) / 2 / 2.5e11
    each_s = SEARCH_S + iterations * (ITERATION_S + n * PLACE_S) * (1 if _symmetric(problem) else 1.4)
    return pace() * rounds * size * each_s / cores() ** 0.7


def _symmetric(problem: QuadraticAssignment) -> bool:
    return any(bool((matrix == matrix.T).all()) for matrix in (problem.flow, problem.distance))


def _certify_s(problem: QuadraticAssignment, options: "QapOptions") -> float:
    """All permutations, or bounds from sorting, from eigenvalues, and from the n^4 prices behind a proof."""
    n = problem.n
    if n <= ENUMERATED_N:
        return 2e-4 + math.factorial(n) * (1.6e-7 if problem.integer else 6e-7)
    prices = n**4 * 1e-8 if n <= PROVABLE_N and options.rounds is None and options.wants("rlt1") else 0.0
    spectra = 6e-4 + n**3 * 6e-9 if _symmetric(problem) else 0.0
    return 2e-4 + n**2 * 1e-8 + spectra + prices


def _host_bytes(n: int, options: "QapOptions", device: Device) -> int:
    """Matrices, a search on each thread, and the ascent and the open nodes of a tree where a proof is tried."""
    tree = 0
    if ENUMERATED_N < n <= PROVABLE_N and options.wants("rlt1"):
        ascent = 8 * 8 * n**4
        open_ = 4 * max(n * (n - 1) * (n - 2) ** 4, TASKS * (n - 2) * (n - 3) ** 4)  # two levels down, or three
        open_ = min(open_, OPEN_BYTES) + TASKS * 4 * (n - 1) ** 4  # and the level above
        log = LEDGER * options.log_bytes + FRONTIER if device == "gpu" else 2 * max(0, options.log_bytes - SHORT_LOG)
        tree = ascent + open_ + cores() * n**5 + log
    return FIXED + 64 * 8 * n * n + 24 * n * n * 2 * cores() + tree


def _device_bytes(n: int, options: "QapOptions", device: Device) -> int:
    return 8 * (options.starts or 528) * n * n + 64 * n * n if device == "gpu" else 0
