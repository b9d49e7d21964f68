"""All steps of a search over lists in one call, where nobody listens: each call from Python takes 5 to 20 us.

    seat_listed     rows take columns at their least (`near_seats.py`)
    new_both        the lists by column (`near_back.py`)
    augment_both    paths from both ends (`near_both.py`)
    close           u_i = c_ij - v_j

Who listens to a solve hears of its paths, and waits for these calls.
"""

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import CROWDS, Near, empty_lists
from kernels.lap.cpu.near_back import new_both
from kernels.lap.cpu.near_both import augment_both
from kernels.lap.cpu.near_path import SHARE
from kernels.lap.cpu.near_rows import list_rows
from kernels.lap.cpu.near_seats import seat_listed
from kernels.lap.cpu.shortlist import NIL, NO, jit
from kernels.lap.cpu.whole import Whole, new_whole
from kernels.lap.cpu.whole_path import FEW, close, list_free
from kernels.problems.arrays import AnyIntegers, Costs, Indices

DONE, LEFT, TIED, SEATED = range(4)
"""The duals are closed; rows are left, for steps that are called one by one; costs tie too much for lists; rows are in
their seats without lists."""


@jit
def list_and_search(
    cost: Costs, limits: Costs, bits: AnyIntegers, v: Costs, u: Costs, col_of: Indices, work: int
) -> tuple[int, Whole, Near]:
    """`search` over lists that are made before, of a new one: see `whole.new_whole`. Also TIED."""
    s = new_whole(cost, limits, bits, v, col_of)
    near = empty_lists(s)
    if near.window[0] <= 0:
        return TIED, s, near
    list_rows(s, near, NIL, NIL, u.size)
    return search(s, near, u, work), s, near


@jit
def search(s: Whole, near: Near, u: Costs, work: int) -> int:
    """Seat rows and let those left over take paths, until about `work` entries were read; row duals into `u`.

    DONE, LEFT, or what `augment_both` says where the search cannot go on.
    """
    s, near = borrowed(s), borrowed(near)
    seat_listed(s, near)
    n_free = list_free(s)
    if near.seen[CROWDS] * SHARE > u.size or n_free * FEW > u.size:
        return LEFT
    if n_free > 0:
        at = augment_both(s, near, new_both(s, near), NIL, n_free, work)
        if at < n_free:
            return at if at < 0 else LEFT
    close(s, u, NO)
    return DONE
