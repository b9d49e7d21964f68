"""A stand-in for CuPy on a machine without a GPU: NumPy's operations on arrays that never become NumPy's by themselves.

As on a device, an operation takes such arrays and Python's numbers, a NumPy array is refused until `asarray` has sent
it, and only `get` brings one back. So code that would copy unawares, or mix the two, fails here too.
"""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

IN_PLACE = ("iadd", "isub", "imul", "itruediv", "iand", "ior")
OPERATORS = ("add", "sub", "mul", "truediv", "pow", "and", "or", "eq", "ne", "lt", "le", "gt", "ge", *IN_PLACE)
REFLECTED = ("radd", "rsub", "rmul", "rtruediv")
UNARY = ("neg", "invert", "abs")


class StrictArray:
    """One array of the stand-in."""

    __array_ufunc__ = None  # NumPy's own operators give way

    def __init__(self, held: Any) -> None:
        self.held = held

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an array on the device was taken for one on the host")

    def get(self) -> Any:
        return np.array(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.held)

    def __float__(self) -> float:
        return float(self.held)

    def __getitem__(self, index: Any) -> "StrictArray":
        return StrictArray(self.held[_index(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.held[_index(index)] = _sent(value)

    def __matmul__(self, other: Any) -> Any:
        return _kept(self.held @ _sent(other))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as __array_interface__
            raise AttributeError(name)
        found = getattr(self.held, name)
        return _wrapped(found) if callable(found) else _kept(found)


def _operator(name: str) -> Callable[[StrictArray, Any], Any]:
    def apply(self: StrictArray, other: Any) -> Any:
        return _kept(getattr(np.asarray(self.held), name)(_sent(other)))

    return apply


def _in_place(name: str) -> Callable[[StrictArray, Any], Any]:
    def apply(self: StrictArray, other: Any) -> Any:
        getattr(self.held, name)(_sent(other))
        return self

    return apply


def _unary(name: str) -> Callable[[StrictArray], Any]:
    return lambda self: _kept(getattr(self.held, name)())


for _name in OPERATORS + REFLECTED:
    _dunder = f"__{_name}__"
    _makes = _in_place if _name in IN_PLACE else _operator
    setattr(StrictArray, _dunder, _makes(_dunder))
for _name in UNARY:
    setattr(StrictArray, f"__{_name}__", _unary(f"__{_name}__"))


def _sent(value: Any) -> Any:
    """What an operation reads. Raises: TypeError for an array that was not sent."""
    if isinstance(value, StrictArray):
        return value.held
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("an array on the host was given to an operation on the device")
    if isinstance(value, tuple | list):
        return type(value)(map(_sent, value))
    return value


def _index(index: Any) -> Any:
    return tuple(map(_sent, index)) if isinstance(index, tuple) else _sent(index)


def _kept(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return StrictArray(np.asarray(value))
    return type(value)(map(_kept, value)) if isinstance(value, tuple) and value and _is_array(value[0]) else value


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        return _kept(function(*map(_sent, args), **{name: _sent(value) for name, value in named.items()}))

    return call


FUNCTIONS = """
    abs arange ascontiguousarray concatenate count_nonzero diagonal dot empty exp exp2 expm1 eye frexp full ldexp log
    log2 matmul maximum minimum multiply nonzero ones ones_like outer rint sqrt square stack subtract trace where zeros
    zeros_like
"""
"""What CuPy has and somebody here uses: another name is looked up in its manual before it is added."""


class StrictModule(ModuleType):
    """The module's functions, those of NumPy with the same names."""

    float32, float64, int64, inf = np.float32, np.float64, np.int64, np.inf
    linalg = SimpleNamespace(
        norm=_wrapped(np.linalg.norm),
        eigvalsh=_wrapped(np.linalg.eigvalsh),
        cholesky=_wrapped(np.linalg.cholesky),
        solve=_wrapped(np.linalg.solve),
    )

    def __init__(self) -> None:
        super().__init__("cupy")

    def __getattr__(self, name: str) -> Any:
        if name == "asarray":
            return lambda value, *more, **named: StrictArray(np.asarray(_held(value), *more, **named))
        if name not in FUNCTIONS.split():
            raise AttributeError(name)
        return _wrapped(getattr(np, name))


def _held(value: Any) -> Any:
    return value.held if isinstance(value, StrictArray) else value


STRICT: Any = StrictModule()
