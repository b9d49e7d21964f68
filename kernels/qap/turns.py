"""On a GPU: whether a proof's tree or the semidefinite bound has the device first, and what is left to the other."""

from math import isinf

from kernels.qap.estimate import relaxed_s

FIRST_N, EASY_N, EASY_S = 24, 20, 5.0
"""Up to the first size a tree goes first, if there is time for it: so much at the second, and twice as much for each
facility more."""
KEPT, CERTIFICATES = 0.1, 8
"""Of the time, and in certificates of that bound: what such a tree leaves to it, in case that it does not end."""


def tree_goes_first(n: int, left_s: float) -> bool:
    """Whether a tree on the device is likely to end in the seconds that are left, and so needs no better bound."""
    return n <= FIRST_N and EASY_S * 2.0 ** max(0, n - EASY_N) <= left_s - kept_s(n, left_s)


def kept_s(n: int, left_s: float) -> float:
    """Of the seconds that are left, what such a tree leaves to the semidefinite bound; 0 where there is no limit."""
    return 0.0 if isinf(left_s) else max(KEPT * left_s, CERTIFICATES * relaxed_s(n))
