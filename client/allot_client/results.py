"""What comes back: typed answers with their certificates, read from the result document and its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allot_client import plans
from allot_client.arrays import Array, Bring, given, padded, stay
from allot_client.points import cost_matrix

GROUPS = ("duals", "potentials")
"""Members of the result document that hold arrays of their own."""


@dataclass(frozen=True)
class Home:
    """Where the arrays of an answer go: the caller's library and device, and the names of the input's lines.

    `sizes` are the rows and columns of each problem of a ragged batch.
    """

    bring: Bring = stay
    row_names: tuple[Any, ...] | None = None
    column_names: tuple[Any, ...] | None = None
    sizes: tuple[tuple[int, int], ...] | None = None


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


@dataclass(frozen=True)
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

    @property
    def gap(self) -> float | None:
        """The certificate's relative gap: 0 when the answer is proved to be the best, None when there is no bound."""
        return self.certificate.gap_rel

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
    """A gap divided by the larger of objective and bound, as in certificates; None where one of them is not known."""
    if away is None or objective is None or bound is None:
        return None
    scale = max(abs(objective), abs(bound))
    return float(away / scale) if scale else 0.0


@dataclass(frozen=True)
class Problem:
    """One problem of a batch: the column of each of its rows (-1: none), and what is known of it alone.

    `gap` is relative, as `Result.gap` is.
    """

    assignment: Any
    objective: float | None
    bound: float | None
    gap: float | None
    termination: str | None


