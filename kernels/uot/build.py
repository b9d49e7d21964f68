"""From inputs and options to a problem: one, a batch of one shape, or several of their own sizes and strengths."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.problems import Inputs, InvalidProblem, UnbalancedTransport
from kernels.problems.arrays import Floats, Reals, finite, numeric
from kernels.problems.exact_transport import ExactTransport, exact_transport
from kernels.problems.made import MANY, PROBLEM, make
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.several import Form, SeveralTransports
from kernels.problems.sparse_transport import SparseTransport
from kernels.problems.stacks import clouds, matrices
from kernels.problems.transport import METRICS, transport
from kernels.problems.worked_out import WORKED_OUT, worked_out
from kernels.uot.strengths import number, settled, strengths_of

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

Entropic = UnbalancedTransport | SeveralTransports
Transport = Entropic | ExactTransport | MarginalTransport | SparseTransport
LARGEST_PLAN = 1 << 31  # entries; more are worked out from the potentials where they are needed
OF_DIVERGENCE = ("cost_xx", "cost_yy")
"""Inputs: the costs of each side with itself."""
MOST_LABELS = 1 << 14
SIDE = 64
"""Rows and columns of the corner from which a stand-in takes its scale."""
AT_ONCE = ("x", "y", "a", "b", "f0", "g0")
"""Inputs whose lines follow one another where sizes are given: of rows and of columns in turn."""


def build(inputs: Inputs, options: "TransportOptions") -> Entropic | ExactTransport:
    """The problem of a job whose marginals are exact, or held by KL.

    Raises:
        InvalidProblem: names the input or option that is wrong and what was expected.
    """
    if options.method == "exact":
        return _without_entropy(inputs, options)
    _check_divergence(inputs, options)
    if options.barycentric and (options.metric in WORKED_OUT or "x" not in inputs):
        raise InvalidProblem("barycentric", f"needs points of a metric among {', '.join(METRICS)}; expected x and y")
    if options.metric in WORKED_OUT and "x" in inputs and "y" in inputs:
        return _labelled(_within(_of_costs(inputs, options), options), inputs)
    return _labelled(_within(_built(inputs, options), options), inputs)


def _labelled(problem: Entropic, inputs: Inputs) -> Entropic:
    """The problem with what its columns are known as."""
    if "labels" not in inputs:
        return problem
    if not isinstance(problem, UnbalancedTransport) or problem.batch is not None:
        raise InvalidProblem("labels", "are given for several problems, or a divergence; expected one problem")
    given, n = inputs["labels"], problem.shape[1]
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "iu" or given.shape != (n,):
        shape = given.shape if isinstance(given, np.ndarray) else "a sparse matrix"
        raise InvalidProblem("labels", f"is {shape}; expected a whole number for each column, ({n},)")
    if int(given.min()) < 0 or int(given.max()) >= min(n, MOST_LABELS):
        most = min(n, MOST_LABELS) - 1
        raise InvalidProblem("labels", f"has {given.min()} to {given.max()}; expected whole numbers from 0 to {most}")
    return replace(problem, labels=given.astype(np.int64))


def _within(problem: Entropic, options: "TransportOptions") -> Entropic:
    """The problem, where its plan can be returned."""
    entries = sum(m * n for m, n in (part.shape for part in parts_of(problem)))
    if options.output == "plan" and entries > LARGEST_PLAN:
        m, n = problem.shape
        raise InvalidProblem(
            "output", f"is plan, and a plan of {m} x {n} has more than 2^31 entries; expected potentials, with top_k"
        )
    return problem


def _of_costs(inputs: Inputs, options: "TransportOptions") -> Entropic:
    """A problem of costs that are worked out from its points."""
    told = {"costs": "worked out in float64"}
    exact = options.model_copy(update={"metric": "sqeuclidean"})
    if "sizes" in inputs:
        each = [with_costs(one, options) for one in _cut(inputs)]
        found = _several(each, inputs, exact, "flat")
        return replace(found, parts=tuple(replace(part, told={**part.told, **told}) for part in found.parts))
    problem = _built(with_costs(inputs, options), exact)
    if isinstance(problem, SeveralTransports):
        return replace(problem, parts=tuple(replace(part, told={**part.told, **told}) for part in problem.parts))
    return replace(problem, told={**problem.told, **told})


def with_costs(inputs: Inputs, options: "TransportOptions") -> dict[str, Any]:
    """The inputs with costs in place of points; for a divergence those of each side with itself too."""
    sides = {"cost": ("x", "y")} | ({"cost_xx": ("x", "x"), "cost_yy": ("y", "y")} if options.divergence else {})
    for name in sides:
        if name in inputs:
            raise InvalidProblem(name, "is given beside x or y; expected either costs or two point clouds")
    found = {name: value for name, value in inputs.items() if name not in ("x", "y")}
    costs = {name: _costs(inputs, left, right, options.metric) for name, (left, right) in sides.items()}
    return found | costs


def _costs(inputs: Inputs, left: str, right: str, metric: str) -> Floats:
    clouds = []
    for name in (left, right):
        given = inputs[name]
        if not isinstance(given, np.ndarray):
            raise InvalidProblem(name, "is sparse; expected a dense array")
        clouds.append(finite(name, numeric(name, given, ndim=(2,)), allow=None))
    if clouds[0].shape[1] != clouds[1].shape[1]:
        told = f"has points of dimension {clouds[1].shape[1]}"
        raise InvalidProblem(right, f"{told}; expected {clouds[0].shape[1]}, as in {left}")
    return worked_out(clouds[0], clouds[1], metric)


def _without_entropy(inputs: Inputs, options: "TransportOptions") -> ExactTransport:
    """A problem for method exact, which takes no option of the entropic one."""
    for name, wrong, wanted_ in (
        ("reg", options.reg != "auto", "it left out"),
        ("reg_scale", options.reg_scale != "none", "it left out"),
        ("reg_m", any(one not in ("auto", float("inf")) for one in options.strengths), '"inf"'),
        ("divergence", options.divergence, "false"),
        ("top_k", options.top_k > 0, "0"),
        ("gradients", options.gradients, "false"),
        ("barycentric", options.barycentric, "false"),
    ):
        if wrong:
            raise InvalidProblem(name, f"is {getattr(options, name)} with method exact; expected {wanted_}")
    for name in inputs:
        if name not in ("cost", "x", "y", "a", "b"):
            raise InvalidProblem(name, "is given with method exact; expected one problem: cost, or x and y; a and b")
    cost = inputs.get("cost")
    if isinstance(cost, np.ndarray) and cost.ndim == 3:
        wanted_ = "expected one matrix: a job for each, or `lap` of the batch where all masses are equal"
        raise InvalidProblem("cost", f"is a batch of shape {cost.shape} with method exact; {wanted_}")
    return exact_transport(inputs, options.metric)


def parts_of(problem: Entropic) -> tuple[UnbalancedTransport, ...]:
    """The problems, or the batch, of which a problem is made."""
    return problem.parts if isinstance(problem, SeveralTransports) else (problem,)


def _built(inputs: Inputs, options: "TransportOptions") -> Entropic:
    cost = inputs.get("cost")
    if "sizes" in inputs:
        return _several(_cut(inputs), inputs, options, "flat")
    batch = isinstance(cost, np.ndarray) and cost.ndim == 3
    if options.divergence and not batch:
        return _several([dict(inputs)], inputs, options, "one")
    own = options.reg == "auto" or "auto" in options.strengths or options.reg_scale != "none"
    if batch and (own or options.divergence or "regs" in inputs or "regs_m" in inputs):
        whole = _checked(inputs)
        return _several(_stacked(whole, inputs), inputs, options, "stack", whole)
    for name in ("regs", "regs_m"):
        if name in inputs:
            raise InvalidProblem(name, "is given for one problem; expected a batch of costs, or points with sizes")
    return _one(inputs, options, options.reg, options.strengths)


def _one(inputs: Inputs, options: "TransportOptions", reg: Any, reg_m: Any) -> UnbalancedTransport:
    """A problem, or a batch with the same strengths, which are numbers or auto."""

    def settle(problem: UnbalancedTransport) -> UnbalancedTransport:
        return settled(problem, reg, reg_m, options.reg_scale)

    return transport(
        inputs,
        reg=1.0 if reg == "auto" else reg,
        reg_m=(number(reg_m[0]), number(reg_m[1])),
        metric=options.metric,
        reference=options.reference,
        settle=settle,
    )


def outlined(problem: UnbalancedTransport, corner: Reals, options: "TransportOptions") -> UnbalancedTransport:
    """A stand-in with about the strengths that the problem will have."""
    return settled(problem, options.reg, options.strengths, options.reg_scale, corner)


def _several(
    each: list[dict[str, Any]],
    inputs: Inputs,
    options: "TransportOptions",
    form: Form,
    whole: UnbalancedTransport | None = None,
) -> SeveralTransports:
    make(min(MANY, PROBLEM * len(each) * (3 if options.divergence else 1)))
    strengths = strengths_of(inputs, len(each), options)
    parts = _at_once(each, inputs, options, strengths, whole) or tuple(
        _named(k, one, options, reg, reg_m) for k, (one, (reg, reg_m)) in enumerate(zip(each, strengths, strict=True))
    )
    if not options.divergence:
        return SeveralTransports(parts, form)
    with_themselves = [
        tuple(_with_itself(part, one, side) for part, one in zip(parts, each, strict=True)) for side in (0, 1)
    ]
    return SeveralTransports((*parts, *with_themselves[0], *with_themselves[1]), form, True)


def _at_once(
    each: list[dict[str, Any]],
    inputs: Inputs,
    options: "TransportOptions",
    strengths: list[tuple[Any, Any]],
    whole: UnbalancedTransport | None,
) -> tuple[UnbalancedTransport, ...] | None:
    """Problems of points, or of the `whole` batch of costs, looked through together; None where one is wrong."""
    if whole is None and any(getattr(each[0].get(name), "ndim", None) != 2 for name in ("x", "y")):
        return None
    kinds = {(reg, reg_m): (number(reg), (number(reg_m[0]), number(reg_m[1]))) for reg, reg_m in set(strengths)}
    numbers = [kinds[one] for one in strengths]  # mostly all the same
    left = options.reg_scale != "none" or any("auto" in (reg, *reg_m) for reg, reg_m in kinds)

    def settle(k: int, part: UnbalancedTransport) -> UnbalancedTransport:
        return settled(part, *strengths[k], options.reg_scale)

    how = numbers, options.metric, options.reference, settle if left else None
    if whole is not None:
        return matrices(whole, *how)
    return clouds(inputs, [(len(one["x"]), len(one["y"])) for one in each], *how)


def _check_divergence(inputs: Inputs, options: "TransportOptions") -> None:
    if not options.divergence:
        for name in OF_DIVERGENCE:
            if name in inputs:
                raise InvalidProblem(name, "is given without the option divergence; expected cost alone")
        return
    if options.reference != "product":
        raise InvalidProblem("divergence", "is asked for with the uniform reference; expected product")
    for name in OF_DIVERGENCE:
        if "cost" in inputs and name not in inputs:
            raise InvalidProblem(name, "is missing; a divergence of costs needs cost, cost_xx and cost_yy")


def _with_itself(between: UnbalancedTransport, inputs: dict[str, Any], side: int) -> UnbalancedTransport:
    """One side of a problem against itself, with the problem's strengths."""
    if between.reg_m[0] != between.reg_m[1]:
        raise InvalidProblem("reg_m", f"is {between.reg_m}; expected the same on both sides for a divergence")
    mass = (between.a, between.b)[side]
    if between.cost is None:
        points = (between.x, between.y)[side]
        assert points is not None
        geometry: dict[str, Any] = {"x": points, "y": points}
    else:
        geometry = {"cost": inputs[OF_DIVERGENCE[side]]}
        if np.shape(geometry["cost"]) != (mass.size, mass.size):
            name, shape = OF_DIVERGENCE[side], np.shape(geometry["cost"])
            raise InvalidProblem(name, f"has shape {shape}; expected {(mass.size, mass.size)}")
    masses = {"a": mass, "b": mass}
    found = transport(geometry | masses, reg=between.reg, reg_m=between.reg_m, metric=between.metric)
    return replace(found, told=between.told)


