"""Fourth station: the problem has been built from its inputs, so that nothing can be wrong with it any more.

A small one is built here; a large one by a clerk, since its checks take memory and time by the entry.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.intake.gathered import Gathered, Source
from app.intake.visit import Visit
from app.intake.weighing import Question, Weighed, elements, weigh
from kernels import Solver
from workers.jobs.form import Placed
from workers.store import handles
from workers.store.unpack import Scratch

IN_PLACE_ELEMENTS = 1 << 19


@dataclass(frozen=True)
class Built:
    """A problem that was checked, where it goes, and how to keep what it was built from."""

    visit: Visit
    card: Solver
    request: Any
    options: Any
    place: Placed
    sources: Mapping[str, Source]


async def build(gathered: Gathered) -> Built:
    """Check the whole problem, and find its device.

    Raises:
        InvalidProblem: the input or option that is wrong with it, as the request names it.
        NoSuchDevice, DoesNotFit: there is no device for it now.
    """
    weighed, options = await weigh_up(gathered, None)
    if weighed.place is None:
        assert weighed.refusal is not None
        raise weighed.refusal
    return Built(gathered.visit, gathered.card, gathered.request, options, weighed.place, gathered.sources)


async def weigh_up(gathered: Gathered, limit_s: float | None) -> tuple[Weighed, Any]:
    """What there is to know of the problem, with estimates where a limit is given, and its options."""
    visit, request = gathered.visit, gathered.request
    with visit.timed("build"):
        workers = await run_in_threadpool(visit.desk.jobs.workers)
        arrays = {name: source.value for name, source in gathered.sources.items()}
        question = Question(gathered.card, arrays, request.options, gathered.texts, request.device, workers, limit_s,
                            gathered.outlined)  # fmt: skip
        if sum(map(elements, arrays.values())) <= IN_PLACE_ELEMENTS or gathered.outlined:
            weighed = await run_in_threadpool(weigh, question)
        else:
            weighed = await _by_a_clerk(visit, question)
    options = request.options.model_copy(update=dict(weighed.said)) if weighed.said else request.options
    return weighed, options


async def _by_a_clerk(visit: Visit, question: Question) -> Weighed:
    folder, scratch = visit.scratch.parent, Scratch(visit.scratch.name, visit.held.take, kept=True)
    visit.held.aside = True

    def handed() -> dict[str, Any]:
        return {name: handles.hand(value, folder, scratch) for name, value in question.inputs.items()}

    errand = {
        "do": "weigh",
        "solver": question.card.name,
        "inputs": await run_in_threadpool(handed),
        "options": question.options.model_dump(mode="json", exclude_unset=True),
        "texts": dict(question.texts),
        "asked": question.asked,
        "workers": [asdict(worker) for worker in question.workers],
        "limit_s": question.limit_s,
        "outlined": False,
    }
    given = sum(value.nbytes for value in question.inputs.values())
    return Weighed.heard(await visit.errand(errand, 4 * given))
