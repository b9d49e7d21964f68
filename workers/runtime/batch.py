"""Several small jobs in one go: each keeps its own record, certificate, events and execution.

Jobs of one form (workers/jobs/form.py) are solved as one batch where their card has a batched form for the device, and
one after the other where it has none. What does not come out of a batch with all that was asked for is solved again by
itself, with its own clock and cancel flag, so that no member's trouble is another's.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernels import SOLVERS, Certificate, Deadline, InputChanged, Solution, Solver
from workers.jobs.records import Ending, Order
from workers.runtime import traces
from workers.runtime.document import Bench, Solved, keep_ahead
from workers.runtime.outlast import outlast
from workers.runtime.run import DeviceLost, concluded, ending_of, loaded, told_before, until_begun

FEW = 2
FLUSH_S = 0.01
"""Of work that is done and not yet told of: those who wait for one do not wait for all."""
KEPT_AT_ONCE = 8
"""Answers whose arrays are kept with one trip to Redis."""
log = logging.getLogger(__name__)


def endings(orders: Sequence[Order], bench: Bench) -> Iterator[list[Ending]]:
    """How the jobs ended, in parts, as soon as each part is worth a trip to Redis."""
    answered: set[str] = set()
    if len(orders) >= FEW:
        for part in _together(orders, bench):
            answered |= {ending.job_id for ending in part}
            yield part
    found, since = list[Ending](), time.monotonic()
    for order in orders:
        if order.job_id not in answered:
            found.append(ending_of(order, bench))
            if time.monotonic() - since > FLUSH_S:
                yield found
                found, since = [], time.monotonic()
    if found:
        yield found


def _together(orders: Sequence[Order], bench: Bench) -> Iterator[list[Ending]]:
    """Endings of those that were solved as one batch, and proved where a proof was asked for.

    Raises:
        DeviceLost: the child must exit.
    """
    card = SOLVERS[orders[0].record["solver"]]
    joint = card.joint.get(bench.device)
    if joint is None:
        return
    begun = time.perf_counter()
    all_staged = contextlib.nullcontext() if bench.staging is None else bench.staging.several()
    now = outlast(bench.records.now)
    waited = {order.job_id: until_begun(order.record, now) for order in orders}
    batch = traces.Batch({order.job_id: order.record for order in orders}, now)
    answered: list[str] = []
    try:
        with all_staged:  # a member's inputs are looked at until all are solved
            members = [_member(card, order, bench) for order in orders]
            load_ms = 1e3 * (time.perf_counter() - begun) / len(members)
            options = members[0][2]
            limit_s = min(float(order.record["time_limit_s"]) for order in orders)
            batch.enter("solve")
            solved = joint([problem for _, problem, _ in members], options, Deadline(limit_s))
        batch.enter("certify", sum(one[0].timings_ms["certify"] for one in solved if one) / 1e3)
        batch.enter("store")
        pairs = [(order, one) for (order, _, _), one in zip(members, solved, strict=True) if one is not None]
        for part in _stored(pairs, {one: {**before, "load": load_ms} for one, before in waited.items()}, bench):
            answered += [ending.job_id for ending in part]
            yield part
    except InputChanged as error:  # as of a job by itself: what is on the device is to be believed no more
        raise DeviceLost(f"{type(error).__name__}: {error}") from error
    except Exception as error:  # whose fault it is shows when each is solved by itself
        log.warning("of a batch of %d jobs of %s what is left is solved one by one: %r", len(orders), card.name, error)
    finally:
        batch.end(answered)


def _stored(
    pairs: Sequence[tuple[Order, tuple[Solution, Certificate]]], spent: Mapping[str, dict[str, float]], bench: Bench
) -> Iterator[list[Ending]]:
    """The endings of solved jobs, in parts as `endings` has them.

    Raises what keeps one of them from being written down; those before it are yielded first.
    """
    part, since = list[Ending](), time.monotonic()
    for order, solved in _kept(pairs, spent, bench):
        try:
            part.append(concluded(order, solved, bench))
        except Exception:
            if part:
                yield part
            raise
        if time.monotonic() - since > FLUSH_S:
            whole, part, since = part, [], time.monotonic()
            yield whole
    if part:
        yield part


def _kept(
    pairs: Sequence[tuple[Order, tuple[Solution, Certificate]]], spent: Mapping[str, dict[str, float]], bench: Bench
) -> Iterator[tuple[Order, Solved]]:
    """Solved jobs whose short arrays are kept, some at a time, so that the first does not wait for all."""
    for start in range(0, len(pairs), KEPT_AT_ONCE):
        some = [
            (order, Solved(solution, certificate, spent[order.job_id] | solution.timings_ms))
            for order, (solution, certificate) in pairs[start : start + KEPT_AT_ONCE]
        ]
        sound = [(one, order.record["owner"]) for order, one in some if one.certificate.holds is not False]
        keep_ahead(sound, bench.store)
        yield from some


def _member(card: Solver, order: Order, bench: Bench) -> tuple[Order, Any, Any]:
    """A job, its problem and its options."""
    with told_before(order.record):
        return order, *loaded(card, order, bench)
