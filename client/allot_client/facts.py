"""What a certificate says of each problem of a batch, which comes as arrays beside the answer's: JSON takes longer."""

from __future__ import annotations

from typing import Any

import numpy as np

from allot_client.arrays import Array

ASKED = "facts=arrays"
"""Of the media type: a service that does not know it leaves the lists in the document."""
PREFIX = "certificate.facts.problems."


def put_back(document: dict[str, Any], arrays: dict[str, Array]) -> None:
    """The lists where they stand in a document that has them: None for NaN, words for their places."""
    for name in [name for name in arrays if name.startswith(PREFIX)]:
        problems, field = document["certificate"]["facts"]["problems"], name.removeprefix(PREFIX)
        values = arrays.pop(name)
        if field in problems:
            words = problems[field]["words"]
            alike = len(words) == 1 and not values.any()
            problems[field] = words * len(values) if alike else [words[place] for place in values.tolist()]
        elif np.isnan(values).any():
            problems[field] = [None if value != value else value for value in values.tolist()]
        else:
            problems[field] = values.tolist()
