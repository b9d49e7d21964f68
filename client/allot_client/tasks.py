"""From a call in Python to a job: which arguments are inputs, and what the service calls the rest."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from allot_client import body as bodies
from allot_client import boxes, features, framed, points
from allot_client.arrays import Given, Series, Sparse, all_plain, dense, given, held, laid_flat, without_holes
from allot_client.extents import SIDES
from allot_client.flows import Task
from allot_client.labels import coded
from allot_client.listed import listed, written_out
from allot_client.ragged import PRICES, beside, clouds, several, without_points, without_rows
from allot_client.results import SOURCE, Home, LapResult

JOB_FIELDS = ("device", "time_limit_s", "result_ttl_s", "warm_start", "keep_inputs", "priority")
"""Arguments that belong to the job; all others are options of its solver."""
NO_HOME = Home()
ENDLESS = "reg_m"
"""The option that may be infinite: exact marginals."""
OF_A_MATRIX = ("cost_limit", "cardinality", "objective", "k_best")
"""Options of lap that need a matrix of costs; where points are given it is worked out here."""
TOGETHER = ("x", "y", "a", "b", "f0", "g0")
"""Inputs of a transport job of several clouds, whose lines follow one another."""
OF_SPARSE = {
    **dict.fromkeys(("lap", "qap", "lawler", "gromov", "barycenter", "lowrank", "multimarginal")),
    "auction": "benefit", "uot": "cost",
}  # fmt: skip
"""By solver the input that may be sparse; of one that is not here the service says what it takes."""
FILES = ("qaplib", "sln")
"""Inputs that are texts."""
OF_ONE = "labels are for one problem; of several, answer.transfer_labels(labels) tells each row's"
SHORT = ("lap", "auction", "qap", "lawler")
"""Solvers whose answers have a few numbers for each line; those of the others may be matrices."""


def task(solver: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Task:
    """A job of `solver`; inputs that are None are left out, and so are options."""
    job: dict[str, Any] = {"solver": solver}
    chosen = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in JOB_FIELDS:
            job[name] = plainly(name, getattr(value, "id", value) if name == "warm_start" else value)
        else:
            chosen[name] = plainly(name, value)
    forbidden = -math.inf if solver == "auction" or chosen.get("maximize") else math.inf
    taken: dict[str, bodies.Input] = {}
    known: dict[str, Given] = {}
    for name, value in inputs.items():
        if value is None:
            continue
        if name in ("y", "z") and solver != "gromov":
            value = features.matched(inputs.get("x"), value)
        taken[name], found = _input(solver, name, value, forbidden)
        if found is not None:
            known[name] = found
    _points_by_metric(solver, taken, chosen, known)
    if chosen:
        job["options"] = chosen
    return Task(job, taken, _home(known), as_file=solver not in SHORT)


def plainly(name: str, value: Any) -> Any:
    """What a job's JSON holds of an option or a field: numbers of NumPy and of tensors are numbers.

    An infinite strength is the word "inf", as the service has it.

    Raises:
        ValueError: not a number, or infinite where only "inf" has a meaning.
        TypeError: nothing that JSON has.
    """
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        if math.isinf(value) and value > 0 and name == ENDLESS:
            return "inf"
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}; expected a finite number")
        return float(value)
    if isinstance(value, Mapping):
        return {key.tolist() if hasattr(key, "tolist") else key: plainly(name, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plainly(name, one) for one in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy, torch, JAX, CuPy
        found = value.tolist()
        if not hasattr(found, "tolist"):  # a long double stays what it is
            return plainly(name, found)
    raise TypeError(f"{name} is a {type(value).__name__}; expected a number, a word or a list of such")


def _home(known: Mapping[str, Given]) -> Home:
    if not known:
        return NO_HOME
    first = next(iter(known.values()))
    for left, right in SIDES:
        if left in known and right in known:
            return Home(known[left].bring, known[left].row_names, known[right].row_names)
    return Home(first.bring, first.row_names, first.column_names)


def _input(solver: str, name: str, value: Any, forbidden: float) -> tuple[bodies.Input, Given | None]:
    if isinstance(value, (bodies.Blob, bodies.File, Series)):
        return value, None
    if isinstance(value, (str, os.PathLike)):
        return _file(name, value), None
    found = given(value)
    if isinstance(found.value, Sparse) and OF_SPARSE.get(solver, name) == name:
        return found.value, found
    return without_holes(dense(name, found.value), forbidden), found


def _file(name: str, value: str | os.PathLike[str]) -> bodies.File:
    """The path of a file of QAPLIB's, or what stands in one. Raises: ValueError, OSError."""
    if name not in FILES:
        raise ValueError(
            f"{name} is the text {str(value)[:80]!r}; expected an array, so read the file first: pandas.read_csv, "
            "numpy.load, anndata.read_h5ad"
        )
    if isinstance(value, str) and "\n" in value.strip():
        return bodies.File(f"{name}.dat", value.encode())
    path = Path(value)
    return bodies.File(path.name, path.read_bytes())


