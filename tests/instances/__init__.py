"""Seeded instance families, one file per problem. Each file lists its `CASES`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernels import Inputs


@dataclass(frozen=True)
class Case:
    """One instance for one solver: inputs are made when asked, so that collecting tests costs nothing."""

    solver: str
    label: str
    inputs: Callable[[], Inputs]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.solver}-{self.label}"
