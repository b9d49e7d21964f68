"""How many threads search one member of memetic.cu's population, and how many members share a multiprocessor."""

from dataclasses import dataclass

CHIP = 228 * 1024
"""Bytes of shared memory of a multiprocessor."""


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
