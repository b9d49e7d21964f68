"""What a model says of an option that may be one of several things: one error of it, and not one of each."""

from collections.abc import Iterator, Sequence
from typing import Any


def of_one_option(errors: Sequence[Any]) -> Iterator[Any]:
    """Pydantic's errors; those of the alternatives that one option may be are one, of the option alone."""
    alternatives = ("[key]", "tuple[", "literal[", "constrained-", "function-", "list[", "int", "float", "str", "bool")
    told: dict[tuple[Any, ...], dict[str, Any]] = {}
    for error in errors:
        where = list(error["loc"])
        last = str(where[-1]) if where else ""
        if "options" in where[:2] and len(where) > where.index("options") + 2 and last.startswith(alternatives):
            where = where[: where.index("options") + 2]
        earlier = told.setdefault(tuple(where), {**error, "loc": tuple(where)})
        words = error["msg"].replace("Input should be", "").strip()
        if words not in earlier["msg"]:
            earlier["msg"] += f", or {words}"
    yield from told.values()
