"""What came with a request, on its way into the store."""

from app.intake.multipart import Part
from app.intake.visit import Visit
from kernels import Array, Csr
from workers.jobs.job import InputRef
from workers.store.codec import Reading
from workers.store.reference import frozen, names


class Keeper:
    """Keeps the files and arrays of one request, which go with its job.

    It knows nothing of who gathers them: arrays that hold on to what holds on to them would stay until the collector
    comes, which is seldom.
    """

    def __init__(self, visit: Visit) -> None:
        self._store, self._owner, self._laid = visit.desk.store, visit.owner, visit.laid
        self._timed = visit.timed
        self._kept: set[str] = set()

    def keep(self, part: Part, reading: Reading) -> InputRef:
        """Keep the file, once however many inputs are read from it."""
        if part.name not in self._kept:
            if part.sink.is_long:
                with self._timed("hash"):
                    part.sink.flush()
            if self._laid.wanted:
                how = self._laid.counted, not self._laid.at_once
                self._laid.names.append(self._store.lay(part.sink, self._owner, *how))
            else:
                self._store.adopt(part.sink, self._owner, brought=True)
            self._laid.brought += names({"": frozen(part.sink.digest, reading)}, self._owner)
            self._kept.add(part.name)
        return frozen(part.sink.digest, reading)

    def put(self, value: Array | Csr) -> InputRef:
        """Keep an array or a sparse matrix."""
        reference = self._store.put(value, self._owner, brought=True)
        self._laid.brought += names({"": reference}, self._owner)
        return reference
