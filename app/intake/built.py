"""Fourth station: the problem has been built from its inputs, so that nothing can be wrong with it any more.

A small one is built here, and so is one whose numbers were seen as they came. Any other is built by a clerk, since its
checks take memory and time by the entry.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.intake.gathered import Gathered, Source
from app.intake.reading import IN_PLACE_ELEMENTS
from app.intake.visit import Visit
from app.intake.weighing import Question, Weighed, elements, weigh
from kernels import Solver, TooMuch, at_most, seen_of
from workers.jobs.form import Placed
from workers.jobs.job import WorkerInfo
from workers.store.disk import room
from workers.store.unpack import Scratch

AT_ONCE_ELEMENTS = 1 << 12
"""So few are looked through in less time than another thread takes to begin."""
AT_ONCE_SEEN = 1 << 19
"""So few are where all but those were seen as they came: they are gone through once, for what a look did not tell."""
IN_PLACE_MADE, AT_ONCE_MADE = 1 << 22, 1 << 16
"""Entries that a build may make of them here, and while all other requests wait: costs between points, for one."""


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Built:
    """A problem that was checked, where it goes, and how to keep what it was built from."""

    visit: Visit
    card: Solver
    request: Any
    options: Any
    place: Placed
    sources: Mapping[str, Source]
    derived: Sequence[float] = ()


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
    of = gathered.visit, gathered.card, gathered.request, options, weighed.place, gathered.sources
    return Built(*of, weighed.derived)


async def weigh_up(gathered: Gathered, limit_s: float | None) -> tuple[Weighed, Any]:
    """What there is to know of the problem, with estimates where a limit is given, and its options."""
    visit, request = gathered.visit, gathered.request
    begun = time.perf_counter()
    sources, card = gathered.sources, gathered.card
    sizes = {name: elements(one.value) for name, one in sources.items() if card.reads(name, one.value)}
    count, weighed = sum(sizes.values()), None
    unseen = sum(size for name, size in sizes.items() if seen_of(sources[name].value) is None)
    if unseen <= AT_ONCE_ELEMENTS and count <= AT_ONCE_SEEN and not gathered.texts and limit_s is None:
        try:
            weighed = await visit.desk.entry.placed(partial(_weighed, gathered, AT_ONCE_MADE))
        except TooMuch:
            weighed = None
    if weighed is None and (count <= IN_PLACE_ELEMENTS or gathered.outlined):
        most = None if gathered.outlined else IN_PLACE_MADE
        with contextlib.suppress(TooMuch):
            if limit_s is None and count <= IN_PLACE_ELEMENTS:
                weighed = await visit.desk.entry.placed(partial(_weighed, gathered, most), aside=True)
            else:
                weighed = await run_in_threadpool(lambda: weigh(_question(gathered, limit_s), _asker(most)))
    if weighed is None:
        weighed = await _by_a_clerk(gathered, limit_s)
    visit.spent("build", begun)
    options = request.options.model_copy(update=dict(weighed.said)) if weighed.said else request.options
    return weighed, options


def _asker(most: int | None) -> Callable[[int], None] | None:
    return None if most is None else at_most(most)


def _weighed(gathered: Gathered, most: int | None, workers: list[WorkerInfo]) -> Weighed:
    weighed = weigh(_question(gathered, None, workers), _asker(most))
    if weighed.refusal is not None:
        raise weighed.refusal
    return weighed


def _question(gathered: Gathered, limit_s: float | None, workers: list[WorkerInfo] | None = None) -> Question:
    return Question(
        card=gathered.card,
        inputs={name: source.value for name, source in gathered.sources.items()},
        options=gathered.request.options,
        texts=gathered.texts,
        asked=gathered.request.device,
        workers=gathered.visit.desk.jobs.workers() if workers is None else workers,
        limit_s=limit_s,
        outlined=gathered.outlined,
    )


async def _by_a_clerk(gathered: Gathered, limit_s: float | None) -> Weighed:
    visit = gathered.visit
    visit.held.aside = True

    def put_down() -> dict[str, Any]:
        question = _question(gathered, limit_s)
        folder, scratch = visit.scratch.parent, Scratch(visit.scratch.name, visit.held.take, kept=True)
        with room():
            inputs = {name: source.hand(folder, scratch) for name, source in gathered.sources.items()}
        return {
            "do": "weigh",
            "solver": question.card.name,
            "inputs": inputs,
            "options": question.options.model_dump(mode="json", exclude_unset=True),
            "texts": dict(question.texts),
            "asked": question.asked,
            "workers": [asdict(worker) for worker in question.workers],
            "limit_s": question.limit_s,
            "outlined": False,
        }

    given = sum(source.value.nbytes for source in gathered.sources.values())
    return Weighed.heard(await visit.errand(await run_in_threadpool(put_down), 4 * given))
