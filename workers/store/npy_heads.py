"""The heads of .npy files in the few words that NumPy writes, read and worded without it.

NumPy reads a head by the compiler of Python, 0.15 ms in a process that waited, and takes 0.05 to word one. Both are
remembered for forms that come again. Frames of a tracker never do: no two calls have as many points.
"""

import functools
import io
import re
from typing import Any

import numpy as np

EXTENT = rb"(?:0|[1-9][0-9]{0,17})"
USUAL = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(<[iuf][248]|\|[biu]1)', 'fortran_order': (True|False), "
    rb"'shape': \((?:|(" + EXTENT + rb"),|(" + EXTENT + rb"(?:, " + EXTENT + rb")+))\), \} *\n",
    re.DOTALL,
)
"""A head of version 1.0; its length is for who asks to look at."""
ALIGNED = 64
GROWING = 21
"""Digits that NumPy leaves room for in an extent, so that a file may grow."""
PROBES = ((np.dtype("<f8"), ()), (np.dtype("<i8"), (3,)), (np.dtype("<f4"), (10, 60)), (np.dtype("|b1"), (1, 2, 30)))
Header = tuple[tuple[int, ...], bool, "np.dtype[Any]"]
"""Shape, whether columns come first, and dtype."""


def heard(head: bytes) -> Header | None:
    """What a whole head says, as NumPy reads it; None where it is not as NumPy writes it."""
    told = USUAL.fullmatch(head)
    if told is None:
        return None
    kind, order, line, extents = told.groups()
    found = (line,) if line is not None else () if extents is None else extents.split(b", ")
    return tuple(map(int, found)), order == b"True", np.dtype(kind.decode())


def worded(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """What NumPy writes before an array of that type and shape, whose rows come first."""
    return _quickly(dtype, shape) if _agrees() and _is_plain(dtype, shape) else _by_numpy(dtype, shape)


def _is_plain(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    return dtype.kind in "biuf" and all(type(extent) is int for extent in shape)


def _quickly(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape!r}, }}"
    growing = GROWING - len(repr(shape[0])) if shape else 0
    length = len(text) + growing + 1
    length += ALIGNED - (length + 10) % ALIGNED
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.encode().ljust(length - 1) + b"\n"


def _by_numpy(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    head = io.BytesIO()
    told = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, told)
    return head.getvalue()


@functools.cache
def _agrees() -> bool:
    """Whether this NumPy writes them so; earlier ones leave no room to grow."""
    return all(_quickly(*probe) == _by_numpy(*probe) for probe in PROBES)
