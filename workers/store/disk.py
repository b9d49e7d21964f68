"""What a full disk means, whoever writes to it."""

import contextlib
import errno
import os
from collections.abc import Iterator

from workers.jobs.job import StoreFull


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Work on the store's disk. Raises StoreFull where that is full, whichever call it is that finds out."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"the store's disk is full: {os.strerror(error.errno)}") from error
        raise
