"""The proofs of all problems side by side, in lists: a thousand frames need no thousand objects."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernels.certificates.rejecting.proof import Proof
from kernels.problems import Array
from kernels.solution import Number, Termination


@dataclass(frozen=True)
class Sums:
    """Over all problems: the largest violation, how many pairs are missing and how many lines are left.

    `rounded`: objective and bound, each rounded to its weak side; None where nobody has added them up.
    """

    violation: Number
    unassigned: int
    left: int
    rounded: tuple[float, float] | None = None


@dataclass
class Table:
    """What `Proof` holds of one problem, as a list of all. Of what an answer does not list, an array will do.

    `open`: the problems without an objective, a bound or a gap, which have None there. `whys` and `claims`: of the few
    problems that have one, by number. `sums`: where somebody has made those of this table.
    """

    ended: list[Termination]
    objectives: list[Number | None]
    bounds: list[Number | None]
    gaps: list[Number | None]
    violations: list[Number] | Array
    unassigned: list[int] | Array
    left: list[int] | Array
    open: set[int] = field(default_factory=set)
    whys: dict[int, str] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)
    sums: Sums | None = None

    @classmethod
    def of(cls, proofs: list[Proof]) -> "Table":
        """Of proofs that were made one by one."""
        table = cls([], [], [], [], [], [], [])
        for k, proof in enumerate(proofs):
            for column, value in zip(table._columns(), _cells(proof), strict=True):
                column.append(value)
            table._note(k, proof)
        return table

    def __len__(self) -> int:
        return len(self.ended)

    def __iter__(self) -> Iterator[Proof]:
        """One by one."""
        for k, cells in enumerate(zip(*self._columns(), strict=True)):
            cells += self.whys.get(k, ""), self.claims.get(k, "")
            yield Proof(*cells)

    def __setitem__(self, k: int, proof: Proof) -> None:
        self.sums = None
        for column, value in zip(self._columns(), _cells(proof), strict=True):
            column[k] = value
        self._note(k, proof)

    def _columns(self) -> list[list[Any]]:
        """All as lists, from now on."""
        self.violations, self.unassigned, self.left = map(_listed, (self.violations, self.unassigned, self.left))
        return [
            self.ended, self.objectives, self.bounds, self.gaps, self.violations, self.unassigned, self.left,
        ]  # fmt: skip

    def totals(self) -> Sums:
        """Those of this table."""
        if self.sums is not None:
            return self.sums
        *_, violations, unassigned, left = self._columns()
        return Sums(max(violations, default=0), sum(unassigned), sum(left))

    def _note(self, k: int, proof: Proof) -> None:
        """What only some problems have."""
        self.open.discard(k)
        if proof.objective is None or proof.bound is None or proof.gap is None:
            self.open.add(k)
        for told, words in ((self.whys, proof.why), (self.claims, proof.claim)):
            told.pop(k, None)
            if words:
                told[k] = words


def _listed(column: list[Any] | Array) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


def _cells(proof: Proof) -> tuple[Any, ...]:
    return (
        proof.ended, proof.objective, proof.bound, proof.gap, proof.violation, proof.unassigned, proof.left,
    )  # fmt: skip
