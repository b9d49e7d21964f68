"""The independent searches of multistart.cu from the host: layout, thread tuning, rounds."""

import functools
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.cuda import attribute, kernel
from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Indices
from kernels.qap.form import SearchForm, search_form
from kernels.qap.gpu_mailbox import Mailbox
from kernels.qap.multistart.gpu_geometry import TILES, Layout, defines, lay
from kernels.qap.multistart.layout import FOUND, PROBLEM, SEARCH_ARGS
from kernels.qap.outcome import Searched
from kernels.solution import Number, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions

SOURCE = "qap/multistart/multistart.cu"
STARTS = 6144
"""Searches of a round unless asked otherwise: the number of Novoa and Qasem (2019)."""
POLL_S = 0.001
SLICE = 50_000_000
"""Exchanges of one tabu search in one launch, so that a launch ends within a second even without a stop."""


def layout(form: SearchForm, tile: tuple[int, int], matrices: bool = False) -> Layout | None:
    """The layout of `form` with that tile on the current device, None where it does not fit."""
    return lay(form, tile, cupy.cuda.Device().attributes, matrices)


@dataclass
class Searches:
    """`count` searches of one problem on the current device."""

    form: SearchForm
    layout: Layout
    starts: Indices
    seed: int = 0
    pairs: bool = False
    round: int = 0
    arrays: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        form, a = self.form, self.arrays
        n, count = form.n, len(self.starts)
        self.kernel = kernel(SOURCE, "search", defines(form, self.layout, self.pairs))
        resident = self.layout.blocks * attribute("MultiProcessorCount")
        self.grid = min(count, resident)
        self.kernel.max_dynamic_shared_size_bytes = self.layout.shared_bytes
        for name, matrix in (("flow", form.flow), ("distance", form.distance), ("linear", form.linear)):
            a[name] = cupy.asarray(matrix)
        a["flow_t"], a["distance_t"] = a["flow"].T.copy(), a["distance"].T.copy()
        a["starts"] = cupy.asarray(self.starts.astype(np.int32))
        a["hall"] = a["starts"].copy()
        integer = form.dtype.kind == "i"
        worst = np.iinfo(np.int64).max if integer else np.inf
        a["hall_costs"] = cupy.full(count, worst, np.int64 if integer else np.float64)
        a["visits"], a["iterations"] = cupy.zeros((n, n), np.int32), cupy.zeros(1, np.uint64)
        a["stream"] = cupy.empty(max(1, self.grid * self.layout.stream_bytes), np.uint8)
        self.mailbox = Mailbox(not integer)
        self.problem = PROBLEM.filled(a | {"n": n})
        self.found = FOUND.filled(a | {"news": self.mailbox.pointers, "stream_bytes": self.layout.stream_bytes})

    def launch(self, iterations: int, tenure: tuple[int, int] | None, starts: Indices | None = None) -> None:
        """Queue one round: 2-opt when `tenure` is None, else that many tabu iterations.

        The first round begins at the starts given, later ones at `starts`, or where facilities have been least.
        """
        if starts is not None:
            self.arrays["starts"][:] = cupy.asarray(starts.astype(np.int32))
        n = self.form.n
        low, high = tenure or (1, 1)
        plan = {"iterations": iterations, "tenure_least": low, "tenure_span": high - low + 1}
        plan |= {"age": 5 * n * n if tenure else 0, "every": 16 if tenure else 1, "tabu": tenure is not None}
        plan |= {"starts": len(self.starts), "round": self.round, "streamed": self.layout.streamed}
        plan |= {"given": self.round == 0 or starts is not None}
        plan |= {"seed": (self.seed + 1) * 0x9E3779B97F4A7C15 % 2**64}
        arguments = SEARCH_ARGS.packed(problem=self.problem, plan=plan, found=self.found)
        self.kernel((self.grid,), (self.layout.threads,), arguments, shared_mem=self.layout.shared_bytes)
        self.round += 1

    def searched(self, termination: Termination, population: bool) -> Searched:
        """What was found; waits for the device."""
        done, n = int(self.arrays["iterations"][0]), self.form.n
        facts = {"rounds": self.round, "moves": done * n * (n - 1) // 2, "threads_per_block": self.layout.threads}
        members = [member for _, member in self.elite()] if population else []
        return Searched(self.best()[1], termination, done, facts, members)

    def best(self) -> tuple[Number, Indices]:
        """The least cost and its permutation (n,) int64; waits for the device."""
        costs = cupy.asnumpy(self.arrays["hall_costs"])
        member = int(costs.argmin())
        return costs[member].item(), cupy.asnumpy(self.arrays["hall"][member]).astype(np.int64)

    def elite(self, most: int | None = None) -> list[tuple[Number, Indices]]:
        """Cost and permutation of the best searches, in order; waits for the device."""
        costs = cupy.asnumpy(self.arrays["hall_costs"])
        order = np.argsort(costs, kind="stable")[:most]
        members = cupy.asnumpy(self.arrays["hall"][order]).astype(np.int64)
        return [(costs[k].item(), member) for k, member in zip(order, members, strict=True)]


def run(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, start: Indices, target: Number | None
) -> Searched:
    """Rounds of searches until the target, the rounds asked for (one by default), or the deadline."""
    form, rng, n = search_form(problem), np.random.default_rng(options.seed), problem.n
    chosen = tuned(form, options.threads_per_block)
    count = options.starts or STARTS
    starts = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    starts[0] = start
    searches = Searches(form, chosen, starts, options.seed, options.recency == "pairs")
    tenure = None if options.method == "2opt" else options.tenure or (max(1, n // 10), max(2, n // 3))
    iterations = options.iterations or (1000 * n if tenure is None else 20 * n)
    termination, rounds = None, options.rounds or 1
    while termination is None:
        left = iterations
        while left > 0 and termination is None:  # a round longer than one launch starts anew from frequency memory
            part = left if tenure is None else min(left, max(1, SLICE // (n * n // 2)))  # 2-opt ends by itself
            searches.launch(part, tenure)
            left -= part
            best = watch(searches, deadline)
            if target is not None and best is not None and best <= target:
                termination = Termination.GAP_REACHED
            termination = termination or deadline.expired()
        rounds -= 1
        if rounds == 0:
            termination = termination or Termination.ITERATION_LIMIT
    return searches.searched(termination, options.population)


def watch(searches: Searches, deadline: Deadline) -> Number | None:
    """Wait for a round; report every cost told meanwhile, and pass the deadline on. Returns the least so far."""
    ended = cupy.cuda.Event(disable_timing=True)
    ended.record()
    while True:
        done = ended.done
        for cost in searches.mailbox.news():
            deadline.report(searches.round, cost)
        if done:
            return searches.mailbox.least
        if deadline.expired():
            searches.mailbox.stop()
        time.sleep(POLL_S)


# --- the autotuner ------------------------------------------------------------------------------------------------


def _memory() -> Path:
    return Path.home() / ".cache" / "allot" / "qap_threads.json"


@functools.cache
def _remembered() -> dict[str, list[int]]:
    try:
        found: dict[str, list[int]] = json.loads(_memory().read_text())
        return found
    except (OSError, ValueError, RuntimeError):  # none yet, not ours, or no home
        return {}


def tuned(form: SearchForm, threads: int | None = None, matrices: bool = False) -> Layout:
    """The fastest layout for this device, n and dtype: measured once, then remembered on disk.

    Args:
        threads: threads per block to come nearest to, instead of measuring.

    Raises:
        ValueError: no layout fits.
    """
    fits = [found for tile in TILES if (found := layout(form, tile, matrices)) is not None]
    if not fits:
        raise ValueError(f"n = {form.n} fits no block of this device")
    if threads is not None:
        return min(fits, key=lambda found: abs(found.threads - threads))
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    key = f"{name} n={form.n} {form.dtype} {'one' if form.symmetric else 'two'}"
    if key not in _remembered():
        rates = {found.tile: _rate(form, found) for found in fits[:4]} if len(fits) > 1 else {fits[0].tile: 1.0}
        fastest, _ = max(rates.items(), key=lambda item: item[1])
        _remembered()[key] = list(fastest)
        try:
            _memory().parent.mkdir(parents=True, exist_ok=True)
            _memory().write_text(json.dumps(_remembered()))
        except (OSError, RuntimeError):
            pass  # a read-only home: measure again next time
    rows, distances = _remembered()[key]
    tile = (rows, distances)
    return next((found for found in fits if found.tile == tile), fits[0])


def _rate(form: SearchForm, chosen: Layout, iterations: int = 200) -> float:
    """Iterations per second of a full device."""
    count = chosen.blocks * attribute("MultiProcessorCount")
    starts = np.tile(np.arange(form.n), (count, 1))
    searches = Searches(form, replace(chosen), starts)
    searches.launch(1, (1, 2))
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    searches.launch(iterations, (max(1, form.n // 10), max(2, form.n // 3)))
    end.record()
    end.synchronize()
    return count * iterations / float(cupy.cuda.get_elapsed_time(begin, end))
