"""What is asked: one file per solver, each with one function that draws a case."""

from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance
from tests.fuzz.families import (
    assignment,
    auction,
    barycenter,
    gromov,
    lowrank,
    multimarginal,
    quadratic,
    rejecting,
    selected,
    transport,
)

FAMILIES = {
    "lap": assignment.draw,
    "auction": auction.draw,
    "uot": transport.draw,
    "qap": quadratic.draw,
    "gromov": gromov.draw,
    "barycenter": barycenter.draw,
    "lowrank": lowrank.draw,
    "multimarginal": multimarginal.draw,
}

REJECTING, SELECTED = 30, 20
"""Of a hundred assignments so many have lines that may be left, or matrices one after the other; and of the others so
many ask for a number of pairs or the least largest cost, which a CPU alone solves."""


def draw_case(draw: Draw, solver: str, device: str = "cpu") -> Case:
    """One case of a solver's families."""
    if solver == "lap" and chance(draw, REJECTING):
        return rejecting.draw(draw, device)
    if solver == "lap" and device == "cpu" and chance(draw, SELECTED):
        return selected.draw(draw, device)
    return FAMILIES[solver](draw, device)
