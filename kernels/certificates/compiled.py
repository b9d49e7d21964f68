"""How the loops of certificates are compiled, and the step that all their exact sums are made of."""

from collections.abc import Callable
from typing import Any, TypeVar

from kernels.compiling import njit

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile on first call, cached on disk, without the GIL, in strict IEEE 754."""
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def held(function: F) -> F:
    """The same without letting go of the GIL: who keeps the answer meanwhile would have it longer than this takes."""
    return njit(cache=True, error_model="numpy")(function)


def inlined(function: F) -> F:
    """Compile into whatever compiled function calls it."""
    return njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)


@inlined
def two_sum(x: Any, y: Any) -> Any:
    """(s, e) with s = x + y rounded to nearest and s + e = x + y exactly (Knuth); e is 0 for integers."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)
