"""A module of arrays that says no to whatever CuPy would: host arrays among its operands, and functions it has not."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


class Strict:
    """An array that is never turned into a NumPy array unasked."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.asarray(array)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def get(self) -> Any:
        """A copy on the host."""
        return self.array.copy()

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim"):
            return getattr(self.array, name)
        if name == "T":
            return Strict(self.array.T)
        if name in ("astype", "reshape", "ravel", "max", "copy"):
            return wrapped(getattr(self.array, name))
        raise AttributeError(name)

    def __len__(self) -> int:
        return len(self.array)

    def __float__(self) -> float:
        assert self.array.size == 1
        return float(self.array.item())

    def __getitem__(self, at: Any) -> Any:
        return Strict(self.array[inner(at)])

    def __setitem__(self, at: Any, value: Any) -> None:
        self.array[inner(at)] = inner(value)


def inner(value: Any) -> Any:
    """The NumPy array of a strict one; numbers, slices, types and tuples of them pass."""
    if isinstance(value, Strict):
        return value.array
    if isinstance(value, tuple | list):
        return type(value)(inner(one) for one in value)
    if isinstance(value, np.ndarray):
        raise TypeError("a NumPy array among the operands of a device's array")
    return value


def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` with strict arguments and a strict result."""

    def strict(*arguments: Any, **named: Any) -> Any:
        found = call(*map(inner, arguments), **{name: inner(value) for name, value in named.items()})
        return Strict(np.asarray(found)) if isinstance(found, np.ndarray | np.generic) else found

    return strict


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: Strict, other: Any) -> Any:
        found = getattr(self.array, name)(inner(other))
        assert found is not NotImplemented
        if name.startswith("__i"):
            self.array = found
            return self
        return Strict(found)

    return apply


for _name in ("add", "sub", "mul", "truediv", "and"):
    for _prefix in ("", "r", "i"):
        setattr(Strict, f"__{_prefix}{_name}__", _operator(f"__{_prefix}{_name}__"))

FUNCTIONS = ["arange", "ascontiguousarray", "diagonal", "matmul", "maximum", "minimum", "outer", "trace", "zeros"]
FUNCTIONS += ["zeros_like"]
STRICT: Any = SimpleNamespace(
    **{name: wrapped(getattr(np, name)) for name in FUNCTIONS},
    asarray=lambda value: value if isinstance(value, Strict) else Strict(np.array(value)),
    linalg=SimpleNamespace(norm=wrapped(np.linalg.norm), eigvalsh=wrapped(np.linalg.eigvalsh)),
)
