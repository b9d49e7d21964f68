"""Certificates of assignments whose costs are distances of points, or overlaps of boxes.

The problem is that of the real numbers which a metric gives for the coordinates as they came. No solver's matrix is
read: every cost that decides is worked out here, from differences, as a sum of two float64 with a proved error
(`words.py`, `exactly.py`). A float64 sweep over all pairs with a proved error (`coarsely.py`) says which ones decide.
Of many points, a search says it that rules out whole boxes of them (`boxes.py`).
"""

from kernels.certificates.metrics.assignment import certify_assignment
from kernels.certificates.metrics.auction import certify_auction

__all__ = ["certify_assignment", "certify_auction"]
