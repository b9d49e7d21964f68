"""A problem that shows a solver: what to send, and arithmetic of its own that an answer must stand up to."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kernels.problems.arrays import Array

Way = Literal["json", "blob", "file", "followed"]


class WrongAnswer(Exception):
    """An answer that the arithmetic of a demonstration refutes."""


@dataclass(frozen=True)
class Demonstration:
    """One problem.

    Attributes:
        title: of its row in a table.
        size: likewise.
        way: how it is sent: as lists in JSON, as a blob, as a file part, or as one whose progress is followed.
        name: of the input or file that is sent as bytes; "" where all inputs are lists.
        data: those bytes.
        filename: what they are called.
        check: (answer, its arrays) -> raises WrongAnswer.
        inputs: the inputs that are lists.
        options: of the solver.
        seconds: most time to solve.
        ahead: compiles for a CPU what solving it on one might not wait for; None where a solve waits for all of it.
    """

    title: str
    size: str
    way: Way
    check: Callable[[Mapping[str, Any], Mapping[str, Array]], None]
    name: str = ""
    data: bytes = b""
    filename: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 20
    ahead: Callable[[], None] | None = None


def require(holds: bool, what: str, answer: Mapping[str, Any]) -> None:
    """Raise WrongAnswer with the evidence unless `holds`."""
    if not holds:
        raise WrongAnswer(f"{what}; objective {answer.get('objective')}, certificate {answer.get('certificate')}")


def npy(array: Array) -> bytes:
    """The bytes of an .npy file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()
