"""The memetic population of memetic.cu from the host: matrices, buffers, launches and the epochs between them."""

from dataclasses import dataclass

import cupy
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.problems import Array, QuadraticAssignment
from kernels.solution import Termination

SOURCE = "qap/memetic.cu"
LONGEST = 6_000_000
"""Moves of a generation times n: about 0.2 s, so that a deadline is not overrun by more."""


@dataclass(frozen=True)
class Matrices:
    """A quadratic assignment split as memetic.cu wants it: `scale` times the objective, diagonals folded into `linear`.

    `a`, `b` (n, n) are symmetric with zero diagonals, `a_skew`, `b_skew` antisymmetric or None; objective * scale =
    sum over i < j of (a b + a_skew b_skew) + sum of `linear`. `delta` is the C type that holds every exchange value.
    """

    a: Array
    b: Array
    a_skew: Array | None
    b_skew: Array | None
    linear: Array | None
    scale: int
    delta: str


def split(problem: QuadraticAssignment) -> Matrices:
    """Return `problem` as symmetric and antisymmetric parts; exact, whatever the symmetry of its matrices."""
    flow, distance = problem.flow.copy(), problem.distance.copy()
    linear = np.outer(flow.diagonal(), distance.diagonal())
    if problem.linear is not None:
        linear = linear + problem.linear
    np.fill_diagonal(flow, 0)
    np.fill_diagonal(distance, 0)
    a_skew = b_skew = None
    scale = 1
    if (flow == flow.T).all():
        a, b = flow, distance + distance.T
    elif (distance == distance.T).all():
        a, b = flow + flow.T, distance
    else:
        a, b, a_skew, b_skew, scale = flow + flow.T, distance + distance.T, flow - flow.T, distance - distance.T, 2
    linear = linear * scale
    return Matrices(
        a, b, a_skew, b_skew, linear if linear.any() else None, scale, _delta_type(a, b, a_skew, b_skew, linear)
    )


def _delta_type(a: Array, b: Array, a_skew: Array | None, b_skew: Array | None, linear: Array) -> str:
    if a.dtype.kind == "f" or b.dtype.kind == "f" or linear.dtype.kind == "f":
        return "double"
    # |D| <= sum_k |a_uk - a_vk| |b_.. - b_..| + 4 max |linear|, in Python integers, which do not overflow.
    largest = 4 * int(np.abs(linear).max())
    for x, y in ((a, b), (a_skew, b_skew)):
        if x is not None and y is not None:
            largest += 4 * int(np.abs(x).sum(axis=1).max()) * int(np.abs(y).max())
    return "float" if largest < 1 << 24 else "int" if largest < 1 << 30 else "long long"


