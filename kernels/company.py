"""What `joint` of several cards shares: how many problems are solved in one go."""

from collections.abc import Callable, Iterable, Iterator


def in_groups(numbers: Iterable[int], entries: Callable[[int], int], most: int) -> Iterator[list[int]]:
    """Numbers of problems in their order, as many at a time as have `most` entries together, or one that has more."""
    group: list[int] = []
    held = 0
    for k in numbers:
        own = entries(k)
        if group and held + own > most:
            yield group
            group, held = [], 0
        group.append(k)
        held += own
    if group:
        yield group
