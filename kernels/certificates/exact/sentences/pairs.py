"""Sentences of assignments and auctions."""

import numpy as np

from kernels.certificates.exact import rejecting, selected
from kernels.certificates.exact.auction import benefits
from kernels.certificates.exact.sentences.asked import COUNT, Asked
from kernels.problems.arrays import Csr

WHOLE, ROUNDED = "in exact integers", "without rounding but of the last sums, outward"
ON_DEVICE = "with exact minima, and sums rounded outward"


def of_lap(asked: Asked) -> list[str]:
    """Those of assignments of every kind."""
    if asked.options.get("k_best") is not None:
        return _violators(asked) if asked.claim.termination == "infeasible" else _ranked(asked)
    if selected.is_selected(asked.options):
        return _selected(asked)
    if rejecting.is_priced(asked.inputs, asked.options):
        return _rejecting(asked)
    found = [f"{claim}, recomputed {how}" for claim in _claims(asked) for how in _arithmetic(asked, "cost")]
    if "x" in asked.inputs:
        metric = asked.options.get("metric", "sqeuclidean")
        how = f"costs of the given points worked out to within 2^-90 of their size where they decide ({metric})"
        return [f"{one}; {how}" for one in found]
    return _with_violators(asked, found)


def _with_violators(asked: Asked, found: list[str]) -> list[str]:
    """What is said of the problems that have an answer, and of those that have none."""
    words = [asked.claim.termination] if asked.listed is None else asked.listed["terminations"]
    if "infeasible" not in words:
        return found
    none = _violators(asked)
    return none if set(words) == {"infeasible"} else [f"{one}; {more}" for one in found for more in none]


def _arithmetic(asked: Asked, *names: str) -> list[str]:
    """Whole numbers may be checked without any rounding; rounding may be told of them too."""
    whole = asked.whole(*names) and "x" not in asked.inputs
    return [one for how in ([WHOLE] if whole else [ROUNDED]) for one in (how, f"on the device {how}")] + (
        [] if whole else [f"on the device {ON_DEVICE}"]
    )


def _claims(asked: Asked) -> list[str]:
    """What is said before the arithmetic, by the words of all problems and the pairs that are missing."""
    listed = asked.listed
    words = {asked.claim.termination} if listed is None else set(listed["terminations"])
    missing = _missing(asked)
    if listed is not None and "infeasible" in words:  # which count in the facts, and not in the sentence
        return ["a valid pairing and a dual bound", f"a valid pairing with {COUNT} pairs missing, and a dual bound"]
    if missing != "0":
        return [f"a valid pairing with {missing} pairs missing, and a dual bound"]
    return ["optimal by duals" if words <= {"optimal"} else "a valid pairing and a dual bound"]


def _missing(asked: Asked) -> str:
    """How many pairs are missing; what the facts say where problems differ in size."""
    assignment = asked.claim.arrays.get("assignment")
    if assignment is None or asked.listed is not None:
        return str(asked.claim.facts.get("unassigned", 0))
    shape = (len(asked.array("x")), len(asked.array("y"))) if "x" in asked.inputs else asked.array("cost").shape
    return str(min(shape) - int((assignment >= 0).sum()))


def _violators(asked: Asked) -> list[str]:
    """Rows with too few columns; of several problems the first one's counts are any."""
    if asked.listed is not None:
        count = asked.listed["terminations"].count("infeasible")
        one = f"problem {COUNT}: infeasible: {COUNT} rows have permitted entries in {COUNT} columns only"
        spare = f"{one}, and at most {COUNT} rows may stay unassigned"
        return [both + (f", and {count - 1} more" if count > 1 else "") for both in (one, spare)]
    rows, columns = (len(set(asked.claim.arrays[name].tolist())) for name in ("hall_rows", "hall_cols"))
    n_rows, n_cols = asked.array("cost").shape[-2:]
    spare = n_rows - min(n_rows, n_cols)
    found = f"infeasible: {rows} rows have permitted entries in {columns} columns only"
    return [found + (f", and at most {spare} rows may stay unassigned" if spare else "")]


def _ranked(asked: Asked) -> list[str]:
    how = "in exact integers" if asked.whole("cost") else "without rounding but of differences and last sums, outward"
    last = asked.claim.facts.get("others_bound")
    many = len(asked.claim.arrays["assignments"])
    ends = ["there is no other assignment"] if last is None else [
        f"no other assignment is beyond {one}" for one in (last, -0.0 if last == 0 else last)
    ]  # fmt: skip
    return [f"{many} different assignments in order; {end}, by duals of the parts, recomputed {how}" for end in ends]


def _selected(asked: Asked) -> list[str]:
    shape = asked.array("cost").shape
    wanted = asked.options.get("cardinality")
    count = min(shape) if wanted is None else int(wanted)
    if asked.claim.termination == "infeasible":
        rows, columns = (len(set(asked.claim.arrays[name].tolist())) for name in ("hall_rows", "hall_cols"))
        start = f"infeasible: {rows} rows have permitted entries in {columns} columns only, "
        return [f"{start}so that {count} pairs cannot be formed"]
    how = "in exact integers" if asked.whole("cost") else ROUNDED
    bottleneck = asked.options.get("objective", "sum") == "bottleneck"
    kind = "rows and columns that need a larger cost" if bottleneck else "duals"
    pairs = int((asked.claim.arrays["assignment"] >= 0).sum())
    start = f"optimal by {kind}" if asked.claim.optimal else f"{pairs} valid pairs and a bound by {kind}"
    return [f"{start}, recomputed {how}"]


