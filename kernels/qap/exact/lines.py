"""Where symmetry lets a device's tree leave places out, and the line of a node that it leaves the least work below."""

import numpy as np

from kernels.problems.arrays import Integers, Mask, Records
from kernels.qap.exact import branch, symmetry
from kernels.qap.exact.log import Side

FEW_FIXED = 3
"""Symmetry is looked for below nodes with so many facilities fixed, and not deeper: hardly any is left there."""


class TreeLines:
    """What symmetry says of nodes, which are records of gpu_branch.NODE; what was found out once is kept."""

    def __init__(self, n: int, alike: tuple[list[Integers], list[Integers]]) -> None:
        self._n, self._alike = n, {"facilities": alike[0], "locations": alike[1]}
        self._classes: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        self._groups: dict[tuple[str, tuple[int, ...]], list[Integers]] = {}
        self._twins: dict[tuple[str, tuple[int, ...], int], Side | None] = {}

    def choose(self, node: Records, leaders: Integers, room: int) -> None:
        """Give the node the line with the least work below it, of each class of equals one: the kernel knows none.

        Args:
            leaders: (m, m) int64, which the kernel left. room: the node's.
        """
        m = len(leaders)
        first = [self.first_of_equals(node, side, m) for side in self._alike]
        line = int(branch.choose_line(leaders, room, first[0], first[1]))
        node["line"] = line
        node["leaders"][:m] = leaders[line] if line < m else leaders[:, line - m]

    def first_of_equals(self, node: Records, side: str, m: int) -> Mask:
        """(m,) bool: one of each class of the node's locations (facilities) that symmetry makes equal."""
        held = self._held(node, side)
        group = self._moving(side, held)
        if not group:
            return np.ones(m, np.bool_)
        if (side, held) not in self._classes:
            left = node[side][:m].astype(np.int64)
            self._classes[side, held] = sorted(symmetry.representatives(left, group, np.array(held, np.int64)))
        return np.isin(node[side][:m], self._classes[side, held])

    def twin(self, node: Records, side: str, index: int) -> Side | None:
        """How a log names the symmetry that maps one of those first ones to that location (facility); None: unknown."""
        held = self._held(node, side)
        if (side, held, index) not in self._twins:
            firsts, group = set(self._classes[side, held]), self._moving(side, held)
            g = symmetry.mapping(firsts, index, group, np.array(held, np.int64))
            name = None if g is None else (int(side == "locations"), g.astype(np.uint8).tobytes())
            self._twins[side, held, index] = name
        return self._twins[side, held, index]

    def symmetric(self, nodes: Records) -> list[int]:
        """Those of the nodes below which symmetry makes places equal, as far as it is looked for."""
        sides = [side for side, group in self._alike.items() if len(group) > 1]
        if not sides:
            return []
        few = np.flatnonzero((nodes["fixed"] >= 0).sum(axis=1) <= FEW_FIXED).tolist()
        return [at for at in few if any(self._moving(side, self._held(nodes[at], side)) for side in sides)]

    def _held(self, node: Records, side: str) -> tuple[int, ...]:
        """The locations (facilities) that are taken, in order."""
        fixed = node["fixed"][: self._n]
        return tuple(sorted(fixed[fixed >= 0].tolist()) if side == "locations" else np.flatnonzero(fixed >= 0).tolist())

    def _moving(self, side: str, held: tuple[int, ...]) -> list[Integers]:
        """The symmetries of locations (facilities) that leave these in place, if there are any but the identity."""
        if (side, held) not in self._groups:
            at = list(held)
            group = [g for g in self._alike[side] if (g[at] == at).all()]
            self._groups[side, held] = group if len(group) > 1 else []
        return self._groups[side, held]
