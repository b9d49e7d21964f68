"""Inputs as allot_client sends them, of the files that its caller named: an answer is for what was sent.

It widens types that the service solves no problems in. For cosine and correlation it sends points whose squared
distances these are, so that no matrix has to be made (allot_client/points.py).
"""

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from allot_client.points import AS_POINTS, as_points

from kernels import Array, Csr
from workers.store.digests import digest_of


def as_points_sent(document: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Array | Csr]:
    """`inputs`, where points by their directions were sent: those of `x` and `y` that have the stated digests."""
    clouds = {name: inputs[name] for name in ("x", "y") if getattr(inputs.get(name), "ndim", 0) == 2}
    if document["solver"] == "uot" and clouds:
        stated = document.get("input_digests") or {}
        for metric in AS_POINTS:
            with contextlib.suppress(ValueError):  # a row without a direction
                made = {name: as_points(cloud, metric, name) for name, cloud in clouds.items()}
                if all(is_stated(points, stated.get(name)) for name, points in made.items()):
                    return {**inputs, **made}
    return dict(inputs)


def widened(value: Array, reference: Mapping[str, Any]) -> Array:
    """An array in the type that is stated, where that holds each number of its own."""
    with contextlib.suppress(TypeError):  # no type of NumPy's
        wide = np.dtype(reference.get("dtype") or value.dtype)
        return value.astype(wide, copy=False) if np.can_cast(value.dtype, wide) else value
    return value


def is_stated(array: Array, reference: Any) -> bool:
    """Whether an array that came in a job has the digest of that reference."""
    stated = digest_in(reference) if isinstance(reference, Mapping) else reference
    return isinstance(stated, str) and digest_of(as_kept(array), stated) == stated


def digest_in(reference: Mapping[str, Any]) -> str | None:
    """What a reference names."""
    return reference.get("blob") or reference.get("digest")


def as_kept(array: Array) -> bytes:
    """The bytes that the service keeps of an array that came in a job."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    return file.getvalue()
