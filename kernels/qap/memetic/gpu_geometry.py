"""The form of memetic.cu that a problem asks for: its size and types, how many threads search one member of the
population, and how many members share a multiprocessor. Needs no CUDA."""

import functools
from dataclasses import dataclass

CHIP = 228 * 1024
"""Bytes of shared memory of a multiprocessor."""


WIDER = {"float": ("float", "int"), "int": ("int",), "long long": ("long long",), "double": ("double",)}
"""Types that hold every exchange value of a type; the first is the fastest."""
OF_ANOTHER_TYPE = 1.5
"""A move takes about so many times as long with the next type: a guess, for a choice."""
Ways = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class MemeticGeometry:
    """Threads of a block, what of its state lies in global memory (STREAMED of member.cuh), blocks per processor."""

    threads: int
    streamed: int
    blocks: int


def geometry(n: int, wide: bool) -> MemeticGeometry:
    """The fastest on an H200 of 2 to 7 tried for each n of 30 to 100; `wide` is an 8-byte delta.

    Few threads amortise what every warp does once a move; T in L1 and L2 makes room for another block.
    """
    size, quads = 8 if wide else 4, (n + 3) // 4
    slots = 4 * ((n // 2 + 3) // 4)
    threads = min(1024, 32 * max(1, -(-n * slots // 653), -(-quads // 32)))
    board = n * n * 4, n * 4 * (quads + 1 - quads % 2) * size, n * slots * (size + 4)
    rest = 1280 + (n + slots) * 2 * size + 8 * n * size + 8 * n
    streamed = 0 if n <= 40 else next((k for k in (1, 2) if rest + sum(board[k:]) <= CHIP), 3)
    registers = 65536 // (threads * (128 if wide else 72))
    return MemeticGeometry(threads, streamed, max(1, min(CHIP // (rest + sum(board[streamed:])), registers, 16)))


@dataclass(frozen=True)
class MemeticForm:
    """What memetic.cu is compiled for: facilities at most, the type of an exchange, which parts there are."""

    size: int
    entry: str
    skew: bool
    linear: bool

    @property
    def geometry(self) -> MemeticGeometry:
        """How such a problem lies on the device."""
        return geometry(self.size, self.entry in ("long long", "double"))

    @property
    def defines(self) -> tuple[str, ...]:
        """Of its compilation."""
        shape = self.geometry
        return (
            f"-DSIZE={self.size}", f"-DTHREADS={shape.threads}", f"-DDELTA={self.entry}", f"-DENTRY={self.entry}",
            f"-DTOTAL={'double' if self.entry == 'double' else 'long long'}", f"-DSKEW={int(self.skew)}",
            f"-DLINEAR={int(self.linear)}", f"-DBLOCKS={shape.blocks}", f"-DSTREAMED={shape.streamed}",
        )  # fmt: skip

    def holds(self, other: "MemeticForm") -> bool:
        """Whether a problem of the `other` form can be searched with this one, with facilities that do nothing."""
        parts = self.skew == other.skew and self.linear >= (other.linear or self.size > other.size)
        return parts and self.size >= other.size and self.entry in WIDER[other.entry]


def chosen(exact: MemeticForm, ahead: Ways) -> MemeticForm:
    """The form to search a problem of the form `exact` with: one that is compiled ahead, where one holds it.

    NVRTC takes seconds. The next larger size that is compiled ahead takes a few hundredths longer for each move.

    Args:
        ahead: `defines` that are compiled already.
    """
    if exact.defines in ahead:
        return exact
    fits = sorted(filter(lambda form: form.holds(exact), _read(ahead)), key=lambda form: _work(form, exact.entry))
    return next((form for form in fits if form.defines in ahead), exact)


def _work(form: MemeticForm, entry: str) -> float:
    """About the time of a move, for a choice."""
    return form.size * form.size * (1.0 if form.entry == entry else OF_ANOTHER_TYPE)


@functools.lru_cache(maxsize=8)
def _read(ahead: Ways) -> list[MemeticForm]:
    told = (dict(define.removeprefix("-D").split("=") for define in way) for way in ahead)
    forms = {MemeticForm(int(t["SIZE"]), t["DELTA"], t["SKEW"] == "1", t["LINEAR"] == "1") for t in told}
    return sorted(forms, key=lambda form: (form.size, form.entry, form.skew, form.linear))
