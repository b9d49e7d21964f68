"""What `allot serve` tells of its workers while they are not ready yet."""

import time
from collections.abc import Callable, Sequence

from workers.jobs.job import Unavailable


class Start:
    """Says once that jobs wait for the kernels to be compiled, and when they no longer do: the first start may take
    minutes, in which nothing else is seen of it. `workers` tells those that are ready."""

    SILENT_S = 3.0

    def __init__(self, workers: Callable[[], Sequence[object]]) -> None:
        self._workers, self._begun = workers, time.monotonic()
        self._told = self._ready = False

    def over(self) -> bool:
        """Whether a worker has been ready, after which nobody need ask."""
        return self._ready

    def tell(self) -> None:
        """Look, and print what is new."""
        try:
            self._ready = bool(self._workers())
        except Unavailable:
            return
        took = time.monotonic() - self._begun
        if self._ready and self._told:
            print(f"Workers are ready after {took:.0f} s", flush=True)
        elif not self._ready and not self._told and took > self.SILENT_S:
            self._told = True
            print("Workers warm up; the first start compiles for minutes, and jobs wait until then", flush=True)
