"""What comes back: typed answers with their certificates. Those of transport are in `allot_client.transported`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from allot_client.arrays import Bring, given, stay
from allot_client.extents import extents, sent_shapes

HALL = ("hall_rows", "hall_cols")
"""Lines that prove that a problem is infeasible."""
SOURCE = ("cost", "x", "y", "a", "b", "metric")
"""What rows of a plan follow from, beside potentials."""


@dataclass(frozen=True)
class Home:
    """Where the arrays of an answer go: the caller's library and device, and the names of the input's lines.

    `sizes` are the rows and columns of each problem of a ragged batch, `parts` the homes of its problems; `label_names`
    is what the codes of labels stand for. `source` is what potentials were worked out from, as it was given: rows of
    their plan follow from both. `within` are the rows and columns that were given, where the problem that was solved
    has more of them. `n_rows` are the rows of a problem that went with others: the document tells of all together.
    """

    bring: Bring = stay
    row_names: tuple[Any, ...] | None = None
    column_names: tuple[Any, ...] | None = None
    sizes: tuple[tuple[int, int], ...] | None = None
    label_names: tuple[Any, ...] | None = None
    parts: tuple[Home, ...] | None = None
    within: tuple[int, int] | None = None
    n_rows: int | None = None
    source: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """What other code than the solver's proved of the answer.

    `bound` is proved for the problem as given: no answer is better. `gap_abs` = |objective - bound|, and `gap_rel`
    divides it by the larger of the two. `verified` is True where the word optimal or infeasible was proved, False where
    it is the word of a search that nobody checked, None beside other words. Where the job asked for no certificate,
    `holds` and all numbers are None and `verified` is False. `proved` says in words what was proved, and
    in which arithmetic.
    """

    bound: float | None
    gap_abs: float | None
    gap_rel: float | None
    max_violation: float | None
    holds: bool | None
    proved: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    verified: bool | None = None


@dataclass(frozen=True, repr=False)
class Result:
    """An answer, whatever the solver.

    `arrays` holds every array of the answer by name, in the library and on the device of the first input.
    """

    id: str
    termination: str
    objective: float | None
    certificate: Certificate
    timings_ms: Mapping[str, float]
    method: str
    device: str
    iterations: int
    arrays: Mapping[str, Any] = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)
    row_names: tuple[Any, ...] | None = field(default=None, repr=False)
    column_names: tuple[Any, ...] | None = field(default=None, repr=False)
    home: Home = field(default=Home(), repr=False, compare=False)

    def __repr__(self) -> str:
        """One line, however large the problem: facts of a batch are as long as it is."""
        shapes = ", ".join(
            f"{name}{list(array.shape)}" for name, array in self.arrays.items() if hasattr(array, "shape")
        )
        return (
            f"{type(self).__name__}({self.termination}, verified={self.verified}, "
            f"objective={self.objective}, gap={self.gap}, method={self.method!r}, device={self.device!r}, "
            f"arrays: {shapes or 'none'}; id={self.id!r})"
        )

    @property
    def gap(self) -> float | None:
        """The certificate's relative gap: 0 when the answer is proved to be the best, None when there is no bound."""
        return self.certificate.gap_rel

    @property
    def bound(self) -> float | None:
        """The certificate's bound: no answer is better; None when there is none."""
        return self.certificate.bound

    @property
    def timings(self) -> Mapping[str, float]:
        """Milliseconds of each step, and `total`; the same as `timings_ms`."""
        return self.timings_ms

    @property
    def optimal(self) -> bool:
        """True when the answer is called optimal; `verified` says whether that was proved."""
        return self.termination == "optimal"

    def in_words(self) -> str:
        """The answer for a person, with its distance from the best possible."""
        from allot_client.words import in_words

        return in_words(self)

    @property
    def verified(self) -> bool | None:
        """Of an answer that is called optimal or infeasible: whether the certificate proved it. Else None."""
        return self.certificate.verified

    def _array(self, name: str) -> Any:
        try:
            return self.arrays[name]
        except KeyError:
            there = ", ".join(self.arrays) or "none"
            raise AttributeError(f"this answer ({self.termination}) has no {name}; its arrays: {there}") from None


