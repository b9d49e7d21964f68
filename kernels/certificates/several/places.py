"""Where the rows of a plan go, held against the plan that is certified: means of points, and labels with their shares.

Recomputed from the answer's own plan, or from its potentials where it has none, block by block. What is shown is
rounded where the plan is (float32 at worst), so that it is told how far it is off; an answer that is further off than
WITHIN is none. A label must be that of the largest share, but for as much.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_sums import measure
from kernels.certificates.transport_units import near_one
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Solution, unheard

NAMES = ("barycentric", "label", "label_share")
WITHIN = 1e-3


def shows(arrays: Any) -> bool:
    """Whether an answer says where its rows go."""
    return any(name in arrays for name in NAMES)


def checked(problem: UnbalancedTransport, solution: Solution, certificate: Certificate) -> Certificate:
    """The certificate, with how far what is shown is off; it does not hold where that is too far."""
    if not certificate.holds or not shows(solution.arrays) or problem.batch is not None:
        return certificate
    scaled, given, *_ = near_one(problem, solution.arrays)
    places = Places(problem, solution.arrays)
    if not places.wrong:
        measure(Answer(scaled, given), places, unheard)  # type: ignore[arg-type]  # it looks as Shown does
    facts = {name: off if np.isfinite(off) else None for name, off in places.off.items()}
    held = not places.wrong and all(off <= WITHIN for off in places.off.values())  # False for NaN
    if held:
        return replace(certificate, facts=certificate.facts | facts)
    why = places.wrong or "where rows are said to go is not where the plan leads"
    return replace(certificate, holds=False, proved=f"nothing: {why}", facts=certificate.facts | facts)


class Places:
    """Looks at the plan as it goes by, block of rows by block of rows; `entries` asks for that."""

    def __init__(self, problem: UnbalancedTransport, arrays: Any) -> None:
        m, self.off, self.entries = problem.shape[0], dict[str, float](), True
        self.means, self.labels, self.shares = (arrays.get(name) for name in NAMES)
        self.y, self.known, self.wrong = problem.y, problem.labels, ""
        if self.means is not None:
            self.off["barycentric_within"] = 0.0
            if self.y is None or self.means.shape != (m, self.y.shape[1]):
                self.wrong = "barycentric has not a point for each row"
            else:
                self.y = self.y.astype(np.float64)
                self.middle = self.y.mean(axis=0)
                self.reach = float(np.abs(self.y - self.middle).max())
        if self.labels is not None or self.shares is not None:
            self.off["label_share_within"] = 0.0
            self.wrong = self.wrong or self._ill_formed(m)

    def _ill_formed(self, m: int) -> str:
        labels, shares = self.labels, self.shares
        if labels is None or shares is None or self.known is None or labels.shape != (m,) or shares.shape != (m,):
            return "labels and their shares are not one for each row"
        if labels.dtype.kind != "i" or labels.min() < -1 or labels.max() > self.known.max():
            return "a label is none of the columns'"
        return ""

    def look(self, part: slice, plan: Array) -> None:
        """Compare some rows."""
        mass = plan.sum(axis=1)
        held = mass > 0
        shares = plan[held] / mass[held, None]
        if self.means is not None and self.y is not None:
            found, wanted = self.means[part].astype(np.float64) - self.middle, shares @ (self.y - self.middle)
            away = np.abs(found[held] - wanted).max(initial=0.0)
            away = away if np.isnan(found[~held]).all() else np.inf
            self._note("barycentric_within", away / self.reach if self.reach else away)
        if self.labels is not None and self.shares is not None and self.known is not None:
            labels, told = self.labels[part], self.shares[part].astype(np.float64)
            if (labels[~held] != -1).any() or (told[~held] != 0).any() or (labels[held] < 0).any():
                self._note("label_share_within", np.inf)
                return
            each = np.zeros((len(shares), int(self.known.max()) + 1))
            for code in np.unique(self.known).tolist():
                each[:, code] = shares[:, self.known == code].sum(axis=1)
            own = np.take_along_axis(each, labels[held, None].astype(np.int64), axis=1)[:, 0]
            best = each.max(axis=1, initial=0.0)
            self._note("label_share_within", np.maximum(np.abs(told[held] - own), best - own).max(initial=0.0))

    def _note(self, name: str, off: Any) -> None:
        self.off[name] = float(np.maximum(self.off[name], off))  # NaN stays
