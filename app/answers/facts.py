"""What a certificate says of each problem of a batch, as arrays beside the answer's own, for who asks for it.

A thousand problems have three thousand numbers and a thousand words in the document, and a reader of JSON takes longer
over them than over all else in it. `Accept: application/x-safetensors;facts=arrays` has each such list as an array.
"""

from collections.abc import Mapping
from typing import Any

from kernels import Array
from workers.store.folded import Folded, problems_of, taken_apart, with_problems

ASKED = "facts=arrays"
PREFIX = "certificate.facts.problems."


def taken_out(stored: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Array]]:
    """A stored document, of whose lists about each problem those of one type have become arrays; and these.

    NaN stands for null. A list of words is an array of places among the words that stay in the document.
    """
    bare, found = taken_apart(stored)
    problems = problems_of(bare)
    for name, values in problems.items():
        if name not in found and (one := Folded.of(values)) is not None:
            found[name] = one
    if not found:
        return bare, {}
    rest = {name: values for name, values in problems.items() if name not in found}
    words = {name: {"words": one.words} for name, one in found.items() if one.words is not None}
    return with_problems(bare, {**rest, **words}), {PREFIX + name: one.array for name, one in found.items()}
