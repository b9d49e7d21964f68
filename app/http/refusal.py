"""What a request is refused with, as exceptions; errors.py makes answers of them. Loads no web framework."""

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

MOST_ERRORS = 20
"""In one answer: nobody reads more, and a request can hold 200,000."""
LONGEST_FIELD, LONGEST_MESSAGE = 200, 2000
"""Characters of one error."""


class Refusal(Exception):
    """A request that HTTP itself refuses: status, one sentence, and what else belongs in the document."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.extra = status, detail, headers, extra


class Invalid(Refusal):
    """422: the request was understood, but `errors` says which fields cannot be taken."""

    def __init__(self, *errors: dict[str, Any], more: int = 0) -> None:
        """`more` errors were found beside these."""
        super().__init__(422, sentence(errors, more), errors=list(errors))


def sentence(errors: Sequence[Mapping[str, Any]], more: int = 0) -> str:
    """The first errors in words, and how many more there are."""
    told = [f"{error['field']}: {error['message']}" for error in errors[:MOST_ERRORS]]
    more += max(0, len(errors) - MOST_ERRORS)
    return "; ".join([*told, f"and {more} more"] if more else told)


def fault(field: str, message: str, found: Any = None) -> dict[str, Any]:
    """One entry of `errors`; `found` is shown when it is small."""
    entry: dict[str, Any] = {"field": field[:LONGEST_FIELD], "message": message[:LONGEST_MESSAGE]}
    if found is not None:
        small = isinstance(found, bool | int | str) and len(str(found)) <= 80
        entry["found"] = found if small else reprlib.repr(found)
    return entry


class NotAcceptable(Refusal):
    """406: the media types that the client accepts are not among those that there are."""

    def __init__(self, wanted: str, offered: tuple[str, ...]) -> None:
        super().__init__(406, f"Accept: {wanted!r} asks for none of {', '.join(offered)}.", offered=list(offered))


def over(policy: str, why: str, most: int, wait_s: float, window_s: int | None = None) -> Refusal:
    """429 with Retry-After, and RateLimit headers as draft-ietf-httpapi-ratelimit-headers has them."""
    retry_s = max(1, math.ceil(wait_s))
    headers = {
        "Retry-After": str(retry_s),
        "RateLimit-Policy": f'"{policy}";q={most}' + (f";w={window_s}" if window_s else ""),
        "RateLimit": f'"{policy}";r=0;t={retry_s}',
    }
    return Refusal(429, f"Too much at once: {why}. Come back in {retry_s} s.", headers=headers)
