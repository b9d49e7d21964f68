"""What an API and its clerks take of memory, looked at all the time beside whatever is asked of them."""

import contextlib
import threading
from pathlib import Path

import psutil


class Weight:
    """Growth since this was made, in bytes of memory that is no file's.

    Attributes:
        grown: the most that one process of each kind ("api", "clerk") grew by.
        together: the most that all of them had grown by at one time.
    """

    def __init__(self, pid: int, every_s: float = 0.05) -> None:
        self._api, self._every_s, self._ended = psutil.Process(pid), every_s, threading.Event()
        self._first = self._now()
        self.grown, self.together = dict.fromkeys(("api", "clerk"), 0), 0
        self._thread = threading.Thread(target=self._watch)

    def _now(self) -> dict[int, tuple[str, int]]:
        found = {}
        for one in (self._api, *self._api.children()):
            with contextlib.suppress(OSError, StopIteration, psutil.Error):
                kind = "api" if one.pid == self._api.pid else "clerk" if "app.intake.clerk" in one.cmdline() else ""
                lines = Path(f"/proc/{one.pid}/status").read_text().splitlines()
                held = next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
                if kind:
                    found[one.pid] = kind, held
        return found

    def _watch(self) -> None:
        usual = min((held for kind, held in self._first.values() if kind == "clerk"), default=0)
        while not self._ended.wait(self._every_s):
            more = []
            for pid, (kind, held) in self._now().items():
                more.append(held - self._first.get(pid, (kind, usual))[1])
                self.grown[kind] = max(self.grown[kind], more[-1])
            self.together = max(self.together, sum(more))

    def __enter__(self) -> "Weight":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