def _rejecting(asked: Asked) -> list[str]:
    whole = "x" not in asked.inputs and asked.whole("cost", "reject_rows", "reject_columns", "reject")
    left = asked.claim.facts.get("left", COUNT)
    found = []
    for claim in _claims_of_priced(asked):
        found += [
            f"{claim}, {left} rows and columns left at their prices, recomputed {how}"
            for how in ([WHOLE] if whole else [ROUNDED, WHOLE])
        ]
    if "x" in asked.inputs:
        costs = "costs of the given points in float64, each step rounded to nearest"
        return [f"{one}; {costs} ({asked.options.get('metric') or 'sqeuclidean'})" for one in found]
    return _with_violators(asked, found)


def _claims_of_priced(asked: Asked) -> list[str]:
    missing = asked.claim.facts.get("unassigned", 0)
    if asked.listed is not None and "infeasible" in asked.listed["terminations"]:
        return ["a valid pairing and a dual bound", f"a valid pairing with {COUNT} pairs missing, and a dual bound"]
    if missing:
        return [f"a valid pairing with {missing} pairs missing, and a dual bound"]
    words = {asked.claim.termination} if asked.listed is None else set(asked.listed["terminations"])
    return ["optimal by duals" if words <= {"optimal"} else "a valid pairing and a dual bound"]


def of_auction(asked: Asked) -> list[str]:
    """Those of auctions: graphs, matrices and points."""
    claim, names = asked.claim, asked.claim.arrays.get("neighbours")
    found = [_edges(asked)] if claim.termination == "infeasible" else _by_prices(asked)
    if names is None:
        return found
    rows, k = names.shape
    checked = claim.facts.get("neighbours_compared")
    how = "all rows" if checked == rows else f"{checked} of {rows} rows"
    note = f"on the graph of the {k} neighbours named for every row (the nearest, compared for {how})"
    if checked is None:
        note = f"on the graph of the named neighbours, which for {COUNT} of {COUNT} rows are not the nearest"
    return [f"{note}: {one}" for one in found]


def _edges(asked: Asked) -> str:
    rows = set(asked.claim.arrays["hall_rows"].tolist())
    of_rows = benefits(asked.inputs, dict(asked.options), asked.claim)[0]
    benefit = asked.inputs.get("benefit")
    columns = {j for i in rows for j in of_rows[i]}
    if isinstance(benefit, Csr):  # an edge is one whatever it earns
        columns = {int(j) for i in rows for j in benefit.indices[benefit.indptr[i] : benefit.indptr[i + 1]]}
    return f"infeasible: {len(rows)} rows (hall_rows) have edges to {len(columns)} columns only"


def _by_prices(asked: Asked) -> list[str]:
    claim, gap = asked.claim, asked.claim.gap_abs
    assignment = claim.arrays["assignment"]
    n_rows = len(assignment)
    free = "reject" in asked.inputs or bool(asked.options.get("allow_unassigned"))
    missing = 0 if free else int((assignment < 0).sum())
    whole = asked.whole("benefit", "reject") and "x" not in asked.inputs
    epsilon = claim.facts.get("epsilon")
    within = n_rows * (epsilon if isinstance(epsilon, int | float) else 0)
    reached = f"within n_rows * epsilon = {within:g} of optimal: the prices prove a gap of {gap}"
    device = "recomputed on the device " + ("in exact integers" if whole else "and rounded up")
    if claim.optimal:
        found = [f"optimal: the prices prove a gap of {gap}, {device}"]
        if whole:
            found.append("optimal exactly, in integers: the prices' dual bound meets the objective")
        if gap is not None:  # integers too, where they are beyond what float64 tells apart
            found += _of_rounding(asked, float(gap))
    elif claim.termination == "gap_reached":
        found = [reached, f"{reached}, {device}"]
        if whole and gap == 0:
            found.append("optimal: no integer lies between the objective and the prices' dual bound")
    else:
        bounded = "the prices bound the optimum from above"
        found = [bounded, f"{bounded}, {device}", f"not proved optimal: the prices prove a gap of {gap}"]
    if missing:
        return [f"{missing} of {n_rows} rows are unassigned; {one}" for one in found]
    if claim.bound is None:
        return [f"a row has no entry, so that prices bound nothing; {one}" for one in found]
    return found


def _of_rounding(asked: Asked, gap: float) -> list[str]:
    """The sentence with the allowance that it states, where that covers the gap and no more than rounding could be."""
    start = f"optimal to float64 rounding: the prices prove a gap of {gap:.3g}, where rounding allows "
    end = "; the bound is rounded up"
    stated = asked.claim.proved.partition(start)[2].removesuffix(end)
    try:
        allowed = float(stated)
    except ValueError:
        allowed = -1.0
    given = (asked.claim.arrays["prices"], asked.array("benefit"), asked.array("reject"))
    prices = [one.astype(np.float64) for one in given]  # sums of integers may overflow
    sizes = [abs(one[np.isfinite(one)]).sum() for one in prices]
    points = [abs(asked.array(name).astype(np.float64)).sum() for name in "xy"]
    most = 2.0**-40 * (float(sum(sizes)) + (1 + float(sum(points))) ** 2)
    covered = stated == f"{allowed:.3g}" and float(f"{gap:.3g}") <= allowed <= most
    return [start + stated + end] if covered else []
