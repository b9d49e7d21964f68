"""What CUDA and Python share: structs, enumerations, arguments of kernels. Declared once, here in Python.

A folder declares its own in a file `layout.py`; `#include "<folder>/layout.py"` stands for the text `CUDA` in it. The
text states the sizes and alignments that give each field its place: a compiler that lays them out otherwise fails.

A kernel takes one parameter: the struct of its arguments, by value, as `const __grid_constant__ GrowArgs args`. It lies
in constant memory, so a kernel reads a field where it needs it, and holds no register for it meanwhile.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

NUMBERS = {"int": "i4", "u32": "u4", "long long": "i8", "Int": "i8", "u64": "u8", "float": "f4", "double": "f8"}
NUMBERS |= {"unsigned long long": "u8", "size_t": "u8", "T64": "i8", "dual_t": "i8"}
"""T64, dual_t: a compile option chooses between 64-bit integers and floats."""
FIELD = re.compile(r"(?P<type>[^/]*[\w*])\s+(?P<name>\w+)(?P<shape>(?:\[\d+\])*)\s*(?://\s*(?P<said>.*))?")


@dataclass(frozen=True)
class Field:
    """One field: its type as CUDA names it, how many of it, and what is said of it: the shape of what it points to."""

    type: str
    name: str
    shape: tuple[int, ...]
    said: str
    inner: "Struct | None" = None

    @property
    def kind(self) -> Any:
        """Its type for NumPy; a pointer is a 64-bit word."""
        if "*" in self.type:
            return "u8"
        return self.inner.dtype if self.inner else NUMBERS[self.type]

    @property
    def text(self) -> str:
        """Its declaration."""
        many = "".join(f"[{one}]" for one in self.shape)
        return f"{self.type} {self.name}{many};" + (f"  // {self.said}" if self.said else "")


@dataclass(frozen=True)
class Struct:
    """A struct of plain fields, as CUDA lays it out: each at a multiple of its own size."""

    name: str
    fields: tuple[Field, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of its fields."""
        return tuple(one.name for one in self.fields)

    def filled(self, values: Mapping[str, Any]) -> Any:
        """One struct with the values of its fields; a mapping stands for an inner struct, None for 0.

        An array of a device stands for its address. Whoever fills the struct keeps the array.

        Raises:
            KeyError: a value is missing.
        """
        return np.array(tuple([_word(one, values[one.name]) for one in self.fields]), self.dtype)

    @cached_property
    def dtype(self) -> np.dtype:
        """The same struct for NumPy."""
        return self.dtype_where({})

    def dtype_where(self, chosen: Mapping[str, str]) -> np.dtype:
        """The same where a compile option has chosen types, as T64 to be f8."""
        kinds = [(one, one.kind if "*" in one.type else chosen.get(one.type, one.kind)) for one in self.fields]
        return np.dtype([(one.name, kind, one.shape) for one, kind in kinds], align=True)

    @property
    def text(self) -> str:
        """The struct in CUDA, and what a compiler has to agree to.

        Sizes and alignments of all fields and the size of the whole leave one place for each field. Not every NVRTC
        knows `offsetof`: that of CUDA 13.0 does not.
        """
        claims = [f"static_assert(sizeof({self.name}) == {self.dtype.itemsize});"]
        for one in self.fields:
            field, dtype = f"{self.name}::{one.name}", np.dtype(one.kind)
            size = dtype.itemsize * math.prod(one.shape)
            claims.append(
                f"static_assert(sizeof({field}) == {size} && alignof(decltype({field})) == {dtype.alignment});"
            )
        return "\n".join([f"struct {self.name} {{", *(f"    {one.text}" for one in self.fields), "};", *claims])


@dataclass(frozen=True)
class Parameter(Struct):
    """The struct of arguments that is a kernel's one parameter."""

    @property
    def declared(self) -> str:
        """The kernel's list of parameters."""
        return f"const __grid_constant__ {self.name} args"

    def packed(self, **values: Any) -> tuple[Any]:
        """What a launch passes: the bytes of the struct, filled. Whoever launches keeps the arrays until then.

        Raises:
            TypeError: an argument is missing, or there is no such argument.
        """
        if values.keys() != self._known:
            raise TypeError(f"{self.name}: {sorted(values.keys() ^ self._known)} missing or unknown")
        return (as_passed(self.filled(values)),)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)


def as_passed(struct: Any) -> Any:
    """The bytes of a struct, () of a void type, as a launch takes them.

    Of an array with fields CuPy has NumPy describe each one anew, at every launch.
    """
    return struct.view(_void(struct.dtype.itemsize))


@cache
def _void(size: int) -> np.dtype:
    return np.dtype((np.void, size))


def _word(field: Field, value: Any) -> Any:
    """What stands in a struct for the value of a field."""
    if type(value) is int:  # as most are
        return value
    if value is None:
        return np.zeros(field.shape, field.kind)[()]
    if field.inner is not None and isinstance(value, Mapping):
        return field.inner.filled(value)
    return value.data.ptr if "*" in field.type and not isinstance(value, int | np.integer) else value


def struct(name: str, declared: str, *inner: Struct) -> Struct:
    """The struct that `declared` spells out: a field a line, as `int* col_row  // [n_cols]`; `inner`: of its fields."""
    return Struct(name, _fields(declared, inner))


def parameter(name: str, declared: str, *inner: Struct) -> Parameter:
    """The arguments of a kernel that `declared` spells out, in the same way."""
    return Parameter(name, _fields(declared, inner))


def _fields(declared: str, inner: tuple[Struct, ...]) -> tuple[Field, ...]:
    fields, known = [], {one.name: one for one in inner}
    for line in filter(None, map(str.strip, declared.splitlines())):
        found = FIELD.fullmatch(line)
        assert found, line
        said, of = found["said"] or "", known.get(found["type"])
        fields.append(Field(found["type"], found["name"], _shape(found["shape"]), said, of))
    return tuple(fields)


def _shape(said: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", said)))


def enumeration(name: str, names: tuple[str, ...] | Mapping[str, int]) -> str:
    """An enum in CUDA, which counts from 0 where the names have no numbers."""
    numbered = names.items() if isinstance(names, Mapping) else zip(names, range(len(names)), strict=True)
    return f"enum {name} {{ {', '.join(f'{one} = {k}' for one, k in numbered)} }};"
