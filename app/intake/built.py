"""Fourth station: the problem has been built from its inputs, so that nothing can be wrong with it any more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.intake.gathered import Gathered, Source
from app.intake.visit import Visit
from kernels import InvalidProblem, Solver


@dataclass(frozen=True)
class Built:
    """A checked problem, and how to keep what it was built from."""

    visit: Visit
    card: Solver
    request: Any
    options: Any
    problem: Any
    sources: Mapping[str, Source]


async def build(gathered: Gathered) -> Built:
    """Check the whole problem.

    Raises:
        InvalidProblem: the input or option that is wrong with it, as the request names it.
    """
    with gathered.visit.timed("build"):
        problem = await run_in_threadpool(_problem, gathered)
    return Built(gathered.visit, gathered.card, gathered.request, gathered.options, problem, gathered.sources)


def _problem(gathered: Gathered) -> Any:
    arrays = {name: source.value for name, source in gathered.sources.items()}
    try:
        return gathered.card.build(arrays, gathered.options)
    except InvalidProblem as wrong:
        raise InvalidProblem(full_name(wrong.field, gathered.card), wrong.message) from None


def full_name(field: str, card: Solver) -> str:
    """The request's name for what a card blames: "inputs." before an input, "options." before an option."""
    first = field.split(".")[0].split("[")[0]
    if first in card.specs:
        return f"inputs.{field}"
    return f"options.{field}" if first in card.options.model_fields else field
