"""Sentences of quadratic assignment, Gromov-Wasserstein, low rank, barycenters and transport among three measures."""

import math

import numpy as np

from kernels.certificates.exact.sentences.asked import Asked
from kernels.certificates.exact.statement import permitted as may

OF_QAP = ("gilmore-lawler", "gilmore-lawler by columns", "projection", "rlt1", "sdp", "enumeration", "branch and bound")
OF_GROMOV = ("third, by rows", "third, by columns", "projection", "nothing is negative")
UNCHECKED = "the solver's branch and bound says optimal"
EVERY, LEVEL = "every permutation was priced", "lower bound: level-1 reformulation, from its multipliers"
MOST_PAIRS = 1 << 30


def of_qap(asked: Asked) -> list[str]:
    """Bounds that were checked by name, and what is said of a tree.

    Permutations are those of all locations: facilities without flow or cost stand in where fewer were given.
    """
    claim, n = asked.claim, len(asked.array("distance"))
    if claim.termination == "infeasible":
        return [*_few_places(asked), "infeasible: every permutation uses a forbidden pair"]
    found = [] if claim.bound is not None else ["no bound"]
    start = "optimal: meets the lower bound" if asked.proved else "lower bound:"
    for name in asked.best_bounds(OF_QAP):
        if name == "enumeration":
            every = f"the least of all permutations of {n} ({math.factorial(n)}), priced in exact integers"
            found.append(f"{'optimal' if asked.proved else 'lower bound'}: {every}")
        elif name == "sdp":
            how = "recomputed in exact integers but for one eigenvalue, which a float64 factorisation bounds"
            found.append(f"{start} sdp, {how}")
        else:
            ways = ["float64, rounded down"] if name == "projection" else ["exact integers", "float64, rounded down"]
            found += [f"{start} {name}, recomputed in {way}" for way in ways]
    tree = claim.facts.get("tree")
    told = tree if isinstance(tree, dict) else {}
    leaves = told.get("leaves")
    if asked.proved and leaves is not None and "sampled" not in told:
        found.append(
            f"optimal: a tree covers every permutation, and each of its {leaves} leaves was proved in integers"
        )
    some = f"its tree covers every permutation, and {told.get('sampled')} of {leaves} leaves, sampled, were proved"
    if "sampled" in told:
        return [f"{one}; {more}" for one in found for more in (f"{UNCHECKED}: {some}", some)]
    if claim.optimal and not asked.proved:
        return [f"{one}; {UNCHECKED}, which is not checked here" for one in found]
    return found


def _few_places(asked: Asked) -> list[str]:
    rows = asked.claim.arrays.get("hall_rows")
    if rows is None or not rows.size:
        return []
    permitted = np.ones((len(asked.array("distance")),) * 2, bool)
    if "linear" in asked.inputs:  # of the facilities that were given; all others may go anywhere
        linear = asked.array("linear")
        permitted[: len(linear)] = [[may(one) for one in row] for row in linear]
    for facility, place in (asked.options.get("fixed") or {}).items():
        permitted[int(facility)] &= np.arange(len(permitted)) == place
        permitted[:, place] &= np.arange(len(permitted)) == int(facility)
    places = int(permitted[rows].any(axis=0).sum())
    return [f"infeasible: {rows.size} facilities are permitted at {places} locations only"]


def of_lawler(asked: Asked) -> list[str]:
    """That every permutation was priced, or the level-1 reformulation."""
    said = "optimal: " if asked.proved else ""
    facilities = asked.array("cost").shape[0]
    free = facilities - len(asked.options.get("fixed") or {})
    ways = (EVERY,) if free <= 8 else (LEVEL,)
    return [f"{said}a permutation, and its objective, recomputed; {how}" for how in ways]


def of_gromov(asked: Asked) -> list[str]:
    """The largest of the bounds by name."""
    start = "optimal: meets the" if asked.proved else "a coupling, and a"
    names = asked.best_bounds(OF_GROMOV)
    return [f"{start} lower bound: {name}, in float64 rounded outward" for name in names] or ["a known lower bound"]


def of_lowrank(asked: Asked) -> list[str]:
    """With a bound, or none where there are too many pairs."""
    if asked.claim.bound is None:
        m, n = (len(asked.array(name)) for name in "xy")
        why = f"no lower bound, since {m} x {n} pairs are more than the {MOST_PAIRS} that one is worked out for"
        return [f"a coupling of that rank, and its objective, rounded outward; {why}"]
    what = "a coupling of that rank; the gap has in it what the rank costs"
    what = "optimal: no coupling of any rank is better" if asked.proved else what
    return [f"{what}. Lower bound: optimal transport by potentials, rounded outward"]


def of_barycenter(asked: Asked) -> list[str]:
    """By the kind of barycenter: its points move, it is debiased, or with and without an entropic term."""
    sides = "violation = largest L1 distance of a plan's sides"
    if "points" in asked.claim.arrays:
        return [
            "objective = cost of the returned plans to the returned points; bound = sum over pairs of w_k w_l times a"
            " lower bound on the transport between two measures, below every barycenter's cost; both rounded to the"
            f" weak side; the problem is not convex, so the gap need not close; {sides}"
        ]
    sides += " from the barycenter and a measure"
    if asked.options.get("debiased"):
        return [
            "objective = value of plans made from the potentials and repaired, less half of a lower bound on the"
            " transport of the barycenter to itself, rounded up; there is no bound: the problem is a difference, and"
            f" potentials bound its parts from one side only; {sides}"
        ]
    if asked.options.get("method") == "exact" or asked.options.get("reg") == 0:
        objective = "objective = cost of the returned plans, repaired to the barycenter's sides"
        bound = "bound = sum w_k sum_j a_kj min_i (c_ij - f_ki) + min_i sum_k w_k f_ki, below every barycenter's cost"
    else:
        objective = "objective = value of plans made from the potentials and repaired to the barycenter's sides"
        bound = "bound = sum w_k (<g_k, a_k> - reg (Z_k - 1)) + min_i sum_k w_k f_ki, below every barycenter's value"
    return [f"{objective}; {bound}; both rounded to the weak side; {sides}"]


def of_multimarginal(asked: Asked) -> list[str]:
    """With and without an entropic term."""
    if asked.options.get("reg", "auto") == 0 or asked.options.get("method") == "exact":
        return [
            "objective = cost of the returned plan, repaired to have the marginals exactly, rounded up; bound = <f, a>"
            " + <g, b> + <h, c> + min (C - f - g - h), which no plan goes below, rounded down; violation = L1 distance"
            " of the plan's marginals from the masses"
        ]
    return [
        "objective = value of the plan of the potentials, repaired to have the marginals exactly, rounded up; bound ="
        " <f, a> + <g, b> + <h, c> - reg log Z, which no plan goes below, rounded down; both in float64 with proved"
        " errors; violation = the mass that the repair adds"
    ]
