"""What a certificate says of each problem of a batch, as bytes in the stored document: a list of numbers or of words.

A thousand problems have three thousand numbers and a thousand words. As JSON these are 70 KB that a worker writes,
Redis passes on and who answers reads; as bytes in base64 they are half of that, and nobody reads them number by number.

    "certificate": {"facts": {"problems": {"terminations": null, "gaps": null}}}, ...,
    "folded": {"terminations": {"words": ["optimal"], "dtype": "|u1", "shape": [1000], "data": base64},
               "gaps": {"dtype": "<f8", "shape": [1000], "data": base64}}

A document without `folded` has its lists in their place, as those that earlier releases stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Array
from workers.jobs.job import Damaged
from workers.store.inline import pack, unpack

KEY = "folded"
WORTH_ENTRIES = 64
MOST_WORDS = 256


@dataclass(frozen=True)
class Folded:
    """A list as an array: of numbers, where NaN stands for null, or of the places of its words."""

    array: Array
    words: tuple[str, ...] | None = None

    @classmethod
    def of(cls, values: Any) -> "Folded | None":
        """Of a list of floats and nulls, or of words; None where it is another, or short. What is not finite is null:
        JSON has no other word for it."""
        if not isinstance(values, list) or len(values) < WORTH_ENTRIES:
            return None
        if isinstance(values[0], str) and values.count(values[0]) == len(values):  # as most often: all are optimal
            return cls(np.zeros(len(values), np.uint8), (values[0],))
        kinds = set(map(type, values))
        if kinds <= {float, type(None)}:
            array = np.array(values, np.float64)
            array[~np.isfinite(array)] = np.nan
            return cls(array)
        if kinds == {str} and len(words := sorted(set(values))) <= MOST_WORDS:
            places = {word: place for place, word in enumerate(words)}
            return cls(np.fromiter(map(places.__getitem__, values), np.uint8, len(values)), tuple(words))
        return None

    @classmethod
    def heard(cls, entry: Mapping[str, Any]) -> "Folded":
        """Of `told`. Raises Damaged."""
        try:
            array, words = unpack(entry), tuple(entry["words"]) if "words" in entry else None
            if array.ndim != 1 or array.dtype != (np.float64 if words is None else np.uint8):
                raise ValueError(f"an array of {array.dtype} in {array.ndim} dimensions")
            if words is not None and array.size and array.max() >= len(words):
                raise ValueError(f"{len(words)} words and one of place {array.max()}")
        except (KeyError, ValueError, TypeError, AttributeError) as wrong:
            raise Damaged("what was stored of a batch's problems cannot be read") from wrong
        return cls(array, words)

    def told(self) -> dict[str, Any]:
        """As JSON can carry it."""
        return pack(self.array) if self.words is None else {"words": self.words, **pack(self.array)}

    def values(self) -> list[Any]:
        """The list."""
        if self.words is not None:
            return [self.words[place] for place in self.array.tolist()]
        values: list[Any] = self.array.tolist()
        for k in np.flatnonzero(np.isnan(self.array)).tolist():
            values[k] = None
        return values


def fold(document: dict[str, Any]) -> dict[str, Any]:
    """A document as it is stored."""
    problems = problems_of(document)
    found = {name: one for name, values in problems.items() if (one := Folded.of(values)) is not None}
    if not found:
        return document
    kept = with_problems(document, {**problems, **dict.fromkeys(found)})
    return {**kept, KEY: {name: one.told() for name, one in found.items()}}


def unfolded(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A stored document with its lists in their place. Raises Damaged."""
    bare, found = taken_apart(document)
    if not found:
        return bare
    return with_problems(bare, {**problems_of(bare), **{name: one.values() for name, one in found.items()}})


def taken_apart(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Folded]]:
    """A stored document without the lists that were folded, null in their place; and these. Raises Damaged."""
    if KEY not in document:
        return document, {}
    if not isinstance(document[KEY], Mapping) or not document[KEY].keys() <= problems_of(document).keys():
        raise Damaged("what was stored of a batch's problems has no place in its document")
    bare = {name: value for name, value in document.items() if name != KEY}
    return bare, {name: Folded.heard(entry) for name, entry in document[KEY].items()}


def problems_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The lists about each problem of a batch, by name; none where there is no batch."""
    problems = ((document.get("certificate") or {}).get("facts") or {}).get("problems")
    return problems if isinstance(problems, Mapping) else {}


def with_problems(document: Mapping[str, Any], problems: Mapping[str, Any]) -> dict[str, Any]:
    """A document with other lists about its problems."""
    certificate = document["certificate"]
    facts = {**certificate["facts"], "problems": dict(problems)}
    return {**document, "certificate": {**certificate, "facts": facts}}