def geometry(n: int, wide: bool) -> tuple[int, int]:
    """Threads per column and blocks per multiprocessor: the fastest on an H200 of those tried for n = 30 to 100.

    Few threads amortise what every warp does once a move; many keep H and D in registers. `wide` is an 8-byte delta.
    """
    groups = 1 if n <= 40 else 2 if n <= 70 else 4 if n < 90 else 5
    groups = max(1, min(2 * groups if wide and n <= 90 else groups, 1024 // n, n // 2))
    threads = -(-n * groups // 32) * 32
    rows, distances = -(-n // groups // 4) * 4, -(-(n // 2) // groups)
    registers = (2 * rows + 3 * distances if wide else rows + 2 * distances) + 24
    return groups, max(1, min(16, 65536 // (threads * registers)))


@dataclass(frozen=True)
class Policy:
    """How the population searches; the defaults stand in the middle of the best of 70 random settings.

    Those were tried on tai40a to tai100a for 3 to 11 s each on an H200: tenures near n and beyond cost 0.2% on tai100a,
    everything else far less.

    `moves`: tabu moves per generation in the first epoch, as a multiple of n; each later epoch takes `growth` times as
    many. `tenure`: a random length between these multiples of n. `cross`: share of children bred from two parents, the
    others are the own permutation with a cycle through `strength` (multiples of n) positions. `reach`: how far away in
    the ring of members a partner may be. `patience`: generations without a better child after which the child is taken
    anyway. `quiet`: generations without a new best after which the epoch ends and all members start afresh.
    """

    moves: float = 20.0
    growth: float = 1.5
    tenure: tuple[float, float] = (0.1, 0.3)
    cross: float = 0.25
    strength: tuple[float, float] = (0.03, 0.15)
    reach: int = 1 << 14
    patience: int = 5
    quiet: int = 30


class Population:
    """`members` permutations on the current device, improved one generation a launch."""

    def __init__(
        self,
        matrices: Matrices,
        members: int | None = None,
        seed: int = 0,
        groups: int | None = None,
        blocks: int | None = None,
    ) -> None:
        n = self.n = len(matrices.a)
        self.scale = matrices.scale
        entry = matrices.delta
        fastest = geometry(n, entry in ("long long", "double"))
        groups, blocks = groups or fastest[0], blocks or fastest[1]
        self.threads = -(-n * groups // 32) * 32
        defines = (
            f"-DSIZE={n}", f"-DGROUPS={groups}", f"-DDELTA={matrices.delta}", f"-DENTRY={entry}",
            f"-DTOTAL={'double' if entry == 'double' else 'long long'}", f"-DSKEW={int(matrices.a_skew is not None)}",
            f"-DLINEAR={int(matrices.linear is not None)}", f"-DBLOCKS={blocks}",
        )  # fmt: skip
        self._evolve = cuda.kernel(SOURCE, "evolve", defines, cooperative=False)
        out = cupy.zeros(2, cupy.int32)
        cuda.kernel(SOURCE, "layout", defines, cooperative=False)((1,), (1,), (out,))
        self._shared = int(out[0])
        self._evolve.max_dynamic_shared_size_bytes = self._shared
        per_sm = max(1, min(blocks, 227 * 1024 // (self._shared + 1024)))
        self.members = members or per_sm * cupy.cuda.Device().attributes["MultiProcessorCount"]
        number = {"float": np.float32, "int": np.int32, "long long": np.int64, "double": np.float64}[matrices.delta]
        self._matrices = tuple(
            cupy.zeros(1, number) if m is None else cupy.asarray(np.ascontiguousarray(m, dtype=number))
            for m in (matrices.a, matrices.b, matrices.a_skew, matrices.b_skew, matrices.linear)
        )
        self._total = np.float64 if number is np.float64 else np.int64
        self._permutations = cupy.zeros((2, self.members, n), cupy.int16)
        self._costs = cupy.zeros((2, self.members), self._total)
        self._stale = cupy.zeros((2, self.members), cupy.int32)
        self._tabu = cupy.zeros(1 if n <= 128 else self.members * n * n, cupy.int32)
        self._random = np.random.default_rng(seed)
        self._parity = 0

    def open(self, permutations: Array) -> None:
        """Start from `permutations` (members, n); their costs are set by the next `generation(fresh=True)`."""
        self._permutations[self._parity] = cupy.asarray(permutations.astype(np.int16))
        self._stale.fill(0)

    def generation(self, moves: int, policy: Policy, fresh: bool = False) -> None:
        """Queue one generation of `moves` tabu moves per member; does not wait. `fresh` takes members as they are."""
        n = self.n
        tenure_low, tenure_high = max(1, int(policy.tenure[0] * n)), max(2, int(policy.tenure[1] * n))
        strength_low, strength_high = max(3, int(policy.strength[0] * n)), max(4, int(policy.strength[1] * n))
        reach = max(1, min(policy.reach, self.members - 1))
        numbers = (
            self._parity, moves, tenure_low, tenure_high - tenure_low + 1, reach, policy.patience, int(fresh),
            int(policy.cross * 256), strength_low, strength_high - strength_low + 1,
        )  # fmt: skip
        buffers = (*self._matrices, self._permutations, self._costs, self._stale, self._tabu)
        seed = np.uint64(self._random.integers(1 << 63))
        arguments = (*buffers, *map(np.int32, numbers), seed)
        self._evolve((self.members,), (self.threads,), arguments, shared_mem=self._shared)
        self._parity = 1 - self._parity

    def costs(self) -> Array:
        """Objective times scale of every member (members,); waits for the device."""
        costs: Array = cupy.asnumpy(self._costs[self._parity])
        return costs

    def permutation(self, member: int) -> Array:
        """The permutation of `member` (n,) int64."""
        permutation: Array = cupy.asnumpy(self._permutations[self._parity, member]).astype(np.int64)
        return permutation


@dataclass
class Outcome:
    """The best permutation (n,) int64, `objective` * scale as the device counted it, and what it took."""

    permutation: Array
    scaled: int | float
    generations: int
    moves: int
    termination: Termination


def evolve(
    problem: QuadraticAssignment,
    deadline: Deadline,
    *,
    seed: int = 0,
    members: int | None = None,
    target: int | float | None = None,
    generation_limit: int | None = None,
    start: Array | None = None,
    policy: Policy = Policy(),
) -> Outcome:
    """Run epochs of generations until the target, the limit or the deadline; every new best is reported.

    The host only looks: it queues generations, reads the costs every POLL_S and decides when an epoch ends.
    Deterministic for a seed as long as the generation limit, not the clock, ends it.
    """
    matrices = split(problem)
    population = Population(matrices, members, seed)
    n, random = population.n, np.random.default_rng(seed)
    moves, total_moves, generations = max(8, int(policy.moves * n)), 0, 0
    best = Outcome(np.arange(n), np.inf, 0, 0, Termination.ITERATION_LIMIT)
    goal = -np.inf if target is None else target * matrices.scale
    while True:
        first = np.array([random.permutation(n) for _ in range(population.members)])
        if start is not None:
            first[0] = start
        if np.isfinite(best.scaled) and random.random() < 0.5:
            first[0] = best.permutation  # half of the epochs build on the best so far, half are on their own
        population.open(first)
        quiet, epoch_best, fresh = 0, np.inf, True
        while quiet < policy.quiet:
            population.generation(moves, policy, fresh=fresh)
            generations, total_moves, fresh = generations + 1, total_moves + moves * population.members, False
            costs = population.costs()
            least = costs.min().item()
            quiet = 0 if least < epoch_best else quiet + 1
            epoch_best = min(epoch_best, least)
            if least < best.scaled:
                best.permutation, best.scaled = population.permutation(int(costs.argmin())), least
                deadline.report(
                    generations,
                    objective=least / matrices.scale if isinstance(least, float) else least // matrices.scale,
                )
            best.generations, best.moves = generations, total_moves
            stop = Termination.GAP_REACHED if best.scaled <= goal else deadline.expired()
            if stop is None and generations == generation_limit:
                stop = Termination.ITERATION_LIMIT
            if stop is not None:
                best.termination = stop
                return best
            if np.unique(costs).size < max(2, population.members // 8):
                break
        moves = min(int(moves * policy.growth), LONGEST // n)