def relative(away: float | None, objective: float | None, bound: float | None) -> float | None:
    """A gap over the larger of objective and bound, rounded up as in certificates; None where one is not known."""
    if away is None or objective is None or bound is None:
        return None
    if not away or math.isinf(away):
        return float(away)
    scale = max(abs(Fraction(objective)), abs(Fraction(bound)))
    if not scale:
        return math.inf
    exact = Fraction(away) / scale
    try:
        share = float(exact)
    except OverflowError:
        return math.inf
    return share if share >= exact else math.nextafter(share, math.inf)


@dataclass(frozen=True)
class Problem:
    """One problem of a batch: the column of each of its rows (-1: none), and what is known of it alone.

    `gap` is relative, as `Result.gap` is. Of an infeasible one `hall_rows` and `hall_cols` are the places of rows whose
    permitted pairs lie in those columns, which are too few; of another they are None.
    """

    assignment: Any
    objective: float | None
    bound: float | None
    gap: float | None
    termination: str | None
    hall_rows: Any = None
    hall_cols: Any = None


def named_pairs(answer: Result, found: Any) -> list[tuple[Any, Any]]:
    """(row, column) of each row of `found` that has one, by their names."""
    rows, columns = answer.row_names, answer.column_names
    numbered = enumerate(np.asarray(found).tolist())
    return [(rows[i] if rows else i, columns[k] if columns else k) for i, k in numbered if k >= 0]


@dataclass(frozen=True, repr=False)
class _Pairs(Result):
    @property
    def assignment(self) -> Any:
        """The column of each row, -1 for a row that stays unassigned; with a batch axis in front for a batch.

        Of one infeasible problem -1 for each row, where the service gives none.
        """
        rows = self._n_rows
        if self.termination != "infeasible" or "assignment" in self.arrays or rows is None:
            return self._array("assignment")
        return self.home.bring(np.full(rows, -1, np.int64))

    @property
    def hall_rows(self) -> Any:
        """Of an infeasible problem: rows whose permitted pairs lie in fewer columns. Of a batch true at these rows."""
        return self._array("hall_rows")

    @property
    def hall_cols(self) -> Any:
        """Of an infeasible problem: those columns. Of a batch true at them. An auction's answer does not name them."""
        return self._array("hall_cols")

    @property
    def _n_rows(self) -> int | None:
        """The rows of one problem, as it was given; None where nobody knows."""
        return extents(sent_shapes(self.document))[0] if self.home.n_rows is None else self.home.n_rows

    def pairs(self) -> list[tuple[Any, Any]]:
        """Assigned pairs (row, column) of one problem, by their names where the input had names."""
        return named_pairs(self, self.assignment)

    def frame(self) -> Any:
        """The assigned pairs as a pandas DataFrame: a line for each, by their names where the input had names."""
        import pandas

        return pandas.DataFrame(self.pairs(), columns=["row", "column"])

    def each(self) -> Iterator[Problem]:
        """The problems of a batch one by one, each as long as it was before it was put beside longer ones."""
        if self.assignment.ndim == 1:
            hall = (self.arrays.get(name) for name in HALL)
            yield Problem(self.assignment, self.objective, self.certificate.bound, self.gap, self.termination, *hall)
            return
        facts, count = self.certificate.facts.get("problems") or {}, len(self.assignment)
        told = (facts.get(name) or [None] * count for name in ("objectives", "bounds", "gaps", "terminations"))
        sizes = self.home.sizes
        marked = [np.asarray(given(self.arrays[name]).value) if name in self.arrays else None for name in HALL]
        for k, (found, objective, bound, gap, ended) in enumerate(zip(self.assignment, *told, strict=True)):
            own = found if sizes is None else found[: sizes[k][0]]
            hall = (
                None if one is None or ended != "infeasible" else self.home.bring(np.flatnonzero(one[k]))
                for one in marked
            )
            yield Problem(own, objective, bound, relative(gap, objective, bound), ended, *hall)


