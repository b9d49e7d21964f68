"""Everything of a request but its inputs, checked against its solver's model."""

import functools
import reprlib
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from app.http.refusal import MOST_ERRORS, Invalid, fault
from app.http.schemas import REQUEST, JobRequest
from app.intake.alternatives import of_one_option
from kernels import SOLVERS

KNOWN = {"solver", *JobRequest.model_fields, *(name for card in SOLVERS.values() for name in card.options.model_fields)}
"""Fields that some request has, around or in its options."""

SHORT = 512
"""Bytes around the inputs of which it is remembered what they say."""


def _short(fields: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Fields that are known, and as many others as an answer names; how many more there are.

    A body of a megabyte may hold 90,000 unknown fields, and a model makes an error of 1 KB of each.
    """
    unknown = [name for name in fields if name not in KNOWN]
    left_out = set(islice(unknown, MOST_ERRORS, None))
    if not left_out:
        return fields, 0
    return {name: value for name, value in fields.items() if name not in left_out}, len(left_out)


def parse_request(document: Any) -> Any:
    """Validate everything of a request but its inputs; returns an instance of the solver's request model.

    Raises:
        Invalid: with one entry per field at fault.
    """
    if not isinstance(document, dict):
        raise Invalid(fault("body", f"is {word_of(document)}; expected an object with solver and inputs"))
    if _beyond_int64(document.get("options")):
        raise Invalid(fault("options", "hold an integer that does not fit int64"))
    around, left_out = _short({name: value for name, value in document.items() if name != "inputs"})
    if isinstance(around.get("options"), dict):
        around["options"], more = _short(around["options"])
        left_out += more
    try:
        text = to_json(around)
        return _seen(text) if len(text) <= SHORT else REQUEST.validate_json(text, strict=True)
    except ValidationError as wrong:
        first = wrong.errors(include_url=False)[:MOST_ERRORS]
        told = (_fault_of(error, document) for error in of_one_option(first))
        raise Invalid(*told, more=wrong.error_count() + left_out - len(first)) from None


@functools.lru_cache(256)
def _seen(text: bytes) -> Any:
    """The same for the same text: callers of many small jobs say the same around each. Nobody changes a request."""
    return REQUEST.validate_json(text, strict=True)


def _beyond_int64(value: Any) -> bool:
    """True when an integer anywhere in the options is larger than any solver can count."""
    if isinstance(value, dict | list):
        return any(_beyond_int64(entry) for entry in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _fault_of(error: Any, document: dict[str, Any]) -> dict[str, Any]:
    """One pydantic error as a field, what was found, and what was expected."""
    location = [str(part) for part in error["loc"]]
    if location and location[0] in SOLVERS:
        location = location[1:]
    kind = error["type"]
    if kind == "string_pattern_mismatch" and location == ["warm_start"]:
        found = error.get("input")
        return fault("warm_start", f"is {found!r:.60}; expected the id of a job: 32 of 0 to 9 and a to f", found)
    if kind == "union_tag_not_found":
        return fault("solver", f"is missing; expected one of {', '.join(SOLVERS)}")
    if kind == "union_tag_invalid":
        found = document.get("solver")
        return fault("solver", f"{reprlib.repr(found)} is unknown; expected one of {', '.join(SOLVERS)}", found)
    field = ".".join(location)
    if kind == "extra_forbidden":
        return fault(field, f"is unknown; {_allowed(location, document)}", error.get("input"))
    return fault(field, error["msg"][0].lower() + error["msg"][1:], error.get("input"))


WORDS = {list: "a list", dict: "an object", str: "a string", bool: "true or false", int: "a number", float: "a number"}


def word_of(value: Any) -> str:
    """What JSON calls a value of its own."""
    return "null" if value is None else WORDS[type(value)]


def _allowed(location: list[str], document: dict[str, Any]) -> str:
    solver = document["solver"]
    if location[0] == "options":
        names = list(SOLVERS[solver].options.model_fields)
        return f"the options of {solver} are {', '.join(names)}" if names else f"{solver} has no options"
    return f"a job takes solver, inputs, options, {', '.join(JobRequest.model_fields)}"
