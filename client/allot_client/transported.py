"""A transport plan, or its potentials, and what is read off them: of one problem, or of each of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allot_client import plans
from allot_client.answers import Result
from allot_client.arrays import Array, given
from allot_client.points import cost_matrix

TOLD = ("objective", "bound", "termination")
"""What `each` says of a problem beside its arrays."""
Read = Callable[["TransportResult", Any, Mapping[str, Any]], Any]


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

    @property
    def label(self) -> Any:
        """The label of each row where labels were given, certified: words where they were words, None without mass.

        Else whole numbers, -1 without mass. `label_share` is how much of the row's mass goes there.
        """
        codes, names = self._array("label"), self.home.label_names
        if names is None:
            return codes
        return np.array([*names, None], object)[_host(codes).astype(np.int64)]

    @property
    def label_share(self) -> Any:
        """The share of each row's mass that goes to its label."""
        return self._array("label_share")

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
        masses `a` and `b` where these were given. Rows of the plan are then worked out some at a time. Of several
        problems it is a list with a part for each; `points` and `source` are lists too, or the same for all.
        """
        if self._several:
            return self._parts(lambda one, own, more: one.barycentric(own, **more), "points", points, source)
        rows, m, _ = self._rows(**source)
        return self.home.bring(plans.barycentric(rows, m, _host(points)))

    def transfer_labels(self, labels: Sequence[Any], **source: Any) -> Any:
        """(label, confidence) of each row from the `labels` of the columns: most of its mass goes there, so much of it.

        Both are NumPy arrays, since labels are often words. For `source` and several problems see `barycentric`.
        """
        if self._several:
            return self._parts(lambda one, own, more: one.transfer_labels(own, **more), "labels", labels, source)
        rows, m, _ = self._rows(**source)
        return plans.labels(rows, m, labels)

    def top(self, k: int, **source: Any) -> Any:
        """(columns, masses), both (m, k): the k columns that each row sends most to.

        For `source` and several problems see `barycentric`.
        """
        if self._several:
            return self._parts(lambda one, own, more: one.top(own, **more), "k", k, source)
        rows, m, n = self._rows(**source)
        columns, masses = plans.top(rows, m, n, k)
        return self.home.bring(columns), self.home.bring(masses)

    @property
    def _several(self) -> bool:
        return self.home.sizes is not None or np.ndim(_host(self.f)) == 2

    def _parts(self, read: Read, name: str, value: Any, source: Mapping[str, Any]) -> list[Any]:
        """`read` of each problem by itself, with its own part of what was given."""
        found, facts = [], self.document.get("facts") or {}
        for k, arrays in enumerate(self.each()):
            own = {**facts, "reg": facts["reg"][k]} if isinstance(facts.get("reg"), list) else facts
            alone = replace(
                self,
                arrays={one: array for one, array in arrays.items() if one not in TOLD},
                document={**self.document, "facts": own},
                home=replace(self.home, sizes=None),
            )
            more = {one: _part(one, given, k) for one, given in source.items()}
            found.append(read(alone, _part(name, value, k), more))
        return found

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


AXES = {"points": 2, "labels": 1, "cost": 2, "x": 2, "y": 2, "a": 1, "b": 1}
"""Axes of what is given for one problem; with one more it is a part for each."""


def _part(name: str, value: Any, k: int) -> Any:
    """What is given for problem k; what is no list of parts is the same for all."""
    if value is None or name not in AXES:
        return value
    parts = isinstance(value, (list, tuple)) and len(value) > 0 and np.ndim(value[0]) >= AXES[name]
    return value[k] if parts or getattr(value, "ndim", 0) > AXES[name] else value


def _host(value: Any) -> Array:
    return np.asarray(given(value).value)
