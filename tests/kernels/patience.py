"""A deadline that runs out by looks, so that a test stops a solver where it wants."""

from kernels import Deadline, Termination


class Patience(Deadline):
    """Expires once it was asked so often."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def expired(self) -> Termination | None:
        self.looks -= 1
        return Termination.TIME_LIMIT if self.looks < 0 else None
