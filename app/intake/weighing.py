"""Building a problem and asking its card what it needs: the same here and in a clerk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kernels import Array, Csr, Device, InvalidProblem, Solver, asking, deriving
from workers.jobs.form import Placed, placed
from workers.jobs.job import AskedDevice, DoesNotFit, NoSuchDevice, WorkerInfo

Needs = dict[str, dict[str, float]]
MADE_BYTES = 32
"""Of an entry that a build makes: it in float64, and what it is made of."""


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Question:
    """What a problem is built from, and what is to be known of it.

    Attributes:
        texts: of the files beside the inputs that say an option.
        asked: the device that the request names.
        workers: those that are alive.
        limit_s: of the solve; given where estimates are wanted.
        outlined: the inputs are stand-ins of the right shapes and types, whose entries mean nothing.
    """

    card: Solver
    inputs: Mapping[str, Array | Csr]
    options: Any
    texts: Mapping[str, str]
    asked: AskedDevice
    workers: list[WorkerInfo]
    limit_s: float | None = None
    outlined: bool = False


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Weighed:
    """What is known of a problem that stands.

    Attributes:
        said: options that the files beside the inputs said.
        place: its queue and what its submission says of it; None where there is no queue for it now, and why.
        needs: by device, where they were wanted.
        derived: numbers that need not be worked out again (kernels/problems/derived.py).
    """

    said: Mapping[str, float]
    place: Placed | None
    refusal: DoesNotFit | NoSuchDevice | None
    needs: Needs
    derived: Sequence[float] = ()

    @property
    def device(self) -> Device | None:
        """The queue for it."""
        return None if self.place is None else self.place.queue

    def told(self) -> dict[str, Any]:
        """As JSON."""
        why = self.refusal
        facts = [why.bytes_needed, why.bytes_available] if isinstance(why, DoesNotFit) else []
        refused = None if why is None else [str(why), *facts]
        return {
            "said": dict(self.said),
            "place": self.place and asdict(self.place),
            "refused": refused,
            "needs": self.needs,
            "derived": list(self.derived),
        }

    @classmethod
    def heard(cls, told: Mapping[str, Any]) -> "Weighed":
        """The other way round."""
        refused = told["refused"]
        kind: Any = None if refused is None else DoesNotFit if len(refused) > 1 else NoSuchDevice
        place = told["place"]
        return cls(told["said"], place and Placed(**place), kind and kind(*refused), told["needs"], told["derived"])


def weigh(question: Question, ask: Callable[[int], object] | None = None) -> Weighed:
    """Build the problem, and ask for its device and needs.

    `ask` is told of entries that the build makes, before it makes them (kernels/problems/made.py).

    Raises:
        InvalidProblem: the input or option that is wrong, as the request names it.
        What `ask` raises.
    """
    card, said = question.card, _said(question)
    options = question.options.model_copy(update=said) if said else question.options
    with deriving() as numbers:
        try:
            build = card.outline if question.outlined and card.outline is not None else card.build
            with asking(_within_reason(question.workers, ask)):
                problem = build(question.inputs, options)
        except DoesNotFit as why:
            return Weighed(said, None, why, {})
        except InvalidProblem as wrong:
            raise InvalidProblem(full_name(wrong.field, card), wrong.message) from None
        needs: Needs = {}
        if question.limit_s is not None:
            for device in card.modules:
                needs[device] = asdict(card.estimate(problem, options, device).within(question.limit_s))
        try:
            place = placed(card, problem, options, question.asked, question.workers)
            return Weighed(said, place, None, needs, numbers.found)
        except (DoesNotFit, NoSuchDevice) as why:
            return Weighed(said, None, why, needs)


def _within_reason(workers: Sequence[WorkerInfo], ask: Callable[[int], object] | None) -> Callable[[int], None]:
    """What is told of entries before they are made: a job that makes more than any worker can hold does not fit."""
    made = 0

    def told(entries: int) -> None:
        nonlocal made
        made += entries
        most = max((worker.host_bytes for worker in workers), default=0)
        if most and made * MADE_BYTES > most:
            needed = made * MADE_BYTES
            detail = f"what is made of its inputs needs about {needed} bytes; the largest worker here has {most}"
            raise DoesNotFit(detail, needed, most)
        if ask is not None:
            ask(entries)

    return told


def _said(question: Question) -> dict[str, float]:
    """The numbers of the files beside the inputs, each as its option; they are checked against the inputs."""
    said = {}
    for companion in question.card.companions:
        if companion.name in question.texts and not question.outlined:
            try:
                said[companion.option] = companion.read(question.texts[companion.name], question.inputs)
            except InvalidProblem as wrong:
                known = wrong.field in question.card.specs
                raise InvalidProblem(f"inputs.{wrong.field}" if known else companion.name, wrong.message) from None
    return said


def full_name(field: str, card: Solver) -> str:
    """The request's name for what a card blames: "inputs." before an input, "options." before an option."""
    first = field.split(".")[0].split("[")[0]
    if first in card.specs:
        return f"inputs.{field}"
    return f"options.{field}" if first in card.options.model_fields else field


def elements(value: Array | Csr) -> int:
    """How many numbers an input holds."""
    return int(value.values.size + value.indptr.size) if isinstance(value, Csr) else int(value.size)
