"""Compiled code comes from the disk without what only a compiler of its callers would read.

numba keeps of each function its machine code and, as bitcode, what other functions may inline of it. It reads both, and
looks through all names of the latter: six tenths of what it takes to load the loops of a solver. Here bitcode is kept
as it is until a function is compiled that calls this one, which a process with all its code on the disk never does.

Invariant: a library answers as numba's own does. One whose bitcode was never read knows the names that are asked for by
its machine code, whose symbols are listed there.
"""

import functools
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target


class Library(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """One function's code, as numba compiled it or as it came from the disk."""

    _unread: bytes | None = None
    """Bitcode that nobody has asked for."""
    _machine_code: bytes = b""
    """Of which no name was asked for yet."""

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, data = state
        if kind != "object":
            return super()._unserialize(codegen, state)
        library = codegen.create_library(name)
        library._machine_code, library._unread = data
        library.enable_object_caching()
        library._set_compiled_object(library._machine_code)
        library._finalize_final_module()
        return library

    def _get_module_for_linking(self) -> Any:
        if self._unread is not None:
            self._shared_module, self._unread = llvm.parse_bitcode(self._unread), None
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return super()._get_module_for_linking()

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function of this library, 0 where it has none of that name."""
        code, self._machine_code = self._machine_code, b""
        if name.encode() + b"\0" in code:  # as its table of symbols has them
            self._codegen._engine._defined_symbols.add(name)
        elif self._unread is not None:
            self._get_module_for_linking()
        return int(super().get_pointer_to_function(name))


@functools.cache
def without_bitcode() -> None:
    """Have numba load what comes from the disk so, from now on."""
    cpu_target.target_context.codegen()._library_class = Library
