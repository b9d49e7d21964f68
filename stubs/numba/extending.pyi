from collections.abc import Callable
from typing import Any, TypeVar
from typing import overload as _overload

F = TypeVar("F", bound=Callable[..., Any])

@_overload
def register_jitable(function: F, /) -> F: ...
@_overload
def register_jitable(**options: Any) -> Callable[[F], F]: ...
def __getattr__(name: str) -> Any: ...
