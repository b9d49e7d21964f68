"""Second station: the text is a request of one solver, its fields are checked, and its lists of numbers are arrays.

What still refers to bytes elsewhere, {"blob"} and {"part"}, stands as it came; the next station follows it. A long text
is read by a clerk: eleven megabytes of brackets keep a process busy for seconds.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.http.refusal import Invalid, fault
from app.intake.asked import parse_request
from app.intake.document import Document, read_document
from app.intake.errands import picked_up
from app.intake.multipart import Part
from app.intake.received import Received
from app.intake.visit import Visit
from kernels import SOLVERS, Solver
from workers.runtime.config import Settings


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Parsed:
    """A request whose every field is known, and whose inputs are arrays or references."""

    visit: Visit
    card: Solver
    document: Document
    parts: Mapping[str, Part]


async def parse(received: Received) -> Parsed:
    """Read the text.

    Raises:
        Refusal, Invalid, InvalidProblem: what is wrong with it.
    """
    visit, settings = received.visit, received.visit.desk.settings
    begun = time.perf_counter()
    if isinstance(received.text, bytes):
        document = read_document(received.text, tuple(received.parts), settings.max_elements)
    else:
        document = await _read_by_a_clerk(received, received.text)
    visit.spent("parse", begun)
    card = SOLVERS[document.request.solver]
    check_limits(document.request, card, settings)
    return Parsed(visit, card, document, received.parts)


async def _read_by_a_clerk(received: Received, path: Path) -> Document:
    visit, most = received.visit, received.visit.desk.settings.max_elements
    errand = {"do": "document", "path": str(path), "parts": list(received.parts), "max_elements": most}
    told = await visit.errand(errand, path.stat().st_size)
    inputs = {name: picked_up(value, most) for name, value in told["inputs"].items()}
    return Document(told["around"], parse_request(told["around"]), inputs)


def check_limits(request: Any, card: Solver, settings: Settings) -> None:
    """Refuse what this service does not grant."""
    longest = settings.max_time_limit_s
    if request.time_limit_s is not None and request.time_limit_s > longest:
        raise Invalid(fault("time_limit_s", f"expected at most {longest:g}", request.time_limit_s))
    if request.device != "auto" and request.device not in card.modules:
        raise Invalid(fault("device", f"{card.name} solves on {', '.join(card.modules)} only", request.device))
