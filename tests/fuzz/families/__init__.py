"""What is asked: one file per solver, each with one function that draws a case."""

from tests.fuzz.case import Case
from tests.fuzz.draw import Draw
from tests.fuzz.families import assignment, auction, quadratic, transport

FAMILIES = {"lap": assignment.draw, "auction": auction.draw, "uot": transport.draw, "qap": quadratic.draw}


def draw_case(draw: Draw, solver: str, device: str = "cpu") -> Case:
    """One case of a solver's families."""
    return FAMILIES[solver](draw, device)