@dataclass(frozen=True)
class _Pairs(Result):
    @property
    def assignment(self) -> Any:
        """The column of each row, -1 for a row that stays unassigned; with a batch axis in front for a batch."""
        return self._array("assignment")

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Assigned pairs (row, column) of one problem, by their names where the input had names."""
        for row, column in enumerate(np.asarray(self.assignment).tolist()):
            if column >= 0:
                yield (
                    self.row_names[row] if self.row_names else row,
                    self.column_names[column] if self.column_names else column,
                )

    def each(self) -> Iterator[Problem]:
        """The problems of a batch one by one, each as long as it was before it was put beside longer ones."""
        if self.assignment.ndim == 1:
            yield Problem(self.assignment, self.objective, self.certificate.bound, self.gap, self.termination)
            return
        facts = self.certificate.facts.get("problems") or {}
        for k, found in enumerate(self.assignment):
            own = found if self.home.sizes is None else found[: self.home.sizes[k][0]]
            objective, bound, gap, ended = (
                facts.get(name, {k: None})[k] for name in ("objectives", "bounds", "gaps", "terminations")
            )
            yield Problem(own, objective, bound, relative(gap, objective, bound), ended)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class TransportResult(Result):
    """A transport plan, or its potentials."""

    @property
    def plan(self) -> Any:
        """Mass moved from each row to each column."""
        return self._array("plan")

    @property
    def f(self) -> Any:
        """Potentials of the rows."""
        return self._array("f")

    @property
    def g(self) -> Any:
        """Potentials of the columns."""
        return self._array("g")

    def each(self) -> Iterator[dict[str, Any]]:
        """The arrays of each problem of several, by name, with its plan as a matrix; those of one as they are.

        Beside them stand its `objective`, `bound` and `termination`.
        """
        if self.home.sizes is None and np.ndim(_host(self.f)) == 1:
            yield {**self.arrays, "objective": self.objective, "bound": self.certificate.bound,
                   "termination": self.termination}  # fmt: skip
            return
        starts, count = [0, 0, 0], len(self.home.sizes or self.f)
        for k in range(count):
            told = self._told(k, count)
            if self.home.sizes is None:
                yield {name: array[k] for name, array in self.arrays.items()} | told
                continue
            m, n = self.home.sizes[k]
            found: dict[str, Any] = {}
            for name, array in self.arrays.items():
                side = 2 if name == "plan" else _side(name)
                if side is not None:
                    part = array[starts[side] : starts[side] + (m, n, m * n)[side]]
                    found[name] = part.reshape(m, n) if name == "plan" else part
            starts = [start + length for start, length in zip(starts, (m, n, m * n), strict=True)]
            yield found | told

    def _told(self, k: int, count: int) -> dict[str, Any]:
        """Objective, bound and termination of problem k of `count`; without a certificate the solver's own words.

        A divergence is made of three values, W(x, y) less half of W(x, x) and of W(y, y); the lists hold them in turn.
        """
        facts = self.certificate.facts.get("problems") or {}
        told = facts or self.document.get("facts") or {}
        values: Any = told.get("objectives")
        known = {
            "objective": None if values is None else values[k],
            "bound": facts["bounds"][k] if "bounds" in facts else None,
            "termination": told["terminations"][k] if "terminations" in told else None,
        }
        if "divergences" in self.certificate.facts:
            low, high = self.certificate.facts["divergences"][k]
            return {**known, "objective": high, "bound": low}
        if (self.document.get("options") or {}).get("divergence") and values is not None:
            if self.document.get("input_digests", {}).keys() & {"a", "b"}:  # unequal masses have one more term
                return {**known, "objective": None, "bound": None}
            own = values[k] - (values[k + count] + values[k + 2 * count]) / 2
            return {**known, "objective": own, "bound": None}
        return known

    def barycentric(self, points: Any, **source: Any) -> Any:
        """Where each row goes: the mean of `points` (n, d) of the columns, weighted by the row's mass.

        `source` is needed where the answer holds potentials alone: `cost`, or `x` and `y` with their `metric`, and the
        masses `a` and `b` where these were given. Rows of the plan are then worked out some at a time.
        """
        rows, m, _ = self._rows(**source)
        return self.home.bring(plans.barycentric(rows, m, _host(points)))

    def transfer_labels(self, labels: Sequence[Any], **source: Any) -> tuple[Any, Any]:
        """(label, confidence) of each row from the `labels` of the columns: most of its mass goes there, so much of it.

        Both are NumPy arrays, since labels are often words. For `source` see `barycentric`.
        """
        rows, m, _ = self._rows(**source)
        return plans.labels(rows, m, labels)

    def top(self, k: int, **source: Any) -> tuple[Any, Any]:
        """(columns, masses), both (m, k): the k columns that each row sends most to. For `source` see `barycentric`."""
        rows, m, n = self._rows(**source)
        columns, masses = plans.top(rows, m, n, k)
        return self.home.bring(columns), self.home.bring(masses)

    def frame(self) -> Any:
        """The plan as a pandas DataFrame with the names of its rows and columns."""
        import pandas

        return pandas.DataFrame(_host(self.plan), index=self.row_names, columns=self.column_names)

    def _rows(
        self, cost: Any = None, x: Any = None, y: Any = None, a: Any = None, b: Any = None, metric: str | None = None
    ) -> tuple[plans.Rows, int, int]:
        if "plan" in self.arrays:
            plan = _host(self.plan)
            return plans.given_rows(plan), *plan.shape
        f, g = _host(self.f), _host(self.g)
        if (self.document.get("options") or {}).get("method") == "exact":
            plan = np.zeros((len(f), len(g)))
            plan[_host(self.arrays["entry_rows"]), _host(self.arrays["entry_columns"])] = _host(
                self.arrays["entry_values"]
            )
            return plans.given_rows(plan), *plan.shape
        options = self.document.get("options") or {}
        kind = metric or options.get("metric", "sqeuclidean")
        if cost is None and (x is None or y is None):
            raise ValueError("this answer holds potentials and no plan; give cost=, or x= and y=")

        def costs(start: int, stop: int) -> Array:
            if cost is not None:
                return _host(cost)[start:stop]
            return cost_matrix(_host(x)[start:stop], _host(y), kind)

        masses: list[Array | None] = [None, None]
        if options.get("reference", "product") == "product":
            sides = ((a, len(f)), (b, len(g)))
            masses = [np.full(size, 1 / size) if mass is None else _host(mass) for mass, size in sides]
        reg = float((self.document.get("facts") or {}).get("reg") or options["reg"])
        return plans.rows_from_potentials(f, g, costs, reg, *masses), len(f), len(g)


def _side(name: str) -> int | None:
    """Of an array of several clouds: 0 where it has a line for each row, 1 for each column, None for neither."""
    rows = ("f", "row_marginal", "rest_a", "grad_a", "grad_x", "barycentric", "top_columns", "top_values")
    return 0 if name in rows else 1 if name in ("g", "column_marginal", "rest_b", "grad_b", "grad_y") else None


def _host(value: Any) -> Array:
    return np.asarray(given(value).value)


@dataclass(frozen=True)
class QuadraticResult(Result):
    """A quadratic assignment."""

    @property
    def permutation(self) -> Any:
        """The location of each facility, from 0."""
        return self._array("permutation")


KINDS: dict[str, type[Result]] = {
    "lap": LapResult,
    "auction": AuctionResult,
    "uot": TransportResult,
    "qap": QuadraticResult,
}


def read_result(document: Mapping[str, Any], arrays: Mapping[str, Array] | None, home: Home) -> Result:
    """The result of a document, with the arrays that it holds in line unless `arrays` holds all of them."""
    found = inline_arrays(document) if arrays is None else arrays
    if home.sizes is not None:
        found = _by_problem(found, home.sizes)
    certificate = {name: document["certificate"].get(name) for name in Certificate.__dataclass_fields__}
    kind = KINDS.get(document["solver"], Result)
    return kind(
        id=document["id"],
        termination=document["termination"],
        objective=document["objective"],
        certificate=Certificate(**{**certificate, "facts": certificate["facts"] or {}}),
        timings_ms=document["timings_ms"],
        method=document["method"],
        device=document["device"],
        iterations=document["iterations"],
        arrays={name: home.bring(array) for name, array in found.items()},
        document=document,
        row_names=home.row_names,
        column_names=home.column_names,
        home=home,
    )


def array_entries(document: Mapping[str, Any]) -> dict[str, Any]:
    """By name, what the document holds of each array: nested lists, or a link."""
    entries: dict[str, Any] = {}
    for name, value in document.items():
        if name in GROUPS and isinstance(value, Mapping):
            entries.update(value)
        elif isinstance(value, list) or (isinstance(value, Mapping) and "href" in value):
            entries[name] = value
    return entries


LINES = {"assignment": 0, "u": 0, "hall_rows": 0, "v": 1, "hall_cols": 1}
"""Arrays of an assignment, by the side whose lines they are about."""


def _by_problem(found: Mapping[str, Array], sizes: Sequence[tuple[int, int]]) -> dict[str, Array]:
    """The arrays of a ragged batch with a problem a row, as long as the longest."""
    return {
        name: padded(array, [size[LINES[name]] for size in sizes], -1 if name == "assignment" else 0)
        if name in LINES and array.ndim == 1
        else array
        for name, array in found.items()
    }


def has_links(document: Mapping[str, Any]) -> bool:
    """True when an array is too large to stand in the document."""
    return any(isinstance(entry, Mapping) for entry in array_entries(document).values())


def inline_arrays(document: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a document without links. null stands for a potential of -inf, that of a point without mass."""
    arrays = {name: np.asarray(entry) for name, entry in array_entries(document).items()}
    return {
        name: np.where(array == None, -np.inf, array).astype(np.float64) if array.dtype == object else array  # noqa: E711
        for name, array in arrays.items()
    }
