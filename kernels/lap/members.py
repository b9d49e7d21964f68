"""A batch taken apart into its problems, and their answers put together again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.deadline import Deadline, Progress
from kernels.problems import UNASSIGNED, Array, Assignment
from kernels.problems.arrays import Costs, Indices, Indices32
from kernels.solution import Solution, Termination

BEST_TO_WORST = (
    Termination.OPTIMAL,
    Termination.CONVERGED,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.STOPPED,
    Termination.INFEASIBLE,
)
"""A batch ends with the worst word of its problems."""
CODES = {word: code for code, word in enumerate(Termination)}


class PartOf(Deadline):
    """The deadline of problem `k` of `count`: the whole's clock and flag, and fractions that count within the whole."""

    def __init__(self, whole: Deadline, k: int, count: int) -> None:
        super().__init__(whole.remaining_s, lambda: whole.expired() is Termination.STOPPED, self._pass_on)
        self._whole, self._k, self._count = whole, k, count

    @property
    def heard(self) -> bool:
        """Whether anybody listens to the whole."""
        return self._whole.heard

    def _pass_on(self, progress: Progress) -> None:
        """The fraction alone: one problem's objective says little of the batch's."""
        if progress.fraction is not None:
            self._whole.report(progress.iteration, fraction=(self._k + progress.fraction) / self._count)


class Members:
    """The problems of a batch and what is known of their answers.

    `arrays` are the batch's: `assignment`, `u`, `v`, padded with -1 and 0 beyond a problem's size. `ended` (batch,)
    int8 is the word of each problem, as its place in `Termination`.
    """

    def __init__(self, problem: Assignment) -> None:
        weights = problem.weights
        assert isinstance(weights, np.ndarray)
        self.weights, self.problem = weights, problem
        batch, rows, cols = weights.shape
        dual = np.int64 if weights.dtype.kind == "i" else np.float64
        whole = np.broadcast_to(np.array([rows, cols], np.int32), (batch, 2))
        self.sizes: Indices32 = np.ascontiguousarray(whole) if problem.sizes is None else problem.sizes
        self.arrays: dict[str, Array] = {
            "assignment": np.full((batch, rows), UNASSIGNED, np.int64),
            "u": np.zeros((batch, rows), dual),
            "v": np.zeros((batch, cols), dual),
        }
        self.ended = np.full(batch, CODES[Termination.OPTIMAL], np.int8)
        self._violators: dict[int, tuple[Indices, Indices]] = {}

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Iterator[tuple[int, Costs, Costs | None, Costs | None]]:
        """(index, weights, u0, v0) of each problem, without padding."""
        for k in range(len(self)):
            yield (k, *self[k])

    def __getitem__(self, k: int) -> tuple[Costs, Costs | None, Costs | None]:
        rows, cols = self.sizes[k].tolist()
        u0 = None if self.problem.u0 is None else self.problem.u0[k, :rows]
        v0 = None if self.problem.v0 is None else self.problem.v0[k, :cols]
        return np.ascontiguousarray(self.weights[k, :rows, :cols]), u0, v0

    def take(self, k: int, one: Solution) -> None:
        """Write down the answer of problem k."""
        rows, cols = self.sizes[k].tolist()
        self.ended[k] = CODES[one.termination]
        if one.termination is Termination.INFEASIBLE:
            self._violators[k] = (one.arrays["hall_rows"], one.arrays["hall_cols"])
            self.arrays["assignment"][k], self.arrays["u"][k], self.arrays["v"][k] = UNASSIGNED, 0, 0
            return
        for name, extent in (("assignment", rows), ("u", rows), ("v", cols)):
            self.arrays[name][k, :extent] = one.arrays[name]

    def solution(self, method: str, iterations: int, **rest: Any) -> Solution:
        """The batch's answer; `hall_rows` and `hall_cols` become (batch, extent) bool, for its infeasible problems."""
        if self._violators:
            _, rows, cols = self.weights.shape
            hall_rows, hall_cols = np.zeros((len(self), rows), bool), np.zeros((len(self), cols), bool)
            for k, (in_rows, in_cols) in self._violators.items():
                hall_rows[k, in_rows] = hall_cols[k, in_cols] = True
            self.arrays |= {"hall_rows": hall_rows, "hall_cols": hall_cols}
        facts: dict[str, Any] = {"problems": len(self), **rest.pop("facts", {})}
        if self._violators:
            facts["problem"] = min(self._violators)
        words = [tuple(Termination)[code] for code in np.unique(self.ended)]
        worst = max(words, key=BEST_TO_WORST.index)
        return Solution(worst, method, self.arrays, iterations, facts=facts, evidence={"ended": self.ended}, **rest)
