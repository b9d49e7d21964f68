"""An answer in plain words: how far it can be from the best possible, and whether that is proved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from allot_client.layouts import placed
from allot_client.results import Result

SMALLEST_SHARE = Fraction(1, 10_000)
"""In percent: smaller ones are rounded up to it."""
SHOWN_PAIRS = 20
SHOWN_ENTRIES = 20
FOR_PROGRAMS = ("tree",)
"""Arrays that no person reads: the proof of a layout."""
SHORT_OF = {"hall_rows": "row_names", "hall_cols": "column_names", "hall_columns": "column_names"}
"""Arrays that name the lines of which there are too few, by what these are called."""
BEST = "the best possible"


def maximizes(solver: str, options: Mapping[str, Any]) -> bool:
    """Whether the objective is to be large: an auction's benefit is."""
    return solver == "auction" or bool(options.get("maximize"))


def distance_to_best(objective: float | None, bound: float | None, maximize: bool) -> str:
    """ "the best possible", "within 0.34% of the best possible", or that nothing is known.

    The share is (objective - bound) / |bound|, rounded up. Where objective and bound have one sign it is at least
    (objective - best) / |best|, whichever best lies between them. Where 0 lies between them there is no such share, and
    the distance itself is given.
    """
    if objective is None or bound is None or not (math.isfinite(objective) and math.isfinite(bound)):
        return "how far from the best possible is not known"
    found, limit = Fraction(objective), Fraction(bound)
    away = limit - found if maximize else found - limit
    if away < 0:
        return "beyond its own bound"
    if away == 0:
        return BEST
    if found * limit <= 0:
        return f"within {_up(away)} of the best possible"
    return f"within {_up(max(SMALLEST_SHARE, 100 * away / abs(limit)))}% of the best possible"


def _up(value: Fraction) -> str:
    """Two leading digits, three from 10 on, rounded up."""
    context = Context(prec=2 if value < 10 else 3, rounding=ROUND_CEILING)
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded:f}" if SMALLEST_SHARE <= rounded < 10**15 else f"{rounded:e}"


def gap_in_words(result: Result) -> str:
    """As "within 0.34% of the best possible; proved"."""
    certificate = result.certificate
    told = {name: getattr(certificate, name) for name in ("bound", "holds", "verified")}
    shown = {name: result.document.get(name) for name in ("solver", "options")}
    return told_in_words({**shown, "termination": result.termination, "objective": result.objective}, told)


def told_in_words(result: Mapping[str, Any], certificate: Mapping[str, Any]) -> str:
    """The same of the members of a result document, and of its certificate.

    Floats leave a gap that says nothing: where the word "optimal" was proved, the rest of it is the rounding of sums.
    """
    optimal = result["termination"] == "optimal" and certificate.get("verified")
    if result["termination"] == "infeasible":
        words = "there is no answer that breaks no rule"
    else:
        maximize = maximizes(str(result.get("solver")), result.get("options") or {})
        words = distance_to_best(result["objective"], certificate["bound"], maximize)
    if certificate["holds"] is None:
        return "nothing is proved: no certificate was asked for"
    if not certificate["holds"]:
        return f"{words}; NOT proved"
    if words.startswith("how far"):
        return words
    if optimal and words != BEST:
        return f"{BEST}; proved, up to rounding"
    return f"{words}; proved"


def in_words(result: Result) -> str:
    """The answer for a person: what was found, what was proved, and the arrays, cut short."""
    certificate, facts = result.certificate, result.certificate.facts
    verified = "" if certificate.verified is None else " (verified)" if certificate.verified else " (not verified)"
    claimed = f"  claimed {facts['claimed_bound']}" if "claimed_bound" in facts else ""
    lines = [
        f"{result.document['solver']} by {result.method} on {result.device}: {result.termination}"
        f"{verified} in {result.timings_ms.get('solve', 0.0):.1f} ms",
        f"objective {result.objective}  bound {certificate.bound}{claimed}  gap {certificate.gap_rel}",
        gap_in_words(result),
        f"proved: {certificate.proved}" + ("  -- IT DOES NOT HOLD" if certificate.holds is False else ""),
    ]
    return "\n".join([*lines, *_arrays(result)])


def _arrays(result: Result) -> list[str]:
    paired = next((name for name in ("assignment", "permutation") if name in result.arrays), "")
    lines = _named_pairs(result, paired) if paired else []
    for name in result.arrays:
        if not (lines and name == paired) and name not in FOR_PROGRAMS:
            lines.append(f"{name} {_shown(_told(result, name))}")
    return lines


def _told(result: Result, name: str) -> Any:
    """An array as it is told: words for the codes of labels and for lines, and no facility that nobody gave."""
    if name == "label":
        return _labels(result)
    if name == "permutation":
        return placed(result)
    array = np.asarray(result.arrays[name])
    names = getattr(result, SHORT_OF[name]) if name in SHORT_OF else None
    if not names or array.ndim != 1:  # of several problems there are marks of lines
        return array
    return np.array([names[k] if k < len(names) else k for k in array.tolist()], object)


def _labels(result: Result) -> Any:
    """The words that codes of labels stand for, where they were words."""
    codes, names = np.asarray(result.arrays["label"]), result.home.label_names
    return codes if names is None else np.array([*names, None], object)[codes]


def _shown(array: Any) -> str:
    """A vector cut short, or a small matrix; of a large one how large it is."""
    if array.ndim > 1 and array.size > SHOWN_ENTRIES:
        return f"has {' x '.join(map(str, array.shape))} entries"
    return "= " + np.array2string(array, threshold=SHOWN_ENTRIES, edgeitems=4, max_line_width=110)


def _named_pairs(result: Result, paired: str) -> list[str]:
    if result.row_names is None and result.column_names is None:
        return []
    found = np.asarray(_told(result, paired))
    if found.ndim != 1:
        return []
    lines = []
    for row, column in enumerate(found[:SHOWN_PAIRS].tolist()):
        left = result.row_names[row] if result.row_names else row
        right = "nothing" if column < 0 else result.column_names[column] if result.column_names else column
        lines.append(f"  {left} -> {right}")
    return [*lines, "  ..."] if len(found) > SHOWN_PAIRS else lines
