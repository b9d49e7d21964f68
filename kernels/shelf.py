"""Where compiled CUDA kernels are kept, and which are worth compiling ahead. Needs no CUDA.

forms.txt lists what the solvers ask for in each type and form of input, one a line: a source and its -D options, with
tabs between them. "for=90,100" at the end names the architectures that ask for it, where the geometry of a launch
follows from the device; without it all do. `allot warm --record` adds to the list, on a machine with a GPU.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FORMS = Path(__file__).with_name("forms.txt")
ARCHITECTURES = ("80", "86", "89", "90", "100", "120")
"""A100; A10 and RTX 30; L4 and RTX 40; H100 and H200; B200; RTX 50."""
ASKING = "for="
OF_USER = Path("~/.cache/allot/cubins")
_folders: list[Path] = [OF_USER.expanduser()]


@dataclass(frozen=True, order=True)
class Form:
    """One way in which a source is compiled: `path` is relative to kernels/, `defines` are -D options."""

    path: str
    defines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\t".join((self.path, *self.defines))

    @classmethod
    def read(cls, line: str) -> "Form":
        """The other way round."""
        path, *defines = line.split("\t")
        return cls(path, tuple(defines))


used: set[Form] = set()
"""Every form that this process has asked for."""
compiled: list[Form] = []
"""Those of them that were not on the shelf."""


def keep_cubins(folder: Path, also: Iterable[Path] = ()) -> None:
    """From now on, keep what is compiled in `folder`; look in `also` and in the user's own for more, which is read."""
    _folders[:] = dict.fromkeys([folder, *also, OF_USER.expanduser()])


def cubin_folders() -> list[Path]:
    """Where to look; what is compiled goes to the first."""
    return list(_folders)


def listed() -> dict[Form, frozenset[str]]:
    """What is worth compiling ahead, each form with the architectures that ask for it: none are all."""
    found = {}
    for line in FORMS.read_text().splitlines():
        if line and not line.startswith("#"):
            told, _, asking = line.partition(f"\t{ASKING}")
            found[Form.read(told)] = frozenset(filter(None, asking.split(",")))
    return found


def forms(architecture: str) -> Iterator[Form]:
    """What is worth compiling ahead for an architecture."""
    return (form for form, asking in listed().items() if not asking or architecture in asking)


@functools.cache
def all_ahead(architecture: str) -> frozenset[Form]:
    """The same, kept: a job that must choose does not read the list again."""
    return frozenset(forms(architecture))


@functools.cache
def ahead(path: str, more: tuple[str, ...], architecture: str) -> frozenset[tuple[str, ...]]:
    """What a source is compiled with ahead, of what ends with `more`, and without that."""
    ways = (form.defines for form in all_ahead(architecture) if form.path == path)
    return frozenset(way[: len(way) - len(more)] for way in ways if way[len(way) - len(more) :] == more)


def record(found: Iterable[Form], asking: Mapping[Form, Iterable[str]] | None = None) -> int:
    """Add forms to the list, which `asking` architectures want where it names some; how many are new.

    Of a form that is known already, and of which `asking` says nothing, nothing changes.
    """
    head = [line for line in FORMS.read_text().splitlines() if line.startswith("#")]
    known, told = listed(), dict(asking or {})
    merged: dict[Form, frozenset[str]] = dict(known)
    for form in set(found) - (known.keys() - told.keys()):
        wanted, before = frozenset(told.get(form, ())), known.get(form)
        merged[form] = wanted if before is None else before | wanted if before and wanted else frozenset()
    lines = [str(form) + _asking(merged[form]) for form in sorted(merged)]
    FORMS.write_text("\n".join([*head, *lines, ""]))
    return len(merged) - len(known)


def _asking(architectures: frozenset[str]) -> str:
    return f"\t{ASKING}{','.join(sorted(architectures, key=int))}" if architectures else ""
