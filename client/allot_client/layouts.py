"""Layouts: which facility goes to which location, of those facilities that were given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from allot_client.answers import Result, named_pairs
from allot_client.arrays import Array
from allot_client.extents import extents, sent_shapes


def placed(answer: Result) -> Array:
    """The location of each facility that was given.

    Where there are more locations, `permutation` has facilities behind these that nobody gave. They cost nothing and
    take what is left.
    """
    given, _ = answer.home.within or extents(sent_shapes(answer.document))
    return np.asarray(answer.arrays["permutation"])[:given]


@dataclass(frozen=True, repr=False)
class QuadraticResult(Result):
    """A quadratic assignment."""

    @property
    def permutation(self) -> Any:
        """The location of each facility, from 0; of fewer facilities than locations the first ones are those given."""
        return self._array("permutation")

    def pairs(self) -> list[tuple[Any, Any]]:
        """(facility, location) of each facility that was given, by their names where the matrices had names."""
        self._array("permutation")
        return named_pairs(self, placed(self))

    def frame(self) -> Any:
        """The pairs as a pandas DataFrame: a line for each facility."""
        import pandas

        return pandas.DataFrame(self.pairs(), columns=["facility", "location"])
