# What mypy is told of numba, which says nothing of its decorators: a compiled function takes what the plain one takes.
# Without it every call of a loop would be unchecked.
from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

@overload
def njit(function: F, /) -> F: ...
@overload
def njit(**options: Any) -> Callable[[F], F]: ...
def __getattr__(name: str) -> Any: ...
