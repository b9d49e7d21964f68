"""Where compiled CUDA kernels are kept, and which are worth compiling ahead. Needs no CUDA.

forms.txt lists what the solvers ask for in each type and form of input, one a line: a source and its -D options, with
tabs between them. `allot warm --record` adds to it, on a machine with a GPU.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FORMS = Path(__file__).with_name("forms.txt")
ARCHITECTURES = ("80", "86", "89", "90", "100", "120")
"""A100; A10 and RTX 30; L4 and RTX 40; H100 and H200; B200; RTX 50."""
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


def forms() -> Iterator[Form]:
    """What is worth compiling ahead."""
    for line in FORMS.read_text().splitlines():
        if line and not line.startswith("#"):
            yield Form.read(line)


def record(found: Iterable[Form]) -> int:
    """Add forms to the list; how many are new."""
    head = [line for line in FORMS.read_text().splitlines() if line.startswith("#")]
    known = set(forms())
    FORMS.write_text("\n".join([*head, *map(str, sorted(known | set(found))), ""]))
    return len(set(found) - known)
