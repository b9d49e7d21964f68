"""The proofs of all problems side by side, in lists: a thousand frames need no thousand objects."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernels.certificates.rejecting.proof import Proof
from kernels.solution import Number, Termination


@dataclass
class Table:
    """What `Proof` holds of one problem, as a list of all.

    `open`: the problems without an objective, a bound or a gap, which have None there. `whys` and `claims`: of the few
    problems that have one, by number.
    """

    ended: list[Termination]
    objectives: list[Number | None]
    bounds: list[Number | None]
    gaps: list[Number | None]
    violations: list[Number]
    unassigned: list[int]
    left: list[int]
    open: set[int] = field(default_factory=set)
    whys: dict[int, str] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)

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
        for k, ended in enumerate(self.ended):
            yield Proof(
                ended, self.objectives[k], self.bounds[k], self.gaps[k], self.violations[k], self.unassigned[k],
                self.left[k], self.whys.get(k, ""), self.claims.get(k, ""),
            )  # fmt: skip

    def __setitem__(self, k: int, proof: Proof) -> None:
        for column, value in zip(self._columns(), _cells(proof), strict=True):
            column[k] = value
        self._note(k, proof)

    def _columns(self) -> list[list[Any]]:
        return [
            self.ended, self.objectives, self.bounds, self.gaps, self.violations, self.unassigned, self.left,
        ]  # fmt: skip

    def _note(self, k: int, proof: Proof) -> None:
        """What only some problems have."""
        self.open.discard(k)
        if proof.objective is None or proof.bound is None or proof.gap is None:
            self.open.add(k)
        for told, words in ((self.whys, proof.why), (self.claims, proof.claim)):
            told.pop(k, None)
            if words:
                told[k] = words


def _cells(proof: Proof) -> tuple[Any, ...]:
    return (
        proof.ended, proof.objective, proof.bound, proof.gap, proof.violation, proof.unassigned, proof.left,
    )  # fmt: skip
