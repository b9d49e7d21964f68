"""The arrays of an answer as one file, npz or safetensors, sent straight from where they are mapped.

Nothing is written aside and nothing is copied: a file is headers, and slices of the arrays' own memory between them. A
safetensors file also brings the answer's document along, as JSON in the metadata `document`.
"""

import functools
import zipfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from mmap import PAGESIZE
from typing import Any

import numpy as np
from fastapi import Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from app.http.media import NPZ, PACKED
from kernels import READ, Array, advise
from workers.store.codec import write_npy
from workers.store.layouts import TENSORS

SLICE = 4 << 20
"""More than a connection takes at once: of an npz each slice costs a change of threads."""
LONG = 64 << 20
"""Bytes of an array from which threads bring what comes next into its mapping, while the bytes before that are
sent."""
STEP, AHEAD = 16 << 20, 4
"""Bytes that a thread brings in one go, and how many such steps ahead."""
BRINGERS = 2
SHORT = 1 << 20
"""Bytes of a file that is put together and sent in one go: to copy them takes less time than to send slices."""
NAMES = {np.dtype(code): name for name, code in reversed(TENSORS.items()) if name != "BF16"}


def packed(arrays: Mapping[str, Array], media: str, name: str, headers: Mapping[str, str], told: bytes) -> Response:
    """The response. `told` is the answer's document, `name` that of the file without its suffix."""
    suffix = PACKED[media]
    said = {**headers, "Content-Disposition": f'attachment; filename="{name}.{suffix}"'}
    if media == NPZ:
        return Made(npz(arrays), 200, headers=said, media_type=media)
    head = safetensors_head(arrays, {"document": told.decode()})
    size = len(head) + sum(array.nbytes for array in arrays.values())
    said["Content-Length"] = str(size)
    slices = safetensors(head, arrays.values())
    if size <= SHORT:
        return Response(b"".join(slices), 200, headers=said, media_type=media)
    as_it_lies = all(array.flags.c_contiguous and array.dtype.isnative for array in arrays.values())
    if as_it_lies:
        return Slices(slices, 200, headers=said, media_type=media)
    return Made(slices, 200, headers=said, media_type=media)


class Made(StreamingResponse):
    """Sends what a generator makes in threads, and lets go of it at the end, or once the client is gone.

    The tasks of the one who leaves hold each other in a ring. The generator would hold its arrays' mappings, and with
    them the room of files that are deleted meanwhile, until Python next looks for rings.
    """

    def __init__(
        self,
        made: Generator[bytes | memoryview, None, None],
        status_code: int,
        headers: Mapping[str, str],
        media_type: str,
    ) -> None:
        super().__init__(made, status_code, headers, media_type)
        self._made = made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._made.close()


class Slices(Response):
    """Sends slices of memory from the event loop: to cut them takes no time.

    Nobody listens meanwhile whether the client is still there: once it is gone the server takes each slice and sends
    nothing. Starlette's own response has a group of tasks for that, half a millisecond an answer.
    """

    def __init__(
        self,
        slices: Iterable[bytes | memoryview],
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        self._slices = slices
        self.status_code, self.media_type, self.background = status_code, media_type, None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of them."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for one in self._slices:
            await send({"type": "http.response.body", "body": one, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if self.background is not None:
            await self.background()


def safetensors_head(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """What stands before the arrays: where each lies, as JSON behind its length."""
    told: dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name, array in arrays.items():
        little = array.dtype.newbyteorder("<")
        told[name] = {"dtype": NAMES[little], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = to_json(told)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def safetensors(head: bytes, arrays: Iterable[Array]) -> Generator[bytes | memoryview, None, None]:
    """The file in slices."""
    yield head
    for array in arrays:
        flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
        yield from _slices(flat.data) if flat.nbytes < LONG else _brought(flat)


def _brought(array: Array) -> Iterator[memoryview]:
    """Slices of it, each in the mapping by then if threads are there to bring it."""
    asked = 0
    for start in range(0, array.nbytes, SLICE):
        while asked < min(array.nbytes, start + AHEAD * STEP):
            _threads().submit(_bring, array[asked : asked + STEP])
            asked += STEP
        yield array[start : start + SLICE].data


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(BRINGERS, "pages")


def _bring(part: Array) -> None:
    address = part.ctypes.data - part.ctypes.data % PAGESIZE
    advise(address, part.ctypes.data + part.nbytes - address, READ)


def npz(arrays: Mapping[str, Array]) -> Generator[bytes | memoryview, None, None]:
    """A zip file of .npy files, not compressed, in slices."""
    out = _Out()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, array in arrays.items():
            pieces = _Out()
            write_npy(pieces, np.ascontiguousarray(array))
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                for piece in pieces.taken():
                    for part in _slices(piece):
                        member.write(part)
                        yield from out.taken()
    yield from out.taken()


class _Out:
    """Takes pieces as a file does, which cannot be sought in, and keeps them until they are taken."""

    def __init__(self) -> None:
        self._held: list[bytes | memoryview] = []

    def write(self, data: bytes | memoryview) -> int:
        self._held.append(data)
        return len(data)

    def flush(self) -> None:
        """There is nothing to flush."""

    def taken(self) -> list[bytes | memoryview]:
        """All that came since the last time."""
        held, self._held = self._held, []
        return held


def _slices(data: bytes | memoryview) -> Iterator[memoryview]:
    view = memoryview(data)
    for start in range(0, len(view), SLICE):
        yield view[start : start + SLICE]