def _named(k: int, inputs: Inputs, options: "TransportOptions", reg: Any, reg_m: Any) -> UnbalancedTransport:
    try:
        return _one(inputs, options, reg, reg_m)
    except InvalidProblem as wrong:
        raise InvalidProblem(wrong.field, f"of problem {k} {wrong.message}") from wrong


def _cut(inputs: Inputs) -> list[dict[str, Any]]:
    """The inputs of each problem, of points whose lines follow one another."""
    if "cost" in inputs:
        raise InvalidProblem(
            "sizes", "is given beside cost; expected points x and y, or a batch of costs without sizes"
        )
    sizes = inputs["sizes"]
    if not isinstance(sizes, np.ndarray) or sizes.ndim != 2 or sizes.shape[1] != 2 or sizes.dtype.kind not in "iu":
        shape = getattr(sizes, "shape", None)
        raise InvalidProblem("sizes", f"has shape {shape}; expected (batch, 2) integers: rows and columns")
    if not sizes.size or (sizes < 1).any() or (sizes > np.iinfo(np.int64).max // max(1, sizes.size)).any():
        raise InvalidProblem("sizes", "holds a size below 1, or nothing; expected rows and columns of each problem")
    sizes = sizes.astype(np.int64)  # less unsigned ones would leave floats
    ends = np.cumsum(sizes, axis=0)
    starts = ends - sizes
    for name in AT_ONCE:
        lines = (*getattr(inputs.get(name), "shape", ()), None)[0]
        wanted = int(ends[-1, _side(name)])
        if name in inputs and lines != wanted:
            raise InvalidProblem(name, f"has {lines} lines; expected {wanted}, the sum of sizes")
    cut = {
        name: _pieces(inputs[name], starts[:, _side(name)].tolist(), ends[:, _side(name)].tolist())
        for name in AT_ONCE
        if name in inputs
    }
    return [{name: pieces[k] for name, pieces in cut.items()} for k in range(len(sizes))]


def _side(name: str) -> int:
    return int(name in ("y", "b", "g0"))


def _pieces(value: Any, starts: list[int], ends: list[int]) -> list[Any]:
    if not isinstance(value, np.ndarray):
        return [value] * len(starts)
    return [value[start:end] for start, end in zip(starts, ends, strict=True)]


def _checked(inputs: Inputs) -> UnbalancedTransport:
    """A batch of costs, looked through together, so that masses for all of them may be given once; of any strengths."""
    beside = [name for name in OF_DIVERGENCE if name in inputs]
    for name in beside:
        if len(np.shape(inputs[name])) != 3 or np.shape(inputs[name])[0] != np.shape(inputs["cost"])[0]:
            raise InvalidProblem(name, f"has shape {np.shape(inputs[name])}; expected one matrix for each problem")
    free = {name: value for name, value in inputs.items() if name not in ("regs", "regs_m", *beside)}
    return transport(free, reg=1.0, reg_m=(1.0, 1.0), in_range=False)


def _stacked(whole: UnbalancedTransport, inputs: Inputs) -> list[dict[str, Any]]:
    """The inputs of each problem of a batch."""
    arrays = {name: getattr(whole, name) for name in ("a", "b", "cost", "f0", "g0")}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    arrays |= {name: inputs[name] for name in OF_DIVERGENCE if name in inputs}
    return [{name: array[k] for name, array in arrays.items()} for k in range(whole.batch or 0)]
