"""One case: what is asked of which solver. It can be written down as JSON, and read back bit by bit."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Array, Csr

Given = dict[str, Any]
"""Arrays and Csr by name."""


@dataclass(frozen=True, eq=False)
class Case:
    """A job. `time_limit_s` None leaves the limit to the run; the poll number `polls` hears that it is stopped."""

    solver: str
    family: str
    inputs: Given
    options: dict[str, Any] = field(default_factory=dict)
    time_limit_s: float | None = None
    origin: str = ""
    polls: int | None = None

    def with_inputs(self, **inputs: Any) -> "Case":
        """The case with some inputs replaced; None takes one away."""
        merged = {name: value for name, value in {**self.inputs, **inputs}.items() if value is not None}
        return replace(self, inputs=merged)

    def with_options(self, **options: Any) -> "Case":
        """The case with other options."""
        return replace(self, options={**self.options, **options})

    def __str__(self) -> str:
        return f"{self.solver} / {self.family} / {self.origin}"


def to_json(case: Case, **more: Any) -> str:
    """A case as one JSON object; floats in hexadecimal, so that nothing is rounded."""
    inputs = {name: _written(value) for name, value in case.inputs.items()}
    fields = {name: getattr(case, name) for name in ("solver", "family", "options", "time_limit_s", "origin", "polls")}
    return json.dumps({**fields, "inputs": inputs, **more}, indent=1, default=str)


def from_json(text: str) -> Case:
    """What `to_json` wrote."""
    found = json.loads(text)
    inputs = {name: _read(value) for name, value in found["inputs"].items()}
    options = {name: _option(name, value) for name, value in found["options"].items()}
    return Case(
        found["solver"], found["family"], inputs, options, found["time_limit_s"], found["origin"], found.get("polls")
    )


def kept(folder: Path) -> list[Path]:
    """The cases that once failed."""
    return sorted(folder.glob("*.json"))


def _option(name: str, value: Any) -> Any:
    if name == "fixed":
        return {int(i): k for i, k in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _written(value: Any) -> Any:
    if isinstance(value, Csr):
        parts = {name: _written(getattr(value, name)) for name in ("indptr", "indices", "values")}
        return {"csr": parts, "shape": list(value.shape)}
    flat = [x.hex() if isinstance(x, float) else x for x in value.ravel().tolist()]
    return {"dtype": str(value.dtype), "shape": list(value.shape), "entries": flat}


def _read(value: Any) -> Array | Csr:
    if "csr" in value:
        parts = {name: _read(part) for name, part in value["csr"].items()}
        return Csr(**parts, shape=tuple(value["shape"]))  # type: ignore[arg-type]
    entries = [float.fromhex(x) if isinstance(x, str) else x for x in value["entries"]]
    return np.array(entries, dtype=value["dtype"]).reshape(value["shape"])
