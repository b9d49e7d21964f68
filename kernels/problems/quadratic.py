"""The quadratic assignment problem of Koopmans and Beckmann."""

from dataclasses import dataclass

from kernels.problems.arrays import Array


@dataclass(frozen=True, eq=False)
class QuadraticAssignment:
    """min over permutations p of sum_ij flow[i, j] distance[p[i], p[j]] + sum_i linear[i, p[i]].

    `flow`, `distance`, `linear`: (n, n), int64 when the input is integer, float64 otherwise.
    `best_known`: an objective somebody claims, reported beside the answer and never used as a bound.
    """

    flow: Array
    distance: Array
    linear: Array | None = None
    best_known: int | float | None = None
