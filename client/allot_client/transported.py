"""A transport plan, or its potentials, and what is read off them: of one problem, or of each of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allot_client import plans
from allot_client.answers import SOURCE, Result, relative
from allot_client.arrays import Array, given, held
from allot_client.labels import named
from allot_client.points import cost_matrix

TOLD = ("objective", "bound", "termination")
WORST = ("optimal", "gap_reached", "converged", "iteration_limit", "time_limit", "stopped", "infeasible")
"""From the best word to the worst."""
"""What `each` says of a problem beside its arrays."""
ALIKE = 0.05
"""Share by which a row worked out here may differ from the answer's: potentials in float32 leave a thousandth."""
Read = Callable[["TransportResult", Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, repr=False)
class TransportResult(Result):
    """A transport plan, or its potentials."""

    @property
    def plan(self) -> Any:
        """Mass moved from each row to each column; of a sparse cost a sparse matrix, with the entries of that."""
        if "plan" not in self.arrays and "entry_values" in self.arrays and (like := self._sparse_cost()) is not None:
            like.data = _host(self.arrays["entry_values"])
            return like
        return self._array("plan")

    def _sparse_cost(self) -> Any:
        """A copy of the cost as it was sent, on the host; None where it was no sparse matrix, or nobody knows it."""
        cost: Any = self.home.source.get("cost")
        if not hasattr(cost, "tocsr"):
            return None
        csr = cost.tocsr().copy()
        csr = csr.get() if hasattr(csr, "get") else csr  # CuPy's
        csr.sort_indices()
        return csr

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
        """The label that most of each row's mass goes to, where labels were given; certified, as `label_share` is.

        Labels as they were given, in an array of objects: None where most goes to columns without a label, and for a
        row without mass. Whole numbers from 0 to n - 1, of n columns, stay an array of such, -1 without mass.
        """
        codes, names = self._array("label"), self.home.label_names
        return codes if names is None else named(_host(codes).astype(np.int64), names)

    @property
    def label_share(self) -> Any:
        """The share of each row's mass that goes to its label."""
        return self._array("label_share")

    def __getitem__(self, name: str) -> Any:
        """An array of the answer by its name, or its `objective`, `bound` or `termination`."""
        if name in TOLD:
            return getattr(self, name)
        return self.arrays[name]

    def each(self) -> Iterator[TransportResult]:
        """The problems of several one by one, each an answer of its own, with its plan as a matrix and its names."""
        if not self._several:
            yield self
            return
        starts, count = [0, 0, 0], len(self.home.sizes or self.f)
        for k in range(count):
            if self.home.sizes is None:
                yield self._alone(k, count, {name: array[k] for name, array in self.arrays.items()})
                continue
            m, n = self.home.sizes[k]
            found: dict[str, Any] = {}
            for name, array in self.arrays.items():
                side = 2 if name == "plan" else _side(name)
                if side is not None:
                    part = array[starts[side] : starts[side] + (m, n, m * n)[side]]
                    found[name] = part.reshape(m, n) if name == "plan" else part
            starts = [start + length for start, length in zip(starts, (m, n, m * n), strict=True)]
            yield self._alone(k, count, found)

    def _alone(self, k: int, count: int, arrays: Mapping[str, Any]) -> TransportResult:
        """Problem k of `count` as an answer; what was proved, it shares with the others."""
        told, facts = self._told(k, count), self.document.get("facts") or {}
        own = {**facts, "reg": facts["reg"][k]} if isinstance(facts.get("reg"), list) else facts
        source = {name: _part(name, given, k) for name, given in self.home.source.items()}
        part = self.home.parts[k] if self.home.parts else replace(self.home, sizes=None)
        objective, bound, termination = (told[name] for name in TOLD)
        away, word = told["gap"], termination or self.termination
        proved = self.certificate.verified if word in ("optimal", "infeasible") else None
        certificate = replace(
            self.certificate, bound=bound, gap_abs=away, gap_rel=relative(away, objective, bound),
            facts={"problem": k}, verified=proved if self.certificate.holds is not None else False,
        )  # fmt: skip
        return replace(
            self, arrays=arrays, objective=objective, termination=word,
            certificate=certificate, document={**self.document, "facts": own, "objective": objective},
            row_names=part.row_names, column_names=part.column_names, home=replace(part, source=source),
        )  # fmt: skip

    def _told(self, k: int, count: int) -> dict[str, Any]:
        """Objective, bound, gap and termination of problem k of `count`; without a certificate the solver's own words.

        A divergence is made of three values, W(x, y) less half of W(x, x) and of W(y, y); the lists hold them in turn.
        Its word is the worst of theirs.
        """
        facts = self.certificate.facts.get("problems") or {}
        told = facts or self.document.get("facts") or {}
        values: Any = told.get("objectives")
        known = {
            "objective": None if values is None else values[k],
            "bound": facts["bounds"][k] if "bounds" in facts else None,
            "gap": facts["gaps"][k] if "gaps" in facts else None,
            "termination": max(told["terminations"][k::count], key=WORST.index) if "terminations" in told else None,
        }
        if "divergences" in self.certificate.facts:
            found = self.certificate.facts["divergences"][k]
            if found is None:  # one of its values is not bounded
                return {**known, "objective": None, "bound": None, "gap": None}
            low, high = found
            return {**known, "objective": high, "bound": low, "gap": high - low}
        if (self.document.get("options") or {}).get("divergence") and values is not None:
            if self.document.get("input_digests", {}).keys() & {"a", "b"}:  # unequal masses have one more term
                return {**known, "objective": None, "bound": None}
            own = values[k] - (values[k + count] + values[k + 2 * count]) / 2
            return {**known, "objective": own, "bound": None}
        return known

    def barycentric(self, points: Any, **source: Any) -> Any:
        """Where each row goes: the mean of `points` (n, d) of the columns, weighted by the row's mass.

        Where the answer holds potentials alone, rows of the plan are worked out some at a time, from what the problem
        was given as. An answer that was fetched by its job's id does not know that: `source` then says it, `cost`, or
        `x` and `y` with their `metric`, and the masses `a` and `b` where these were given. Of several problems it is a
        list with a part for each; `points` and `source` are lists too, or the same for all.
        """
        if self._several:
            return self._parts(lambda one, own, more: one.barycentric(own, **more), "points", points, source)
        rows, m, _ = self._rows(**source)
        return self.home.bring(plans.barycentric(rows, m, _host(points)))

    def transfer_labels(self, labels: Any, **source: Any) -> Any:
        """(label, confidence) of each row from the `labels` of the columns: most of its mass goes there, so much of it.

        Both are NumPy arrays, since labels are often words. Labels may be missing (None, NaN, NA); what a row without
        mass or without a label has is as in `label`. For `source` and several problems see `barycentric`.
        """
        if self._several:
            return self._parts(lambda one, own, more: one.transfer_labels(own, **more), "labels", labels, source)
        rows, m, n = self._rows(**source)
        shape = () if isinstance(labels, str) else held(labels).value.shape
        if shape != (n,):
            found = f"the word {labels!r}" if isinstance(labels, str) else f"of shape {shape}"
            raise ValueError(f"labels is {found}; expected a label for each of {n} columns, as y.obs[...] has them")
        return plans.labels(rows, m, labels)

    def top(self, k: int, names: bool = False, **source: Any) -> Any:
        """(columns, masses), both (m, k): the k columns that each row sends most to; with `names` by their names.

        For `source` and several problems see `barycentric`.
        """
        if self._several:
            return self._parts(lambda one, own, more: one.top(own, names, **more), "k", k, source)
        rows, m, n = self._rows(**source)
        columns, masses = plans.top(rows, m, n, k)
        if names and self.column_names is not None:
            return np.array([*self.column_names, None], object)[columns], self.home.bring(masses)
        return self.home.bring(columns), self.home.bring(masses)

    @property
    def _several(self) -> bool:
        return self.home.sizes is not None or np.ndim(_host(self.f)) == 2

    def _parts(self, read: Read, name: str, value: Any, source: Mapping[str, Any]) -> list[Any]:
        """`read` of each problem by itself, with its own part of what was given."""
        return [
            read(one, _part(name, value, k), {key: _part(key, given, k) for key, given in source.items()})
            for k, one in enumerate(self.each())
        ]

    def frame(self) -> Any:
        """The plan as a pandas DataFrame with the names of its rows and columns."""
        import pandas

        if hasattr(self.plan, "tocsr"):
            return pandas.DataFrame.sparse.from_spmatrix(self.plan, index=self.row_names, columns=self.column_names)
        return pandas.DataFrame(_host(self.plan), index=self.row_names, columns=self.column_names)

    def _rows(self, **source: Any) -> tuple[plans.Rows, int, int]:
        if "plan" in self.arrays:
            plan = _host(self.plan)
            return plans.given_rows(plan), *plan.shape
        if "entry_values" in self.arrays and hasattr(self.home.source.get("cost"), "tocsr"):
            plan = self.plan
            return lambda start, stop: np.asarray(plan[start:stop].toarray()), *plan.shape
        f, g = _host(self.f), _host(self.g)
        options = self.document.get("options") or {}
        if options.get("method") == "exact":
            plan = np.zeros((len(f), len(g)))
            plan[_host(self.arrays["entry_rows"]), _host(self.arrays["entry_columns"])] = _host(
                self.arrays["entry_values"]
            )
            return plans.given_rows(plan), *plan.shape
        if unknown := source.keys() - SOURCE:
            raise TypeError(f"{', '.join(sorted(unknown))} is unknown here; expected some of {', '.join(SOURCE)}")
        known = {**self.home.source, **source}
        cost, x, y, a, b = (known.get(name) for name in ("cost", "x", "y", "a", "b"))
        kind = known.get("metric") or options.get("metric", "sqeuclidean")
        if cost is None and (x is None or y is None):
            raise ValueError("this answer holds potentials and no plan; give cost=, or x= and y= with their metric=")

        def costs(start: int, stop: int) -> Array:
            if cost is not None:
                return _host(cost)[start:stop]
            return cost_matrix(_host(x)[start:stop], _host(y), kind)

        masses: list[Array | None] = [None, None]
        if options.get("reference", "product") == "product":
            sides = ((a, len(f)), (b, len(g)))
            masses = [np.full(size, 1 / size) if mass is None else _host(mass) for mass, size in sides]
        reg = float((self.document.get("facts") or {}).get("reg") or options["reg"])
        rows = plans.rows_from_potentials(f, g, costs, reg, *masses)
        self._check(rows)
        return rows, len(f), len(g)

    def _check(self, rows: plans.Rows) -> None:
        """Raise ValueError where these rows are not those of the answer: the heaviest has another sum than it says."""
        if "row_marginal" not in self.arrays or not len(self.arrays["row_marginal"]):
            return
        marginal = _host(self.arrays["row_marginal"])
        k = int(np.argmax(marginal))
        found, expected = float(rows(k, k + 1).sum()), float(marginal[k])
        if not abs(found - expected) <= ALIKE * abs(expected):
            raise ValueError(f"row {k} of the plan would carry {found:.3g}, and the answer says {expected:.3g}; "
                             "give cost, or x, y and metric, and a and b, as the problem had them")  # fmt: skip


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
    parts = isinstance(value, (list, tuple)) and len(value) > 0 and _axes(value[0]) >= AXES[name]
    return value[k] if parts or getattr(value, "ndim", 0) > AXES[name] else value


def _axes(value: Any) -> int:
    return len(value.shape) if hasattr(value, "shape") else np.ndim(value)


def _host(value: Any) -> Array:
    return np.asarray(given(value).value)
