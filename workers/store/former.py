"""References of the days when the form of a blob was noted beside its bytes, and not in the record of a job."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workers.jobs.job import InputRef
from workers.store.codec import Form, InvalidUpload, Limits, read
from workers.store.reference import blobs, frozen, shown


def former_form(
    reference: InputRef, note: Callable[[str], Mapping[str, Any]], path_of: Callable[[str], Path], limits: Limits
) -> InputRef:
    """Such a reference with the form that its bytes had then.

    Args:
        note: what was noted beside a blob.
        path_of: a file with its bytes.
    """
    if reference["kind"] == "csr":
        return shown(reference)
    (blob,) = blobs(reference)
    digest, noted = blob["blob"], note(blob["blob"])
    form = Form(noted.get("format"), noted.get("member"), filename=noted.get("filename", ""))
    if form.format == "raw":
        form = replace(form, dtype=noted["raw_dtype"], shape=tuple(noted["raw_shape"]))
    path = path_of(digest)
    try:
        return frozen(digest, read(path, form, digest, limits))
    except InvalidUpload:  # a member was let pass then where there is only one matrix
        return frozen(digest, read(path, replace(form, member=None), digest, limits))