def _points_by_metric(
    solver: str, taken: dict[str, bodies.Input], chosen: dict[str, Any], known: Mapping[str, Given]
) -> None:
    """Points of a metric that a solver does not take, as points of one that it does."""
    x, y, metric = taken.get("x"), taken.get("y"), chosen.get("metric", "sqeuclidean")
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return
    if solver in ("gromov", "multimarginal"):  # the service knows the names of their metrics
        return
    if metric not in points.NAMES:
        raise ValueError(f"metric {metric!r} is unknown; expected one of {', '.join(points.NAMES)}")
    if solver == "uot" and metric in points.AS_POINTS:
        for name, side in (("x", x), ("y", y)):
            names = known[name].row_names if name in known else None
            taken[name] = points.as_points(side, metric, name, names)
        chosen["metric"] = "sqeuclidean"


def transport(inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Task:
    """A transport job; clouds given as lists follow one another, and their sizes are sent beside them."""
    left, right = _paired(inputs.get("x"), inputs.get("y"))
    source = {name: value for name in SOURCE if (value := {**inputs, **options}.get(name)) is not None}
    if left is None or right is None:
        if source.get("y") is not None:
            source["y"] = features.matched(source.get("x"), source["y"])
        codes, names = _coded(_column_of(inputs.get("labels"), inputs.get("y")))
        made = task("uot", {**inputs, "labels": codes}, options)
        kept = source if options.get("output") == "potentials" else {}
        if hasattr(inputs.get("cost"), "tocsr"):  # whose entries are those of the plan
            kept = {"cost": inputs["cost"]}
        return replace(made, home=replace(made.home, label_names=names, source=kept))
    if inputs.get("labels") is not None:
        raise ValueError(OF_ONE)
    _refuse_beside_lists(len(left), inputs, options)
    first = left[0]
    left, right = ([features.matched(first, one) for one in side] for side in (left, right))
    sizes = tuple((int(one.shape[0]), int(other.shape[0])) for one, other in zip(left, right, strict=True))
    joined = {
        name: np.concatenate([np.asarray(dense(name, given(one).value)) for one in value])
        if name in TOGETHER and isinstance(value, (list, tuple))
        else value
        for name, value in {**inputs, "x": left, "y": right}.items()
    }
    made = task("uot", {**joined, "sizes": np.array(sizes, np.int64)}, options)
    parts = tuple(_of_clouds(one, other) for one, other in zip(left, right, strict=True))
    kept = {**source, "x": left, "y": right} if options.get("output") == "potentials" else {}
    return replace(made, home=Home(given(first).bring, sizes=sizes, parts=parts, source=kept))


def _refuse_beside_lists(count: int, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse what the service has for one problem alone, in the words of who gave it. Raises ValueError."""
    if inputs.get("cost") is not None:
        raise ValueError("cost is given beside lists of clouds; expected either costs, or x and y")
    exact = options.get("method") == "exact"
    told = ["method exact"] if exact else []
    told += [name for name in ("mass", "mass_share") if options.get(name) is not None]
    told += ["marginals"] if options.get("marginals", "kl") not in (None, "kl") else []
    if told:
        also = ", or client.lap of them where all masses are equal" if exact else ""
        raise ValueError(
            f"{' and '.join(told)} is for one problem, and x and y are lists of {count}; expected a call for each, as "
            f"client.map makes them{also}"
        )


def _paired(x: Any, y: Any) -> tuple[list[Any] | None, list[Any] | None]:
    """The clouds of both sides where one of them is a list of such; one cloud stands beside each of a list."""
    left, right = clouds(x), clouds(y)
    left, right = left or without_points(x, right), right or without_points(y, left)
    if left is not None and right is None and y is not None:
        right = [y] * len(left) if _is_cloud(y) else []
    if right is not None and left is None and x is not None:
        left = [x] * len(right) if _is_cloud(x) else []
    if left is not None and right is not None and len(left) != len(right):
        raise ValueError(f"x has {len(left)} clouds and y has {len(right)}; expected as many, or one for all")
    return left, right


def _is_cloud(value: Any) -> bool:
    return len(value.shape if hasattr(value, "shape") else np.shape(value)) == 2


def _of_clouds(x: Any, y: Any) -> Home:
    one, other = given(x), given(y)
    return Home(one.bring, one.row_names, other.row_names)


def _column_of(labels: Any, y: Any) -> Any:
    """`labels`, or the column of the observations of an AnnData `y` that it names. Raises: ValueError."""
    if not isinstance(labels, str):
        return labels
    if labels in getattr(y, "obs", ()):
        return y.obs[labels]
    there = f"; y.obs has {', '.join(map(str, y.obs.columns)) or 'none'}" if hasattr(y, "obs") else ""
    raise ValueError(
        f"labels is the word {labels!r}; expected a label for each column, or of AnnData the name of a column of y.obs"
        f"{there}"
    )


def _coded(labels: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """What is sent of labels, and what it stands for. Raises ValueError for those of several problems."""
    if labels is None:
        return None, None
    if getattr(held(labels).value, "ndim", 2) != 1:
        raise ValueError(OF_ONE)
    return coded(labels)


def lap(cost: Any, options: Mapping[str, Any], others: Mapping[str, Any]) -> Task:
    """A linear assignment, or a batch where `cost` is a list of matrices of different sizes.

    `reject_rows` and `reject_cols` of a list are lists as well, of the prices of each problem's lines.
    """
    limit = options.get("cost_limit")
    if limit is not None and options.get("maximize"):
        raise ValueError("cost_limit is for costs, and maximize is set; give the negative of the benefits")
    if limit is not None and (isinstance(limit, str) or not -math.inf < limit < math.inf):
        raise ValueError(f"cost_limit is {limit!r}; expected a finite number")
    options, others = _started(options, others)
    kinds = framed.kinds_of(others.get("x"), others.get("y"))
    if cost is None and kinds is not None:
        return _of_frames([*others["x"]], [*others["y"]], options, others, kinds)
    left, right = _paired(others.get("x"), others.get("y"))
    if cost is None and left is not None and right is not None:
        return _of_frames(left, right, options, others)
    matrices = several(cost)
    if matrices is None:
        cost = without_rows(cost)
        if others.get("sizes") is None and others.get("x") is not None and others.get("y") is not None:
            x, y = beside(others["x"], others["y"], boxes.SIDES if options.get("metric") == "iou" else 1)
            others = {**others, "x": x, "y": y}
        if options.get("k_best") is not None:
            apart = listed(task("lap", {"cost": cost, **others}, {**options, "cost_limit": None}), limit)
            if apart is not None:
                return apart
        made = task("lap", {"cost": cost, **others}, options)
        if getattr(made.inputs.get("cost"), "shape", ())[:-2] == (0,):  # of no problems: JSON does not tell it of one
            return replace(made, home=replace(made.home, sizes=()))
        if others.get("sizes") is not None:
            return made
        priced = any(others.get(name) is not None for name in PRICES)
        if (priced or limit is not None) and framed.goes_alone(made.inputs.get("x"), made.inputs.get("y"), options):
            return replace(made, as_costs=lambda: written_out(made))
        sphere = options.get("metric") == "geodesic"
        none = any(isinstance(one := made.inputs.get(side), np.ndarray) and not len(one) for side in ("x", "y"))
        alone = priced or sphere or none or any(options.get(name) is not None for name in OF_A_MATRIX)
        return written_out(made) if alone else made
    return _of_matrices(matrices, options, others)


def _of_matrices(matrices: list[Any], options: Mapping[str, Any], others: Mapping[str, Any]) -> Task:
    """A batch of matrices of different sizes, one after the other."""
    forbidden = -math.inf if options.get("maximize") else math.inf
    problems = matrices
    if not all_plain(matrices):
        problems = [without_holes(np.asanyarray(dense("cost", given(one).value)), forbidden) for one in matrices]
    entries, sizes = laid_flat(problems, forbidden)
    made = task("lap", {"cost": entries, "sizes": sizes, **others, **_prices(others)}, options)
    return replace(made, home=Home(given(matrices[0]).bring, sizes=tuple(one.shape for one in problems)))


def _started(options: Mapping[str, Any], others: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """An answer to start from that came in one job with others, as its duals: the job is not about it alone."""
    earlier = options.get("warm_start")
    if not isinstance(earlier, LapResult) or "problem" not in earlier.certificate.facts:
        return options, others
    duals = {"u0": earlier.arrays.get("u"), "v0": earlier.arrays.get("v")}
    return {**options, "warm_start": None}, {**others, **duals}


def _of_frames(
    left: list[Any],
    right: list[Any],
    options: Mapping[str, Any],
    others: Mapping[str, Any],
    kinds: framed.Kinds | None = None,
) -> Task:
    """Lists of points, a problem each: as points where the service takes them, else as costs. Raises ValueError."""
    x, y, found = left, right, None
    if kinds is not None or {*map(type, left), *map(type, right)} == {np.ndarray}:
        found = framed.joined(x, y, options, kinds)
    if found is None and not (all_plain(left) and all_plain(right)):
        right = [features.matched(*pair) for pair in zip(left, right, strict=True)]
        sides = (("x", left), ("y", right))
        x, y = ([np.asarray(dense(name, given(one).value)) for one in side] for name, side in sides)
    rest = {name: value for name, value in others.items() if name not in ("x", "y")}

    def as_costs() -> Task:
        kept = {name: value for name, value in options.items() if name != "metric"}
        metric = options.get("metric", "sqeuclidean")
        if metric == "iou":
            return _of_matrices(boxes.distances(x, y), kept, rest)
        return _of_matrices([points.cost_matrix(*pair, metric) for pair in zip(x, y, strict=True)], kept, rest)

    found = framed.joined(x, y, options) if found is None else found
    if found is None:
        return as_costs()
    made = task("lap", {**rest, **found, **_prices(others)}, options)
    shapes = tuple(zip(*found["sizes"].T.tolist(), strict=True))
    return replace(made, home=Home(sizes=shapes), as_costs=as_costs)


def _prices(others: Mapping[str, Any]) -> dict[str, Any]:
    """Prices of all problems' lines, by side."""
    return {name: _joined(others[name]) for name in PRICES if others.get(name) is not None}


def _joined(prices: Any) -> Any:
    """Prices of each problem's lines, one after the other; what is no list of them stays as it is."""
    if not isinstance(prices, (list, tuple)) or not any(hasattr(one, "__len__") for one in prices):
        return prices
    return np.concatenate([np.asarray(given(one).value).reshape(-1) for one in prices])


def of(solver: str, inputs: Any, options: Mapping[str, Any]) -> Task:
    """A job of any solver from its inputs by name, or a file of QAPLIB, with what `lap` does for lists of matrices."""
    if isinstance(inputs, (str, os.PathLike)):
        inputs = {"qaplib": inputs}
    if not isinstance(inputs, Mapping):
        found = type(inputs).__name__
        raise TypeError(f'inputs is a {found}; expected inputs by name, as {{"cost": cost}}, or a QAPLIB file')
    if solver == "uot":
        return transport(inputs, options)
    if solver != "lap":
        return _placed(task(solver, inputs, options))
    others = dict(inputs)
    return lap(others.pop("cost", None), options, others)


def quadratic(flow: Any, distance: Any, others: Mapping[str, Any], options: Mapping[str, Any]) -> Task:
    """A quadratic assignment from matrices, or from a QAPLIB file when `flow` is a path and there is no distance.

    Raises:
        ValueError: one matrix alone, or a name in `fixed` that no matrix has.
    """
    if distance is None:
        if not isinstance(flow, (str, os.PathLike)):
            raise ValueError("distance is missing; expected flow and distance, or the path of a QAPLIB file")
        return task("qap", {"qaplib": flow, **others}, options)
    return _placed(task("qap", {"flow": flow, "distance": distance, **others}, options))


def _placed(made: Task) -> Task:
    """A quadratic assignment whose option `fixed` has numbers where it had names. Raises ValueError."""
    fixed, (rows, columns) = made.job.get("options", {}).get("fixed"), (made.home.row_names, made.home.column_names)
    if not isinstance(fixed, Mapping) or rows is None or columns is None:
        return made
    by_place = {_place("flow", one, rows): _place("distance", other, columns) for one, other in fixed.items()}
    return replace(made, job={**made.job, "options": {**made.job["options"], "fixed": by_place}})


def _place(matrix: str, line: Any, names: tuple[Any, ...]) -> Any:
    """The number of a line, which may be given by its name."""
    if isinstance(line, Integral):
        return int(line)
    if line not in names:
        known = ", ".join(map(str, names[:5]))
        raise ValueError(f"fixed names {line!r}, which is no line of {matrix}; these begin with {known}")
    return names.index(line)


def to_upload(array: Any) -> list[bodies.Piece]:
    """The bytes of one array that is sent before its job. Raises TypeError."""
    value = given(array).value
    if isinstance(value, Sparse):
        raise TypeError("sparse matrices are sent with their job; upload indptr, indices and values one by one")
    return bodies.npy_pieces(value)
