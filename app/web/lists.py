"""A table written as a list: who, what, how much, one pair a line."""

from app.web.tables import Cell

Listed = tuple[list[str], list[str], dict[tuple[int, int], int]]


def as_list(header: list[Cell] | None, body: list[list[Cell]]) -> Listed | None:
    """Names of rows, names of columns, and which line tells of each pair; None where it is no such list.

    A list has a header, two columns of names and one of numbers. It names somebody twice on either side (on one, where
    both have a name in common), and no pair twice. Where one thing stands on both sides (trips from A to B), both sides
    have all names, in one order.
    """
    if header is None or len(header) != 3 or len(body) < 3 or not all(isinstance(cell, str) for cell in header):
        return None
    if any(isinstance(line[j], int | float) or line[j] is None for line in body for j in (0, 1)):
        return None
    if sum(isinstance(line[2], int | float) for line in body) * 2 < len(body):
        return None
    ones, others = (list(dict.fromkeys(str(line[j]) for line in body)) for j in (0, 1))
    both, once = set(ones) & set(others), [len(names) == len(body) for names in (ones, others)]
    if all(once) or (any(once) and not both):
        return None
    if both:
        ones = others = list(dict.fromkeys(ones + others))
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (ones, others))
    told = {(rows[str(line[0])], columns[str(line[1])]): at for at, line in enumerate(body)}
    return (ones, others, told) if len(told) == len(body) else None