@dataclass(frozen=True, repr=False)
class LapResult(_Pairs):
    """A linear assignment."""

    @property
    def u(self) -> Any:
        """Duals of the rows."""
        return self._array("u")

    @property
    def v(self) -> Any:
        """Duals of the columns."""
        return self._array("v")

    @property
    def assignments(self) -> Any:
        """With `k_best`: the assignments (k, n_rows), the best first; -1 for a row that stays unassigned.

        An infeasible problem has none.
        """
        if self._has_no_lines:
            return self.assignment[None]
        if self.termination == "infeasible" and "assignments" not in self.arrays:
            return self.assignment[None][:0]
        return self._array("assignments")

    @property
    def objectives(self) -> Any:
        """With `k_best`: the objective of each of `assignments`."""
        if self._has_no_lines:
            return [self.objective]
        if self.termination == "infeasible":
            return []
        try:
            return self.certificate.facts["objectives"]
        except KeyError:
            raise AttributeError("this answer has one objective; with k_best it has objectives") from None

    @property
    def _has_no_lines(self) -> bool:
        """Whether a list was asked for of a matrix without rows or columns: there is one way to pair nothing."""
        return self.home.within is not None and 0 in self.home.within


@dataclass(frozen=True, repr=False)
class AuctionResult(_Pairs):
    """An assignment by auction."""

    @property
    def prices(self) -> Any:
        """Prices of the columns."""
        return self._array("prices")

    @property
    def profits(self) -> Any:
        """Profits of the rows."""
        return self._array("profits")


@dataclass(frozen=True, repr=False)
class GromovResult(Result):
    """A coupling of two spaces."""

    @property
    def plan(self) -> Any:
        """Mass shared by each point of the first space with each of the second."""
        return self._array("plan")


@dataclass(frozen=True, repr=False)
class BarycenterResult(Result):
    """A barycenter of measures."""

    @property
    def barycenter(self) -> Any:
        """Its masses on the given points."""
        return self._array("barycenter")

    @property
    def points(self) -> Any:
        """Its points, where they were free to move; each has the same mass."""
        return self._array("points")


@dataclass(frozen=True, repr=False)
class LowRankResult(Result):
    """A coupling of low rank, by its factors."""

    @property
    def q(self) -> Any:
        """(m, r): how the mass of each row is shared out among the components."""
        return self._array("q")

    @property
    def r(self) -> Any:
        """(n, r): the same of the columns."""
        return self._array("r")

    @property
    def g(self) -> Any:
        """(r,): the mass of each component."""
        return self._array("g")

    @property
    def plan(self) -> Any:
        """The coupling q diag(1 / g) r', written out: m n numbers."""
        return (self.q / self.g) @ self.r.T


@dataclass(frozen=True, repr=False)
class MultimarginalResult(Result):
    """A transport among three measures."""

    @property
    def potentials(self) -> tuple[Any, Any, Any]:
        """f, g and h: of the points of each measure."""
        return self._array("f"), self._array("g"), self._array("h")

    @property
    def plan(self) -> Any:
        """Mass of each triple of points, where it was asked for or `reg` is 0."""
        return self._array("plan")

    @property
    def plan_xy(self) -> Any:
        """Mass that each point of the first measure shares with each of the second, where marginals were asked for."""
        return self._array("plan_xy")

    @property
    def plan_xz(self) -> Any:
        """The same of the first and the third measure."""
        return self._array("plan_xz")

    @property
    def plan_yz(self) -> Any:
        """The same of the second and the third measure."""
        return self._array("plan_yz")
