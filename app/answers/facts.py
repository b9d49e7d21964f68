"""What a certificate says of each problem of a batch, as arrays beside the answer's own, for who asks for it.

A thousand problems have three thousand numbers and a thousand words in the document, and a reader of JSON takes longer
over them than over all else in it. `Accept: application/x-safetensors;facts=arrays` has each such list as an array.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels import Array

ASKED = "facts=arrays"
PREFIX = "certificate.facts.problems."
WORTH_ENTRIES = 64
MOST_WORDS = 256


def taken_out(
    arrays: Mapping[str, Array], document: Mapping[str, Any]
) -> tuple[Mapping[str, Array], Mapping[str, Any]]:
    """Arrays and the document, of whose lists about each problem those of one type have become arrays.

    NaN stands for null. A list of words is an array of places among the words that stay in the document.
    """
    certificate = document["certificate"]
    problems = (certificate.get("facts") or {}).get("problems")
    if not isinstance(problems, Mapping):
        return arrays, document
    more, rest = dict(arrays), dict(problems)
    for name, values in problems.items():
        kinds = set(map(type, values)) if isinstance(values, list) and len(values) >= WORTH_ENTRIES else set()
        if kinds and kinds <= {float, type(None)}:
            more[PREFIX + name] = np.array(values, np.float64)
            del rest[name]
        elif kinds == {str} and len(words := sorted(set(values))) <= MOST_WORDS:
            places = {word: place for place, word in enumerate(words)}
            more[PREFIX + name] = np.fromiter(map(places.__getitem__, values), np.uint8, len(values))
            rest[name] = {"words": words}
    facts = {**certificate["facts"], "problems": rest}
    return more, {**document, "certificate": {**certificate, "facts": facts}}
