"""What CUDA and Python share: structs, enumerations, arguments of kernels. Declared once, here in Python.

A room declares its own in a file `layout.py`; `#include "<room>/layout.py"` stands for the text `CUDA` in it. The text
states the sizes and alignments that give each field its place: a compiler that lays them out otherwise fails.

Arguments stay parameters of their own and are not fields of one struct: as a struct, the same body compiles to other
machine code (sm_90, float32 costs: `grow` 76 instead of 102 KB), whose speed nobody has measured.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

NUMBERS = {"int": "i4", "u32": "u4", "long long": "i8", "u64": "u8", "double": "f8"}
FIELD = re.compile(r"(?P<type>[^/]*[\w*])\s+(?P<name>\w+)(?:\[(?P<count>\d+)\])?\s*(?://\s*(?P<said>.*))?")


@dataclass(frozen=True)
class Field:
    """One field: its type as CUDA names it, how many of it, and what is said of it: the shape of what it points to."""

    type: str
    name: str
    count: int
    said: str

    @property
    def kind(self) -> str:
        """Its type in NumPy's letters; a pointer is a 64-bit word."""
        return "u8" if "*" in self.type else NUMBERS[self.type]

    @property
    def text(self) -> str:
        """Its declaration."""
        many = f"[{self.count}]" if self.count > 1 else ""
        return f"{self.type} {self.name}{many};" + (f"  // {self.said}" if self.said else "")


@dataclass(frozen=True)
class Struct:
    """A struct of plain fields, as CUDA lays it out: each at a multiple of its own size."""

    name: str
    fields: tuple[Field, ...]

    @property
    def dtype(self) -> np.dtype:
        """The same struct for NumPy."""
        shapes = [(one.name, one.kind, (one.count,)) if one.count > 1 else (one.name, one.kind) for one in self.fields]
        return np.dtype(shapes, align=True)

    @property
    def text(self) -> str:
        """The struct in CUDA, and what a compiler has to agree to.

        Sizes and alignments of all fields and the size of the whole leave one place for each field. Not every NVRTC
        knows `offsetof`: that of CUDA 13.0 does not.
        """
        claims = [f"static_assert(sizeof({self.name}) == {self.dtype.itemsize});"]
        for one in self.fields:
            field, size = f"{self.name}::{one.name}", np.dtype(one.kind).itemsize
            claims.append(
                f"static_assert(sizeof({field}) == {size * one.count} && alignof(decltype({field})) == {size});"
            )
        return "\n".join([f"struct {self.name} {{", *(f"    {one.text}" for one in self.fields), "};", *claims])


@dataclass(frozen=True)
class Arguments:
    """The arguments of one kernel, which CUDA knows as the macro `name` and Python by the names of its fields."""

    name: str
    fields: tuple[Field, ...]

    @property
    def text(self) -> str:
        """The kernel's list of parameters."""
        return f"#define {self.name} " + ", ".join(f"{one.type} {one.name}" for one in self.fields)

    def packed(self, **values: Any) -> tuple[Any, ...]:
        """What a launch passes, in order and with the types that the kernel has; arrays of a device as they are.

        Raises:
            TypeError: an argument is missing, or there is no such argument.
        """
        wrong = {one.name for one in self.fields} ^ set(values)
        if wrong:
            raise TypeError(f"{self.name}: {sorted(wrong)} missing or unknown")
        return tuple(self._typed(one, values[one.name]) for one in self.fields)

    @staticmethod
    def _typed(field: Field, value: Any) -> Any:
        is_array = "*" in field.type and not isinstance(value, int)
        return value if is_array else np.dtype(field.kind).type(value)


def struct(name: str, declared: str) -> Struct:
    """The struct that `declared` spells out: a field a line, as `int* col_row  // [n_cols]`."""
    return Struct(name, _fields(declared))


def arguments(name: str, declared: str) -> Arguments:
    """The arguments that `declared` spells out, in the same way."""
    return Arguments(name, _fields(declared))


def _fields(declared: str) -> tuple[Field, ...]:
    fields = []
    for line in filter(None, map(str.strip, declared.splitlines())):
        found = FIELD.fullmatch(line)
        assert found, line
        fields.append(Field(found["type"], found["name"], int(found["count"] or 1), found["said"] or ""))
    return tuple(fields)


def enumeration(name: str, names: tuple[str, ...]) -> str:
    """An enum that counts from 0, in CUDA."""
    return f"enum {name} {{ {', '.join(f'{one} = {k}' for k, one in enumerate(names))} }};"
