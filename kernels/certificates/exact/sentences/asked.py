"""What sentences are worked out from: the problem as it was given, and the claim."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs
from kernels.problems.arrays import Array, Csr

COUNT = "\0"
"""Where any whole number may stand."""


@dataclass(frozen=True)
class Asked:
    """One answer and its problem."""

    inputs: Inputs
    options: Mapping[str, Any]
    claim: Claim

    @property
    def listed(self) -> Mapping[str, Any] | None:
        """What the facts list of each problem of several."""
        found = self.claim.facts.get("problems")
        return found if isinstance(found, dict) and "terminations" in found else None

    def array(self, name: str) -> Array:
        """An input that is an array, or the values of a sparse one; nothing where there is none."""
        found = self.inputs.get(name)
        return np.zeros(0) if found is None else found.values if isinstance(found, Csr) else found

    def whole(self, *names: str) -> bool:
        """Whether all numbers of these inputs are integers."""
        return all(self.array(name).dtype.kind in "iub" for name in names if name in self.inputs)

    @property
    def proved(self) -> bool:
        """Whether an optimum may be said: the word, or no gap where the search was stopped."""
        verified = self.claim.facts.get("verified") is not False
        return verified and (self.claim.optimal or (self.claim.termination == "stopped" and self.gap_closed))

    @property
    def gap_closed(self) -> bool:
        """Whether no more than rounding is left of the gap."""
        claim = self.claim
        return claim.gap_abs == 0 or (claim.gap_rel is not None and claim.gap_rel <= 1e-9)

    def best_bounds(self, known: tuple[str, ...]) -> list[str]:
        """The names of the largest of the bounds that the certificate checked."""
        checked = self.claim.facts.get("bounds_checked")
        if not isinstance(checked, dict) or not checked:
            return []
        most = max(checked.values())
        return [name for name, value in checked.items() if value == most == self.claim.bound and name in known]
