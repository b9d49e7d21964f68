"""Lists of numbers without rounding: integers over one power of two, which every float64 and every integer is."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from kernels.problems.arrays import Array


@dataclass(frozen=True)
class Exact:
    """The numbers n / 2^shift."""

    numbers: list[int]
    shift: int

    @staticmethod
    def of(values: Array) -> "Exact":
        """The entries of an array in one dimension, all finite."""
        if values.dtype.kind != "f":
            return Exact(values.tolist(), 0)
        ratios = [one.as_integer_ratio() for one in values.tolist()]
        lengths = [below.bit_length() for _, below in ratios]
        top = max(lengths, default=1)
        return Exact([above << (top - k) for (above, _), k in zip(ratios, lengths, strict=True)], top - 1)

    def over(self, shift: int) -> "Exact":
        """The same over 2^shift, or over their own power where that is larger."""
        more = shift - self.shift
        return self if more <= 0 else Exact([one << more for one in self.numbers], shift)

    def __add__(self, other: "Exact") -> "Exact":
        """Sums, number by number."""
        left, right = self.over(other.shift), other.over(self.shift)
        return Exact([x + y for x, y in zip(left.numbers, right.numbers, strict=True)], left.shift)

    def at(self, places: list[int]) -> "Exact":
        """The numbers at those places."""
        return Exact([self.numbers[k] for k in places], self.shift)

    def dot(self, other: "Exact") -> Fraction:
        """The inner product."""
        total = sum(x * y for x, y in zip(self.numbers, other.numbers, strict=True))
        return Fraction(total, 1 << (self.shift + other.shift))

    @cached_property
    def absolute(self) -> "Exact":
        """Their sizes."""
        return Exact([abs(one) for one in self.numbers], self.shift)

    @property
    def total(self) -> Fraction:
        """Their sum."""
        return Fraction(sum(self.numbers), 1 << self.shift)
