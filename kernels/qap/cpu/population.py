"""The memetic population: who is bred, how, and who survives. Device-independent and deterministic per seed."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernels.problems.arrays import Indices, Integers

Number = int | float


@dataclass
class Population:
    """Elite permutations of one problem, in ascending order of cost.

    A child is a uniform crossover of two members or a perturbed copy of one; the strength of a perturbation grows
    with the rounds since the last improvement. After `patience` such rounds every member but the record is dropped.
    Members differ in more than `apart` places; 0 takes in every child, for searches from which nothing is bred.
    """

    n: int
    size: int
    rng: np.random.Generator
    patience: int
    apart: int
    costs: list[Number] = field(default_factory=list)
    members: list[Indices] = field(default_factory=list)
    record: tuple[Number, Integers] | None = None
    stagnant: int = 0
    restarts: int = 0

    def breed(self) -> Integers:
        """One starting permutation for a search."""
        if len(self.members) < self.size:
            return self.rng.permutation(self.n)
        one = two = 0
        if self.size > 1:
            one, two = self.rng.choice(self.size, 2, replace=False)
        if one != two and self.rng.random() < 0.5:
            return cross(self.members[one], self.members[two], self.rng)
        strength = self.n * (0.15 + 0.5 * self.stagnant / self.patience)
        return perturb(self.members[one], max(3, int(strength)), self.rng)

    def insert(self, children: list[tuple[Number, Integers]], hurry: Callable[[], object] = lambda: None) -> bool:
        """Take in one round's children, in order; once `hurry`, only those that are records. True when the record fell.

        A child is held against every member, so that large populations take their time.
        """
        improved = hurried = False
        for at, (cost, child) in enumerate(children):
            hurried = hurried or (at % 64 == 63 and bool(hurry()))
            better = self.record is None or cost < self.record[0]
            if better:
                self.record = (cost, child.copy())
                improved = True
            if better or not hurried:
                self._place(cost, child)
        self.stagnant = 0 if improved else self.stagnant + 1
        if self.stagnant > self.patience:
            self.costs.clear()
            self.members.clear()
            self.stagnant = 0
            self.restarts += 1
        return improved

    def _place(self, cost: Number, child: Integers) -> None:
        near: list[int] = []
        if self.apart and self.members:
            near = np.flatnonzero((np.array(self.members) != child).sum(axis=1) <= self.apart).tolist()
        if near:
            if cost >= min(self.costs[i] for i in near):
                return
            for i in reversed(near):
                del self.costs[i], self.members[i]
        at = bisect_left(self.costs, cost)
        self.costs.insert(at, cost)
        self.members.insert(at, child.copy())
        del self.costs[self.size :], self.members[self.size :]


def cross(mother: Integers, father: Integers, rng: np.random.Generator) -> Integers:
    """Uniform crossover: places that both share stay, others come from either, what is left goes at random."""
    n = mother.size
    child = np.where(mother == father, mother, -1)
    used = np.zeros(n, bool)
    used[child[child >= 0]] = True
    for i in rng.permutation(n):
        if child[i] < 0:
            one, two = (mother[i], father[i]) if rng.random() < 0.5 else (father[i], mother[i])
            if not used[one] or not used[two]:
                child[i] = two if used[one] else one
                used[child[i]] = True
    child[child < 0] = rng.permutation(np.flatnonzero(~used))
    return child


def perturb(permutation: Indices, strength: int, rng: np.random.Generator) -> Integers:
    """Rotate the locations of `strength` random facilities."""
    child = permutation.copy()
    chosen = rng.permutation(permutation.size)[:strength]
    child[chosen] = permutation[np.roll(chosen, 1)]
    return child
