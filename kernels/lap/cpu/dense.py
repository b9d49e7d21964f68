"""Dijkstra's search by whole rows, for when shortlists do not help (costs like products, tight clusters).

Every row of the tree is swept whole, and the nearest column is found by block minima; there is no heap. `keys[j]` is
the distance of a column that was reached and not scanned, inf otherwise; `open_price[j]` is its price, or so low once
it was scanned that no length through it is below inf.
"""

from typing import Any

from kernels.lap.cpu.shortlist import BLOCK, State, inner
from kernels.problems.arrays import Amounts


@inner
def relax(s: State, i: int, floor: Any, base: Any, own: Any, open_price: Amounts) -> None:
    """Sweep row i and lower keys and parents. Written without branches and minima, so that it vectorises."""
    row, keys, parent, sign = s.cost[i], s.keys, s.parent, s.sign
    for j in range(s.n_cols):
        length = base + ((row[j] * sign - open_price[j]) - own)
        length = floor if length < floor else length
        key, before = keys[j], parent[j]
        parent[j] = i if length < key else before
        keys[j] = length if length < key else key


@inner
def least_key(s: State) -> Any:
    """Fill the block minima of the keys, and return the least of all. Sixteen minima side by side, then one."""
    keys, side, least = s.keys, s.scratch, s.inf
    whole = s.n_cols // BLOCK
    for block in range(whole):
        first = block * BLOCK
        for t in range(16):
            side[t] = min(keys[first + t], keys[first + 16 + t])
        for t in range(4):
            side[t] = min(min(side[t], side[t + 4]), min(side[t + 8], side[t + 12]))
        s.block_min[block] = min(min(side[0], side[1]), min(side[2], side[3]))
        least = min(least, s.block_min[block])
    low = s.inf
    for j in range(whole * BLOCK, s.n_cols):
        low = min(low, keys[j])
    s.block_min[whole] = low
    return min(least, low)


@inner
def nearest(s: State) -> int:
    """The column with the least key, a free one if there is a choice; -1 when every key is inf."""
    low, found = least_key(s), -1
    if low == s.inf:
        return -1
    for block in range(s.n_cols // BLOCK + 1):
        if s.block_min[block] == low:
            for j in range(block * BLOCK, min(s.n_cols, block * BLOCK + BLOCK)):
                if s.keys[j] == low:
                    if s.row_of[j] < 0:
                        return j
                    if found < 0:
                        found = j
    return found


@inner
def find_path_by_rows(s: State, source: int) -> tuple[int, int]:
    """Search from free row `source`; return (its free column or -1, n_scanned)."""
    open_price = s.reduced
    shut = s.shut
    for j in range(s.n_cols):
        s.keys[j] = s.inf
        open_price[j] = s.v[j]
    n_scanned, i = 0, source
    floor, base, own = -s.inf, s.v[0] * 0, s.v[0] * 0
    while True:
        relax(s, i, floor, base, own, open_price)
        j = nearest(s)
        if j < 0:
            return -1, n_scanned
        floor = base = s.keys[j]
        s.distance[j] = floor
        if s.row_of[j] < 0:
            return j, n_scanned
        s.keys[j], open_price[j] = s.inf, shut
        s.scanned[n_scanned] = j
        n_scanned += 1
        i = s.row_of[j]
        own = s.cost[i, j] * s.sign - s.v[j]
