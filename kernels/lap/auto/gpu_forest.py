"""Method `auto` on the GPU: what its kernels need in device memory, their launches, and the answer in device memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cupyx
import numpy as np

from kernels.cuda import attribute, kernel
from kernels.gpu_carved import Carved, Parts
from kernels.lap.auto.gpu_seats import launch_take_seats
from kernels.lap.auto.gpu_warm import Start
from kernels.lap.auto.layout import (
    BID_BLOCK,
    BID_SHARED_ARGS,
    BID_WIDE_ARGS,
    GROW_ARGS,
    GROW_BLOCK,
    REDUCE_COLUMNS_ARGS,
    SCALE,
    STATE,
)
from kernels.lap.proof.gpu_proof import CTYPES, PARTS
from kernels.problems.arrays import Bytes, Integers32

SHARED_BYTES = 220 << 10
"""Dynamic shared memory a block may ask for on Hopper, less what the kernels declare."""
WORD = 16
"""Bytes of a word of the boards."""
L2_BYTES = 24 << 20
"""Matrices beyond this are worth prefetching row by row."""
MOST_ROWS = 65536
"""A row or column is 16 bits wide on the boards."""
LEVELS, THETA = 10, 4.0
"""Scaling: epsilon starts at spread / THETA, falls by THETA from level to level, and is 0 in the last."""


@dataclass(frozen=True)
class Tuning:
    """When the auction hands over to the forest; docs/notes/lap.md has the counts behind the defaults.

    Attributes:
        stop, scale_stop: an auction, or a level of a scaled one, hands over at n_rows over this free rows.
        deep_from: rows from which a scaled auction takes the trouble that the next two say.
        extra: levels with epsilon > 0 go on for n_rows over this rounds then.
        coarse: levels after which a search with lengths in multiples of epsilon matches the rest; 0 for none.
        seats_from: rows from which the next three say what becomes of old duals of both sides; fewer start an auction.
        seats: no auction is held if at most one row in so many is left without a seat: the forest begins with them.
        few, most: of more rows that have changed than n_rows over the first, but at most n_rows over the second, old
            duals are dropped: they are far from free columns, so that a cold start is faster. Where more have changed,
            all have, by a little, and an auction puts it right.
        scale_at_once: scale where the plain auction stalls; else only where the forest after it does. Good prices to
            start from leave rows that want a path of ties, which no auction finds.
    """

    stop: int = 32
    rounds: int = 60
    scale_stop: int = 64
    scale_rounds: int = 4000
    extra: int = 128
    levels: int = LEVELS
    coarse: int = 7
    deep_from: int = 2048
    seats_from: int = 2048
    seats: int = 64
    few: int = 256
    most: int = 16
    scale_at_once: bool = True
    theta: float = THETA
    blocks: int | None = None
    replicate: bool = True
    prefetches: bool | None = None
    resident: bool = True


def slice_width(n_cols: int, blocks: int) -> int:
    """Columns per block: a multiple of 4, so that slices begin at a 32-byte sector, and at least 8."""
    return -(-max(8, -(-n_cols // blocks)) // 4) * 4


def device_bytes(n_rows: int, n_cols: int) -> int:
    """Device memory beside the matrix."""
    return 4 * 160 * n_rows + 128 * (n_rows + n_cols) + (1 << 16)


class Forest:
    """Buffers and launches of one problem, n_rows <= n_cols, on the current device.

    Attributes:
        v, u: duals of the minimisation, in float64 or int64.
        col_row, row_col: the matching from both sides, -1 for none.
        proof: room for what `gpu_proof.prove` finds.
        mailbox: mapped host memory: [0] set to stop, [1] phases, [2] rows still free.
    """

    def __init__(self, n_rows: int, n_cols: int, dtype: Any, tuning: Tuning | None = None) -> None:
        self.n_rows, self.n_cols, self.tuning = n_rows, n_cols, tuning or Tuning()
        kind = np.dtype(dtype)
        self.itemsize = kind.itemsize
        self.value = np.dtype(np.int64 if kind.kind == "i" else np.float64)
        self.defines = (f"-DCOST={CTYPES[kind.name]}", f"-DVALUE={CTYPES[self.value.name]}")
        self.processors: int = attribute("MultiProcessorCount")
        self.deep = n_rows >= self.tuning.deep_from
        self.coarse = min(self.tuning.coarse, self.tuning.levels) if self.deep else 0
        self.width = slice_width(n_cols, self.tuning.blocks or self.processors)
        self.blocks = -(-n_cols // self.width)
        beyond = n_rows * n_cols * kind.itemsize > L2_BYTES
        self.prefetches = beyond if self.tuning.prefetches is None else self.tuning.prefetches
        self.bid_bytes = 18 * n_cols + 2 * n_rows
        self.replicated = self.tuning.replicate and self.bid_bytes <= SHARED_BYTES
        self.n_words = 4 * self.blocks + 2 * n_rows + 2 * self.processors
        self._carved = self._carve()
        self.u, self.v, self.proof, self.row_col, self.col_row = map(
            self._carved.array, ("u", "v", "proof", "row_col", "col_row")
        )
        self.mailbox: Integers32 = cupyx.zeros_pinned(4, np.int32)
        self._mailbox_at: int = self.mailbox.ctypes.data

    def _carve(self) -> Carved:
        """All buffers; what is fetched lies together, from the state to the pairs."""
        n_rows, n_cols = self.n_rows, self.n_cols
        of_rows, of_cols = ((n_rows,), self.value), ((n_cols,), self.value)
        pair_of_rows, pair_of_cols = ((n_rows,), np.int32), ((n_cols,), np.int32)
        zeros: Parts = {
            "v_first": of_cols,
            "free_u": of_rows,
            "state": ((STATE.dtype.itemsize,), np.uint8),
            "proof": ((len(PARTS),), self.value),
            "u": of_rows,
            "v": of_cols,
        }
        ones: Parts = {
            "row_col": pair_of_rows,
            "col_row": pair_of_cols,
            "free_rows": pair_of_rows,
            "reached": pair_of_cols,
        }
        rest: dict[str, Any] = {
            "words": ((self.n_words, 2), np.uint64),
            "proposal": ((n_rows,), np.uint64),
            "live": ((self.blocks, n_rows), np.uint32),
        }
        if not self.replicated:
            rest |= {"key": ((n_cols,), np.uint64), "raised": of_rows, "target": pair_of_rows}
            rest |= {"list": ((2 * n_rows,), np.int32), "counters": ((9,), np.int32)}
        return Carved(zeros, ones, rest)

    def array(self, name: str) -> Any:
        """A buffer of `_carve`, as `reached`: the columns that the last search reached, of a Hall violator."""
        return self._carved.array(name)

    def _at(self, *names: str) -> dict[str, int]:
        """Addresses by name."""
        return {name: self._carved.at[name] for name in names}

    def launch(
        self,
        cost: Any,
        negate: bool,
        start: Start | None = None,
        phase_limit: int = -1,
        mark: Callable[[], None] = lambda: None,
    ) -> None:
        """Enqueue the whole solve; the host waits for seats alone. `start`: square only.

        `mark` is called after each launch, but for that of seats.

        A square problem that the plain auction does not nearly finish, or whose first phases match few rows, is
        started again with epsilon scaling. Wide ones are not scaled: a free column's dual must stay 0.
        """
        square, tuning = self.n_rows == self.n_cols, self.tuning
        matrix = {"cost": cost, "n_rows": self.n_rows, "n_cols": self.n_cols, "negate": negate}
        if start is not None:
            self.array("v_first")[:] = start.v
        self._launch_reduce_columns(matrix, int(square) if start is None else 2)
        if start is not None and start.own is not None and self.n_rows >= tuning.seats_from:
            self._launch_take_seats(matrix, start.own)
            if self.n_rows // tuning.few < start.n_changed(self.u) <= self.n_rows // tuning.most:
                self._launch_reduce_columns(matrix, int(square))
        mark()
        levels = tuning.levels if square and tuning.scale_at_once else 0
        self._launch_bid(matrix, "v_first", 0, False, (levels, levels + 1, levels))
        mark()
        self._launch_grow(matrix, 1, square, phase_limit)
        mark()
        if square:
            self._launch_scaled(matrix, phase_limit, mark)

    def _launch_scaled(self, matrix: dict[str, Any], phase_limit: int, mark: Callable[[], None]) -> None:
        """Auctions with epsilon, a search among the levels for many rows, and the search that ends it."""
        levels, coarse = self.tuning.levels, self.coarse
        if coarse:
            self._launch_bid(matrix, "v_first", 2, True, (0, coarse, levels))
        mark()
        if coarse:
            self._launch_grow(matrix, 3, False, -1, self.tuning.theta**-coarse)
        mark()
        stage = 4 if coarse else 2
        self._launch_bid(matrix, "v" if coarse else "v_first", stage, True, (coarse, levels + 1, levels))
        mark()
        self._launch_grow(matrix, stage + 1, False, phase_limit)
        mark()

    def _launch_reduce_columns(self, matrix: dict[str, Any], minima: int) -> None:
        run = kernel("lap/auto/start.cu", "reduce_columns", self.defines)
        buffers = {**self._at("v_first", "proposal", "state"), "boards": self._carved.at["words"]}
        arguments = REDUCE_COLUMNS_ARGS.packed(**matrix, **buffers, n_words=self.n_words, minima=minima)
        run((self.processors,), (BID_BLOCK,), arguments)

    def _launch_take_seats(self, matrix: dict[str, Any], own: Any) -> None:
        book = self._at("v_first", "v", "u", "col_row", "row_col", "free_rows", "free_u", "state")
        launch_take_seats(self, matrix | book, own)

    def _launch_bid(
        self, matrix: dict[str, Any], first_prices: str, stage: int, scale: bool, levels: tuple[int, int, int]
    ) -> None:
        """`levels`: the first, the one after the last, and the one with epsilon 0."""
        tuning, at = self.tuning, self._carved.at
        first, end, last = levels
        rule = {
            "mailbox": self._mailbox_at,
            "stage": stage,
            "scale": scale,
            "first": first,
            "end": end,
            "levels": last,
            "theta": tuning.theta,
            "stop": self.n_rows // (tuning.scale_stop if scale else tuning.stop),
            "extra": self.n_rows // tuning.extra if self.deep else 0,
            "most_rounds": tuning.scale_rounds if scale else tuning.rounds,
        }
        shared = self._at("col_row", "proposal", "state", "free_rows", "free_u") | {"v_first": at[first_prices]}
        if self.replicated:
            run = kernel("lap/auto/bid.cu", "bid_shared", self.defines)
            run.max_dynamic_shared_size_bytes = self.bid_bytes
            bids = at["words"] + 4 * self.blocks * WORD
            boards = {"v_out": at["v"], "boards": bids, "beats": bids + 2 * self.n_rows * WORD}
            arguments = BID_SHARED_ARGS.packed(**matrix, **shared, **boards, **rule)
            run((self.processors,), (BID_BLOCK,), arguments, shared_mem=self.bid_bytes)
            return
        run = kernel("lap/auto/start.cu", "bid_wide", self.defines)
        books = self._at("v", "row_col", "key", "target", "list", "counters") | {"raise": at["raised"]}
        run((self.processors,), (BID_BLOCK,), BID_WIDE_ARGS.packed(**matrix, **shared, **books, **rule))

    def _launch_grow(
        self, matrix: dict[str, Any], stage: int, give_up: bool, phase_limit: int, share: float = 0.0
    ) -> None:
        """`share`: of the spread, which lengths are rounded down to; 0 for exact ones."""
        strips = 1
        while 32 * strips < self.width:
            strips *= 2
        folded = GROW_BLOCK // 32 // (2 if strips >= 16 else 1)
        shared = self.width * (40 + 12 * folded) + 4 * (-(-self.n_rows // 32)) + 2 * self.n_rows + 64
        tile = self.n_rows * self.width * self.itemsize
        resident = self.tuning.resident and strips == 1 and shared + tile <= SHARED_BYTES
        shared += tile if resident else 0
        options = (f"-DSTRIPS={strips}", f"-DRESIDENT={int(resident)}")
        run = kernel("lap/auto/forest.cu", "grow", (*self.defines, *options))
        run.max_dynamic_shared_size_bytes = shared
        answer = self._at("v", "u", "col_row", "row_col")
        search = self._at("free_rows", "free_u", "state", "proposal", "reached")
        search |= {"live_all": self._carved.at["live"], "board": self._carved.at["words"]}
        rule = {"stage": stage, "give_up": give_up, "phase_limit": phase_limit, "share": share}
        rule |= {"width": self.width, "prefetches": self.prefetches, "mailbox": self._mailbox_at}
        run((self.blocks,), (GROW_BLOCK,), GROW_ARGS.packed(**matrix, **answer, **search, **rule), shared_mem=shared)

    def fetched(self) -> dict[str, Any]:
        """`state`, `proof`, `u`, `v`, `row_col` and `col_row` on the host, by one copy."""
        return self._carved.fetched("state", "col_row")

    def facts(self, fetched: Bytes | None = None) -> dict[str, int]:
        """Counters of the launches so far, after they have ended; `mode` is the last one.

        `fetched`: the state, where it is on the host already.
        """
        state = (self.array("state").get() if fetched is None else fetched).view(STATE.dtype)[0]
        names = ("phases", "rounds", "bid_rounds", "n_begun", "n_seated", "scans", "bid_scans")
        mode = int(state["mode"][(6 if self.coarse else 4) if self.n_rows == self.n_cols else 2])
        return {"mode": mode, "scaled": int(state["mode"][2] == SCALE)} | {name: int(state[name]) for name in names}
