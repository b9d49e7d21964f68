"""A binary heap of (key, item) that knows where each item sits, so that a key can be lowered.

`keys`, `items` hold the heap, `place[item]` is the item's position or -1. The caller keeps the size.
"""

from kernels.lap.cpu.shortlist import inner
from kernels.problems.arrays import Amount, Amounts, Indices32


@inner
def push(keys: Amounts, items: Indices32, place: Indices32, size: int, key: Amount, item: int) -> int:
    """Insert `item`, or lower its key to `key`; return the new size."""
    at = place[item]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        above = (at - 1) // 2
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        items[at] = items[above]
        place[items[at]] = at
        at = above
    keys[at] = key
    items[at] = item
    place[item] = at
    return size


@inner
def pop(keys: Amounts, items: Indices32, place: Indices32, size: int) -> tuple[int, int]:
    """Remove the item with the smallest key; return (item, new size)."""
    top = items[0]
    place[top] = -1
    size -= 1
    if size == 0:
        return top, size
    key, item, at = keys[size], items[size], 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        items[at] = items[below]
        place[items[at]] = at
        at = below
    keys[at] = key
    items[at] = item
    place[item] = at
    return top, size
