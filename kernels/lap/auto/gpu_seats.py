"""The launch that gives rows their earlier columns, before any auction."""

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.cuda import kernel
from kernels.lap.auto.layout import BID_BLOCK, TAKE_SEATS_ARGS, TIES

if TYPE_CHECKING:
    from kernels.lap.auto.gpu_forest import Forest


def launch_take_seats(forest: "Forest", book: dict[str, Any], own: Any) -> None:
    """Enqueue it; `book`: the matrix and what of the forest the kernel takes, `own`: old duals of rows, (n_rows,)."""
    n = forest.n_rows
    sizes = {"columns": TIES * n, "n_columns": n, "wanted": n, "claim": n, "counters": 6}
    room = cupy.empty(sum(sizes.values()), np.int32)  # the stream is done with it before anyone else has it
    begins = accumulate(sizes.values(), initial=0)
    lists = {name: room.data.ptr + room.itemsize * begin for name, begin in zip(sizes, begins, strict=False)}
    run = kernel("lap/auto/seats.cu", "take_seats", forest.defines)
    arguments = TAKE_SEATS_ARGS.packed(**book, **lists, own=own, few=forest.n_rows // forest.tuning.seats)
    run((forest.processors,), (BID_BLOCK,), arguments)
