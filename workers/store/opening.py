"""Where the settings say that a store is, and its memory."""

import contextlib
from pathlib import Path
from urllib.parse import urlsplit

from workers.runtime.config import Settings
from workers.store.arena import Arena, arena_of
from workers.store.folder import Folder


def root_of(settings: Settings) -> Path:
    """The folder of a local store."""
    path = urlsplit(settings.store_url or "file:").path
    return Path(path) if path else settings.data_dir / "blobs"


def arena_for(settings: Settings) -> Arena | None:
    """The arena of a local store; None where the settings name none, or it cannot be."""
    if urlsplit(settings.store_url or "file:").scheme != "file":
        return None
    return arena_of(root_of(settings), settings.arena_dir, settings.arena_bytes)


def bring_home(settings: Settings) -> None:
    """Have the disk take what lies in the arena alone. Called by each process tree when it ends.

    Others may use the arena still. Where nobody does, as with the last container of a machine, its memory may go.
    """
    arena = arena_for(settings)
    if arena is not None:
        _bring_home(arena, settings)


def let_memory_go(settings: Settings) -> None:
    """The same, and give all memory of the arena back. Called when the service ends that it belongs to."""
    arena = arena_for(settings)
    if arena is not None:
        _bring_home(arena, settings)
        arena.clear()


def _bring_home(arena: Arena, settings: Settings) -> None:
    folder = Folder(root_of(settings), arena=arena)
    for name in list(folder.left(0.0)):
        with contextlib.suppress(OSError):  # it stays, for the next start
            folder.settle(name)
