"""The memetic population of memetic.cu from the host: matrices, buffers, launches and the epochs between them."""

from dataclasses import dataclass

import cupy
import numpy as np

from kernels import cuda
from kernels.problems import Array, QuadraticAssignment

SOURCE = "qap/memetic.cu"
POLL_S = 0.02
"""Seconds of queued work between two looks at the population; bounds how late a cancel is seen."""
FIRST_MOVES = 20
"""Moves per generation in the first epoch, as a multiple of n; every later epoch doubles them."""


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
    return "int" if largest < 1 << 30 else "long long"


def groups_of(n: int) -> int:
    """Threads per column: 5 near n = 100 keeps H and D in 64 registers and two blocks on a multiprocessor."""
    return max(1, min(5, 1024 // n, n // 2))


class Population:
    """`members` permutations on the current device, improved one generation a launch."""

    def __init__(
        self, matrices: Matrices, members: int | None = None, seed: int = 0, groups: int | None = None
    ) -> None:
        n = self.n = len(matrices.a)
        self.scale = matrices.scale
        groups = groups or groups_of(n)
        wide = matrices.delta != "int"
        self.threads = -(-n * groups // 32) * 32
        blocks = max(1, min(8, (900 if wide else 1024) // self.threads))
        entry = {"int": "int", "long long": "long long", "double": "double"}[matrices.delta]
        defines = (
            f"-DSIZE={n}", f"-DGROUPS={groups}", f"-DDELTA={matrices.delta}", f"-DENTRY={entry}",
            f"-DTOTAL={'double' if entry == 'double' else 'long long'}", f"-DSKEW={int(matrices.a_skew is not None)}",
            f"-DLINEAR={int(matrices.linear is not None)}", f"-DBLOCKS={blocks}",
        )  # fmt: skip
        self._evolve = cuda.kernel(SOURCE, "evolve", defines)
        out = cupy.zeros(2, cupy.int32)
        cuda.kernel(SOURCE, "layout", defines)((1,), (1,), (out,))
        self._shared = int(out[0])
        self._evolve.max_dynamic_shared_size_bytes = self._shared
        per_sm = max(1, min(blocks, 227 * 1024 // (self._shared + 1024)))
        self.members = members or per_sm * cupy.cuda.Device().attributes["MultiProcessorCount"]
        number = {"int": np.int32, "long long": np.int64, "double": np.float64}[matrices.delta]
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

    def generation(self, moves: int, tenure: tuple[int, int], reach: int, patience: int, fresh: bool = False,
        cross: float = 0.75, strength: tuple[int, int] = (3, 8)) -> None:
        """Queue one generation of `moves` tabu moves per member; does not wait."""
        seed = np.uint64(self._random.integers(1 << 63))
        self._evolve(
            (self.members,), (self.threads,),
            (*self._matrices, self._permutations, self._costs, self._stale, self._tabu, np.int32(self._parity),
             np.int32(moves), np.int32(tenure[0]), np.int32(max(1, tenure[1] - tenure[0])), np.int32(reach),
             np.int32(patience), np.int32(fresh), np.int32(cross * 256), np.int32(strength[0]),
             np.int32(max(1, strength[1] - strength[0])), seed),
            shared_mem=self._shared,
        )  # fmt: skip
        self._parity = 1 - self._parity

    def costs(self) -> Array:
        """Objective times scale of every member (members,); waits for the device."""
        costs: Array = cupy.asnumpy(self._costs[self._parity])
        return costs

    def permutation(self, member: int) -> Array:
        """The permutation of `member` (n,) int64."""
        permutation: Array = cupy.asnumpy(self._permutations[self._parity, member]).astype(np.int64)
        return permutation
