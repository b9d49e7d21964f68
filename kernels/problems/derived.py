"""Numbers that building a problem works out from large inputs, handed to whoever builds the same problem again.

Of points it is one number: 1, once each of them was found to be what its metric takes.

They are told in the order in which the build first asks for them. They are no input and nobody proves them. The size of
the costs decides which number a strength in its units is. It stands in the answer, and the certificate is about the
problem with that strength. Whoever verifies or audits an answer builds the problem without.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Numbers:
    """Of one build: what an earlier one `told`, what this one `found`, and what of it is `known` of a problem."""

    told: Sequence[float] = ()
    found: list[float] = field(default_factory=list)
    known: dict[object, float] = field(default_factory=dict)


_here: ContextVar[Numbers | None] = ContextVar("derived", default=None)


class deriving:
    """A block in which a problem is built: once, and once more elsewhere with what was `found`."""

    __slots__ = ("_numbers", "_token")

    def __init__(self, told: Sequence[float] = ()) -> None:
        self._numbers = Numbers(told)

    def __enter__(self) -> Numbers:
        self._token = _here.set(self._numbers)
        return self._numbers

    def __exit__(self, *_: object) -> None:
        _here.reset(self._token)


def derived(work: Callable[[], float], most: float, of: object = None) -> float:
    """What `work` answers, a positive number of at most `most`, or what was told of it.

    `of`: the problem that the number is about, where it has one such number. It is worked out once in a block.
    """
    here = _here.get()
    if here is None:
        return work()
    if of is not None and of in here.known:
        return here.known[of]
    number = len(here.found)
    told = here.told[number] if number < len(here.told) else 0.0
    here.found.append(told if 0.0 < told <= most else work())
    if of is not None:
        here.known[of] = here.found[-1]
    return here.found[-1]
