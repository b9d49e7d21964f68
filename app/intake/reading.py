"""Reading one upload: where it lies or here where a short header says all, else by a clerk."""

from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from app.intake.errands import form_told
from app.intake.visit import Visit
from kernels import Array, Solver, stand_in
from workers.store.codec import Form, Reading, read
from workers.store.handles import reading_of
from workers.store.in_place import read_in_place
from workers.store.layouts import BRAIN
from workers.store.sniff import is_plain
from workers.store.upload import Writer

IN_PLACE_ELEMENTS = 1 << 20
"""A problem of so few numbers in all is built in this process."""


def in_place(visit: Visit, card: Solver, sink: Writer, form: Form, field: str) -> Reading | None:
    """What lies in memory as it came, where it is short, or the build need not look at every entry or is done here for
    how few there are; else None."""
    reading = read_in_place(sink, form, visit.desk.store.limits)
    if reading is None or sink.short is not None or reading.value.size <= IN_PLACE_ELEMENTS:  # type: ignore[union-attr]
        return reading
    return None if card.reads(field.removeprefix("inputs."), reading.value) else reading


async def read_upload(visit: Visit, path: Path, form: Form, field: str, at_hand: bool = False) -> Reading:
    """What a file holds. Of one that is `at_hand` in memory a short header is read without a thread.

    Raises:
        InvalidUpload: names `field` and says what is wrong.
        Refusal: it takes more than one upload may have.
    """
    limits = visit.desk.store.limits
    widens = form.scale is not None or form.dtype == BRAIN  # into memory, which a clerk has limits of
    if is_plain(path, form.format) and not widens:
        how = path, form, field, limits
        return read(*how) if at_hand else await run_in_threadpool(read, *how)
    errand: dict[str, Any] = {"do": "read", "path": str(path), "form": form_told(form), "field": field}
    errand |= {"max_bytes": limits.max_bytes, "max_elements": limits.max_elements}
    told = await visit.errand(errand, path.stat().st_size)
    return reading_of(told, limits.max_elements)


async def outlined(visit: Visit, path: Path, form: Form) -> Array | None:
    """A stand-in for what a file holds; None where only reading it can tell its shape and type."""
    errand = {"do": "outline", "path": str(path), "form": form_told(form)}
    told = await visit.errand({**errand, "max_elements": visit.desk.store.limits.max_elements}, 0)
    if told["outline"] is None:
        return None
    dtype, shape = told["outline"]
    return stand_in(np.dtype(dtype), tuple(shape))
