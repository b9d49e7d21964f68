"""An upload as an array in the memory that it came into: nothing is opened or mapped, and no page is looked for again.

It may not be written to. A long one is good for as long as the upload is open.
"""

import math
from typing import Any

import numpy as np

from kernels import Array
from workers.store.codec import Form, Limits, Reading
from workers.store.handles import Handle, lying
from workers.store.layouts import USUAL_NPY_HEADER, BadLayout, npy_place
from workers.store.upload import Writer


def read_in_place(sink: Writer, form: Form, limits: Limits) -> Reading | None:
    """The one array of a short upload, or of one that was seen as it came: what was seen is noted for the checks of a
    problem.

    None where it is not as it is usually written, or the form claims something: who reads it as any other finds out.
    """
    sight, said = sink.sight, (form.member, form.dtype, form.shape, form.scale)
    whole = sink.short if sight is None else sink.memory
    if whole is None or form.format not in (None, "npy") or any(one is not None for one in said):
        return None
    try:
        kind, shape, offset, by_columns = npy_place(bytes(whole[:USUAL_NPY_HEADER]))
    except BadLayout:
        return None
    if by_columns or not 0 < len(shape) <= 8 or not all(type(extent) is int and extent > 0 for extent in shape):
        return None
    count = math.prod(shape)
    if count > limits.max_elements or offset + count * kind.itemsize != len(whole):
        return None
    found: Array = np.frombuffer(whole, kind, count, offset).reshape(shape)
    if sight is not None:
        sight.tell(found, offset)
    return Reading("npy", None, found)


def handle_of(value: Any, sink: Writer | None) -> Handle | None:
    """Where an array lies that was read so, for another process; None for any other."""
    whole = None if sink is None or not isinstance(value, np.ndarray) else sink.memory
    if sink is None or whole is None or not np.may_share_memory(value, np.frombuffer(whole, np.uint8)):
        return None
    return lying(value, sink.path, sink.size - value.nbytes)
