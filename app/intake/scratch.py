"""Where fetched bytes go: to the place that whoever writes them has ready, else through memory of this request."""

from workers.store.upload import Writer

SCRATCH = 256 << 10


class Whole:
    """A body that is one upload, as `fetching.Into`."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._scratch = writer, bytearray()

    def place(self) -> memoryview:
        """Memory for the next bytes. Raises StoreFull."""
        found = self._writer.place()
        if found is not None:
            return found
        self._scratch = self._scratch or bytearray(SCRATCH)
        return memoryview(self._scratch)

    def came(self, view: memoryview) -> None:
        """They are there. Raises UploadTooLarge, StoreFull."""
        if view.obj is self._scratch:
            self._writer.write(view)
        else:
            self._writer.came(len(view))
