"""A share of the answers of a GPU's worker is certified again on the CPU, after they were answered.

The problem is built anew from what the job was submitted with, and not from the memory that the solver and the first
certificate read. A certificate of the GPU shares no code with this one. Where the two contradict each other, one of
them, a solver, the way of the input to it or the hardware is wrong: that is logged as critical and counted, and is what
an alarm is set on (docs/deploying.md).
"""

import json
import logging
import os
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from kernels import SOLVERS, Certificate, Solution, disagreement
from workers.jobs.records import Order, Records
from workers.store.inline import together
from workers.store.store import Store

MOST_WAITING = 2
"""Answers that are kept in memory for their audit; while so many wait, others are passed over."""
NICENESS = 15
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Audited:
    """An answer to be certified again: the job with all that came along, what was found, and what was said of it."""

    order: Order
    solution: Solution
    certificate: Certificate


class Auditor:
    """Draws answers, and certifies them one after another in a thread of low priority.

    Args:
        share: of the answers that have a certificate, in [0, 1].
        draw: numbers in [0, 1).
    """

    def __init__(self, share: float, records: Records, store: Store, draw: Callable[[], float] = random.random) -> None:
        self._share, self._records, self._store, self._draw = share, records, store, draw
        self._drawn: dict[str, Audited] = {}
        self._waiting: queue.Queue[Audited] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None

    def note(self, order: Order, solution: Solution, certificate: Certificate) -> None:
        """Draw whether this answer will be audited, once it was given."""
        if certificate.holds and self._draw() < self._share:
            self._drawn[order.job_id] = Audited(order, solution, certificate)

    def answered(self, job_id: str, done: bool) -> None:
        """The answer was given, or (not `done`) belongs to another execution."""
        audited = self._drawn.pop(job_id, None)
        if audited is None or not done:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="auditor", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(audited)
        except queue.Full:
            log.info("the answer of %s is not audited: others wait for it already", job_id)

    def settle(self) -> None:
        """Wait until every audit that was begun has ended."""
        self._waiting.join()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            audited = self._waiting.get()
            try:
                self._audit(audited)
            except Exception:  # the input may be gone by now, or Redis away: neither says anything of the answer
                log.exception("the answer of %s could not be audited", audited.order.job_id)
            finally:
                del audited
                self._waiting.task_done()

    def _audit(self, audited: Audited) -> None:
        order, record = audited.order, audited.order.record
        card, references = SOLVERS[record["solver"]], together(json.loads(record["inputs"]), order.data)
        inputs = {name: self._store.resolve(reference, record["owner"]) for name, reference in references.items()}
        problem = card.build(inputs, card.options(**json.loads(record["options"])))
        found = card.certify(problem, audited.solution)
        wrong = disagreement(audited.certificate, found, bool(getattr(problem, "maximize", False)))
        self._records.count("audits_differed" if wrong else "audits_agreed", card.name)
        if wrong:
            log.critical("the certificates of %s contradict each other: %s", order.job_id, "; ".join(wrong))
