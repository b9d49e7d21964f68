"""The memetic population of memetic.cu from the host: matrices, buffers, and a queue of generations."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cupy
import numpy as np

from kernels import cuda, shelf
from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Indices
from kernels.qap.gpu_mailbox import NOTHING, Mailbox
from kernels.qap.layout import NEWS
from kernels.qap.memetic.gpu_geometry import CHIP, MemeticForm, chosen
from kernels.qap.memetic.layout import EPOCH, EVOLVE_ARGS, JUDGE_ARGS, JUDGES, MATRICES, MEMBERS, RECIPE
from kernels.qap.outcome import in_time
from kernels.qap.parts import Matrices, padded, split
from kernels.solution import Number, Termination

SOURCE = "qap/memetic/memetic.cu"
LARGEST_N = 512
"""Beyond this too little of the state lies on the chip."""
LONGEST = 6_000_000
"""Moves of a generation times n: about 0.2 s."""
AHEAD = 3
"""Generations queued on the device, so that it never waits for the host."""
POLL_S = 0.0005
NUMBERS = {"float": np.float32, "int": np.int32, "long long": np.int64, "double": np.float64}


@dataclass(frozen=True)
class Policy:
    """How the population searches.

    `moves`: tabu moves per generation in the first epochs, as a multiple of n; in each later era of epochs `growth`
    times as many, and twice as many in the last of an era, which begins with the best of the others. `tenure`: a
    random length between these multiples of n. `cross`, `relink`: shares of children bred from two parents, the others
    are the own permutation with a cycle through `strength` (multiples of n, more the longer the member has waited)
    positions. `reach`: how far away in the ring of members a partner may be. `patience`: generations without a better
    child after which the child is taken anyway. `quiet`: generations without a new best after which the epoch ends, and
    the last of an era after twice as many; None: n^2 / 250, at least 8.

    docs/notes/qap.md has the time that each choice takes.
    """

    moves: float = 20.0
    growth: float = 1.2
    tenure: tuple[float, float] = (0.1, 0.3)
    cross: float = 0.15
    relink: float = 0.1
    strength: tuple[float, float] = (0.03, 0.15)
    reach: int = 1 << 14
    patience: int = 5
    quiet: int | None = None


class DevicePopulation:
    """`members` permutations on the current device, improved one generation (two launches) at a time."""

    def __init__(
        self,
        matrices: Matrices,
        members: int | None = None,
        seed: int = 0,
        policy: Policy = Policy(),
        goal: int | float | None = None,
    ) -> None:
        """Upload; `goal` is in the device's objective (times scale): once met, further generations do nothing."""
        self.n = len(matrices.a)
        self.scale, self.policy = matrices.scale, policy
        exact = _exact(matrices)
        form = _ahead(exact)
        self.size, self.geometry = form.size, form.geometry
        self._evolve, self._judge, layout = _kernels(form)
        out = cupy.zeros(2, cupy.int64)
        layout((1,), (1,), (out,))
        self._shared, self._scratch = (int(word) for word in cupy.asnumpy(out))
        self._evolve.max_dynamic_shared_size_bytes = self._shared
        per_sm = max(1, min(self.geometry.blocks, CHIP // (self._shared + 1024)))
        self.members = members or per_sm * cuda.attribute("MultiProcessorCount")
        self._random = np.random.default_rng(seed)
        self._number = NUMBERS[form.entry]
        self._allocate(matrices if form == exact else padded(matrices, form.size, form.entry), goal)
        self.generations = 0

    def _allocate(self, matrices: Matrices, goal: int | float | None) -> None:
        n, size, count, number = self.n, self.size, self.members, self._number
        self.total = total = np.dtype(np.float64 if number is np.float64 else np.int64)
        worst = float(np.finfo(np.float64).max) if total.kind == "f" else NOTHING
        parts = [getattr(matrices, name) for name in MATRICES.names]
        self._arrays: dict[str, Any] = {
            name: cupy.zeros(1, number) if part is None else cupy.asarray(np.ascontiguousarray(part, dtype=number))
            for name, part in zip(MATRICES.names, parts, strict=True)
        }
        self._arrays |= {
            "population": cupy.zeros((2, count, size), cupy.int16), "record": cupy.zeros(size, cupy.int16),
            "cost": cupy.zeros((2, count), total), "stale": cupy.zeros((2, count), cupy.int32),
            "visits": cupy.zeros((size, size), cupy.int32), "elders": cupy.zeros((count, size), cupy.int16),
            "scratch": cupy.empty(count * self._scratch, cupy.uint8),
        }  # fmt: skip
        self.mailbox = Mailbox(total.kind == "f")
        policy = self.policy
        low, high = max(1, int(policy.tenure[0] * n)), max(2, int(policy.tenure[1] * n))
        tenure = {"tenure_low": low, "tenure_span": high - low + 1}
        self._matrices, self._news = MATRICES.filled(self._arrays), NEWS.filled(self.mailbox.pointers)
        self._members = MEMBERS.filled(self._arrays | tenure | {"n": n, "parity": 0, "seed": 0})
        weak, strong = max(3, int(policy.strength[0] * n)), max(4, int(policy.strength[1] * n))
        recipe = {"cross": int(policy.cross * 256), "relink": int(policy.relink * 256), "patience": policy.patience}
        recipe |= {"strength_low": weak, "strength_span": strong - weak, "reach": max(1, min(policy.reach, count - 1))}
        self._recipe = RECIPE.filled(recipe)
        length = min(max(8, int(policy.moves * n)), LONGEST // n)
        quiet = max(8, n * n // 250) if policy.quiet is None else policy.quiet
        epoch = np.zeros((), _epoch(total))
        epoch["best"], epoch["least"], epoch["growth"], epoch["fresh"] = worst, worst, policy.growth, 1
        epoch["goal"] = -worst if goal is None else goal
        epoch["length"], epoch["base"], epoch["longest"], epoch["quiet_limit"] = length, length, LONGEST // n, quiet
        self._epoch = cupy.asarray(epoch[None].view(np.uint8))

    def open(self, permutations: Indices) -> None:
        """Start the first epoch from `permutations` (members, n)."""
        first = np.tile(np.arange(self.size, dtype=np.int16), (len(permutations), 1))
        first[:, : self.n] = permutations
        self._arrays["population"][0] = cupy.asarray(first)

    def generation(self) -> Any:
        """Queue one generation; returns the event of its end."""
        self._members["seed"] = np.uint64(self._random.integers(1 << 63))
        self._members["parity"] = self.generations % 2
        shared = {"state": self._epoch, "news": self._news}
        arguments = EVOLVE_ARGS.packed(m=self._matrices, all=self._members, recipe=self._recipe, **shared)
        self._evolve((self.members,), (self.geometry.threads,), arguments, shared_mem=self._shared)
        self.generations += 1
        self._members["parity"] = self.generations % 2
        self._judge((1,), (JUDGES,), JUDGE_ARGS.packed(all=self._members, members=self.members, **shared))
        ended = cupy.cuda.Event(disable_timing=True)
        ended.record()
        return ended

    def state(self) -> Any:
        """`Epoch` of memetic.cu; waits for the device."""
        return cupy.asnumpy(self._epoch).view(_epoch(self.total))[0]

    def best(self) -> Indices:
        """The best permutation of all epochs, (n,) int64; waits for the device."""
        return self._own(cupy.asnumpy(self._arrays["record"]).astype(np.int64))

    def elite(self) -> list[Indices]:
        """The members by cost, each (n,) int64; waits for the device."""
        half = self.generations % 2
        order = np.argsort(cupy.asnumpy(self._arrays["cost"][half]), kind="stable")
        return [self._own(member) for member in cupy.asnumpy(self._arrays["population"][half]).astype(np.int64)[order]]

    def _own(self, permutation: Indices) -> Indices:
        """The problem's facilities; as they are numbered, where prices near the largest float let another move."""
        own = permutation[: self.n]
        return own if int(own.max()) < self.n else np.arange(self.n)


def _exact(matrices: Matrices) -> MemeticForm:
    """The form for these matrices alone."""
    return MemeticForm(len(matrices.a), matrices.delta, matrices.a_skew is not None, matrices.linear is not None)


def _ahead(exact: MemeticForm) -> MemeticForm:
    """One that is compiled ahead and serves as well, where there is one."""
    return chosen(exact, shelf.ahead(SOURCE, (), cupy.cuda.Device().compute_capability))


def _kernels(form: MemeticForm) -> list[Any]:
    """`evolve`, `judge` and `layout` of a form."""
    return [cuda.kernel(SOURCE, name, form.defines, cooperative=False) for name in ("evolve", "judge", "layout")]


def compiled(problem: QuadraticAssignment, deadline: Deadline) -> bool:
    """Load the kernels; False where they must be compiled first, for seconds, and the deadline expires meanwhile.

    The compiler cannot be interrupted: it then goes on beside whatever comes next, and its work is kept.
    """
    exact, device = _exact(split(problem)), cupy.cuda.Device().id

    def work() -> bool:
        with cupy.cuda.Device(device):
            _kernels(_ahead(exact))
        return True

    return bool(in_time(work, deadline))


def _epoch(total: np.dtype) -> np.dtype:
    return EPOCH.dtype_where({"T64": total.str[1:]})


@dataclass
class Evolved:
    """The best permutation (n,) int64, `objective` * scale as the device counted it, and what it took."""

    permutation: Indices
    scaled: int | float
    generations: int
    moves: int
    termination: Termination
    members: list[Indices] = field(default_factory=list)


@dataclass(frozen=True)
class People:
    """Who begins: `members` of them (None: as many as the device runs at once), one at `start`, and how they search."""

    seed: int = 0
    members: int | None = None
    start: Indices | None = None
    policy: Policy = Policy()


@dataclass(frozen=True)
class Ends:
    """What ends them beside the deadline; `deterministic`: the generation that meets the target is finished."""

    target: int | float | None = None
    generation_limit: int | None = None
    deterministic: bool = False


def evolve(
    problem: QuadraticAssignment,
    deadline: Deadline,
    people: People = People(),
    ends: Ends = Ends(),
    *,
    share: float = 1.0,
) -> Evolved:
    """Run generations until the target, the limit or the deadline; every new least cost is reported as it is told.

    The device decides what a generation does; the host keeps a few queued, listens, and stops it.
    Deterministic for a seed as long as the generation limit ends it, or the target does and `deterministic` asks that
    the generation that met it is finished. `share`: below 1 the population rests after each generation, so long that
    this share of the time was its own.
    """
    matrices = split(problem)
    goal = None if ends.target is None else ends.target * matrices.scale
    population = DevicePopulation(matrices, people.members, people.seed, people.policy, goal)
    random = np.random.default_rng(people.seed)
    first = random.permuted(np.tile(np.arange(population.n), (population.members, 1)), axis=1)
    if people.start is not None:
        first[0] = people.start
    population.open(first)
    termination = _follow(population, deadline, goal, ends.generation_limit, ends.deterministic, share)
    state = population.state()
    return Evolved(
        population.best(), state["best"].item(), int(state["generation"]), int(state["moves"]), termination,
        population.elite(),
    )  # fmt: skip


def _follow(
    population: DevicePopulation,
    deadline: Deadline,
    goal: int | float | None,
    generation_limit: int | None,
    deterministic: bool,
    share: float,
) -> Termination:
    """Queue generations, and pass on what is told, until there is a reason to end; no search is left under way."""
    queued: deque[Any] = deque()
    termination: Termination | None = None
    met, ahead, began, rests_until = False, AHEAD if share >= 1 else 1, 0.0, 0.0
    while termination is None:
        more = not met and population.generations != generation_limit and len(queued) < ahead
        if more and time.perf_counter() >= rests_until:
            began = time.perf_counter()
            queued.append(population.generation())
            continue
        time.sleep(POLL_S)
        while queued and queued[0].done:
            queued.popleft()
            ended = time.perf_counter()
            rests_until = ended + (ended - began) * (1 / share - 1)
        least = _tell(deadline, population)
        met = goal is not None and least is not None and least <= goal
        if met and not (deterministic and queued):
            termination = Termination.GAP_REACHED
        elif not queued and population.generations == generation_limit:
            termination = Termination.ITERATION_LIMIT
        else:
            termination = deadline.expired()
    if queued:
        population.mailbox.stop()
        queued[-1].synchronize()
    _tell(deadline, population)
    return termination


def _tell(deadline: Deadline, population: DevicePopulation) -> Number | None:
    """Report what the device has told since; returns the least known."""
    scale = population.scale
    for cost in population.mailbox.news():
        deadline.report(population.generations, cost / scale if isinstance(cost, float) else cost // scale)
    return population.mailbox.least
