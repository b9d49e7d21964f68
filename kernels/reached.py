"""What a compiled function is made of beside its own source: numba compiles it in, and does not see it change.

numba takes a kept function for today's while the file that it is written in is the same. Functions of other files that
it calls, and numbers that it names, are part of its code all the same.
"""

import functools
import hashlib
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

OF_OTHERS = ("numba", "numpy", "math")
NUMBERS = (bool, int, float, complex, str, bytes, tuple, list, frozenset, type(None))


def digest(function: FunctionType) -> str:
    """Of the code of every function that `function` can call, and of every number that these name.

    Only what packages of others hold is left out: their version is part of numba's key, or of the environment.
    """
    found: dict[FunctionType, str] = {}
    left = [function]
    while left:
        one = left.pop()
        if one not in found:
            found[one], called = _own(one)
            left += called
    return hashlib.sha256("\n".join(sorted(set(found.values()))).encode()).hexdigest()


@functools.cache
def _own(function: FunctionType) -> tuple[str, tuple[FunctionType, ...]]:
    """A function's code and the numbers that it names, as text; and the functions that it may call."""
    names = set(_names(function.__code__))
    values = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    for name, value in list(values):
        if isinstance(value, ModuleType) and not value.__name__.startswith(OF_OTHERS):
            values += [(f"{name}.{inner}", getattr(value, inner)) for inner in names if hasattr(value, inner)]
    values += [(str(k), cell.cell_contents) for k, cell in enumerate(function.__closure__ or ()) if _filled(cell)]
    words, called = [function.__qualname__, *_texts(function.__code__)], []
    for name, value in sorted(values, key=lambda pair: pair[0]):
        if isinstance(plain := _plain(value), FunctionType):
            called.append(plain)
            words.append(f"{name} calls {plain.__module__}.{plain.__qualname__}")
        elif isinstance(value, type):
            words.append(f"{name} is {value.__qualname__} {getattr(value, '_fields', '')}")
            called += _methods(value, str(function.__module__).partition(".")[0])
        elif isinstance(value, (np.generic, np.ndarray)):
            words.append(f"{name} = {value.dtype} {value.shape} {value.tobytes().hex()}")
        elif isinstance(value, NUMBERS):
            words.append(f"{name} = {_told(value)}")
    return "\n".join(words), tuple(called)


def _plain(value: Any) -> Any:
    """The Python function behind what numba's decorators make, if it is one of ours."""
    value = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
    ours = isinstance(value, FunctionType) and not str(value.__module__).startswith(OF_OTHERS)
    return value if ours else None


def _methods(kind: type, package: str) -> Iterator[FunctionType]:
    """What a class of ours adds to those of others: code for vectors is put together by one."""
    for one in kind.__mro__:
        if str(one.__module__).partition(".")[0] == package:
            yield from (method for method in vars(one).values() if isinstance(method, FunctionType))


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that has no value yet
        return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _texts(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _texts(inner)
        else:
            yield _told(inner)


def _told(constant: Any) -> str:
    """The same words in every process: sets of text are in another order in each."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
