"""numba's decorator, as all compiled loops use it: what it keeps on disk may be written by several processes at once.

numba reads the index of a function, adds an entry, writes it back, and then writes the code. Two processes that compile
one function for two types at the same time give both the same file name: an index may then name the code of other
types, which would read arrays of one type as those of another. A process that dies between the two writes leaves an
entry whose file may be of an earlier source.

Invariant: under the lock of its folder, each entry of an index of today's source names the code that was compiled for
it. Code is written before the entry that names it. The lock goes with the process that holds it. An entry is also told
by the helpers and numbers of other files that were compiled in (`reached.py`).
"""

import contextlib
import fcntl
import functools
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba

from kernels import loading, reached

F = TypeVar("F", bound=Callable[..., Any])
LOCK = "allot.lock"
log = logging.getLogger(__name__)


def njit(*signature: Any, **options: Any) -> Callable[[F], F]:
    """numba's `njit`, without a wrapper for callers in C, of which there are none.

    Args:
        signature: types to compile for at once, and no others; none for whatever comes.
        options: numba's; `cache=True` keeps what is compiled, where several processes may do so.
    Returns:
        a decorator.
    """

    def compiled(function: F) -> F:
        dispatcher: Any = numba.njit(no_cfunc_wrapper=True, **options)(function)
        cache = getattr(dispatcher, "_cache", None)
        if options.get("cache") and cache is not None:  # None where NUMBA_DISABLE_JIT is set
            cache._cache_file = Shared(cache._cache_file, function)
        for types in signature:
            dispatcher.compile(types)
        if signature:
            dispatcher.disable_compile()
        return dispatcher  # type: ignore[no-any-return]

    return compiled


class Shared:
    """The kept files of one function, in place of numba's `IndexDataCacheFile`, whose format they have."""

    def __init__(self, files: Any, function: Any) -> None:
        self._files, self._function = files, function

    @functools.cached_property
    def _made_of(self) -> str:
        """Known once the function's module is imported, and so when it is first called."""
        return reached.digest(self._function)

    def flush(self) -> None:
        """Forget all entries."""
        with _locked(self._files._cache_path, fcntl.LOCK_EX):
            self._files.flush()

    def save(self, key: Any, data: Any) -> None:
        """Keep `data` under `key`; where that cannot be done, a warning says so."""
        try:
            with _locked(self._files._cache_path, fcntl.LOCK_EX) as held:
                if not held:
                    raise OSError("the folder cannot be locked")
                entries, key = self._entries(), (key, self._made_of)
                name = entries.get(key) or self._unused(set(entries.values()))
                self._files._save_data(name, data)
                self._files._save_index({**entries, key: name})
        except OSError as why:  # a full disk is no fault of the problem that is being solved
            log.warning("what was compiled is not kept in %s: %s", self._files._cache_path, why)

    def load(self, key: Any) -> Any:
        """What was saved under `key` by today's source; None where nothing was that can be read."""
        loading.without_bitcode()
        with _locked(self._files._cache_path, fcntl.LOCK_SH):  # if it cannot be locked, nobody writes there
            name = self._entries().get((key, self._made_of))
            return self._read(self._files._load_data, name) if name else None

    def _entries(self) -> dict[Any, str]:
        return self._read(self._files._load_index) or {}

    @staticmethod
    def _read(how: Callable[..., Any], *name: str) -> Any:
        """What unpickling gives; None of a file that is gone or cut short, or that names a class which is gone."""
        with contextlib.suppress(Exception):  # unpickling raises what it likes
            return how(*name)
        return None

    def _unused(self, names: set[str]) -> str:
        number = 1
        while (name := self._files._data_name(number)) in names:
            number += 1
        return str(name)


@contextlib.contextmanager
def _locked(folder: str, how: int) -> Iterator[bool]:
    """Hold the lock of a folder, if it has one to be held."""
    try:
        descriptor = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, how)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
