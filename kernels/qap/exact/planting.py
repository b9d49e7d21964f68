"""What a tree that somebody else grows is grown from, a device's say, and what it has to tell."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Bytes, Indices, Integers
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.exact.log import Log


@dataclass(frozen=True, eq=False)
class Ground:
    """A root, and what its tree is to look for.

    Attributes:
        problem, linear: the latter with forbidden pairs priced. ascent: of the root.
        incumbent: (1,) int64, shared with whoever searches.
        step: a permutation has to be so much better than the incumbent to be looked for.
        log_bytes: of a log at most; 0 keeps none. resumed: a log to go on with.
    """

    problem: QuadraticAssignment
    linear: Integers
    ascent: DualAscent
    incumbent: Integers
    step: int
    log_bytes: int = 0
    resumed: Log | None = None


class GrownTree(Protocol):
    """Such a tree."""

    best: tuple[int, Indices] | None
    nodes: int

    @property
    def log(self) -> Log | None:
        """The tree so far; read it once the tree has ended. None where none is kept."""

    def run(self, stop: Bytes) -> bool:
        """Grow it to its end, False when `stop` (1,) cut it short."""


Planter = Callable[[Ground, Bytes], GrownTree]
"""Plants a tree; the word to stop (1,) may come meanwhile."""
