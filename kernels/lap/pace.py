"""How far a search by augmenting paths has come, as a share of its time.

Paths get dearer as free partners run out: most rows are paired in a small part of the time. Counted over costs of the
plane, clusters and expression profiles (n = 3000), the time a path takes goes with 1 / (r + 0.08)^2, where r is the
share of the paths that are left. What is still to come is worked out from that and from the time spent so far.

| share of time | r, plane | r, clusters | r, profiles | r, this rule |
|---|---|---|---|---|
| .10 | .37 | .38 | .65 | .40 |
| .25 | .15 | .17 | .41 | .18 |
| .50 | .083 | .090 | .18 | .070 |
| .75 | .035 | .034 | .060 | .024 |
| .90 | .012 | .013 | .018 | .009 |
"""

FLAT = 0.08
"""Below this share of paths left, a path hardly gets dearer any more."""


class Pace:
    """Fractions of one search, which never fall.

    Args:
        n_paths: how many paths are to be found.
        before_s: seconds spent before the first of them.
    """

    def __init__(self, n_paths: int, before_s: float) -> None:
        self._n_paths, self._before_s, self._told = max(1, n_paths), before_s, 0.0

    def fraction(self, n_left: int, elapsed_s: float) -> float:
        """The share of the whole time that has passed, when `n_left` paths are left after `elapsed_s` seconds."""
        done = share_of_time(n_left / self._n_paths)
        spent = max(0.0, elapsed_s - self._before_s)
        whole = self._before_s + (spent / done if done > 0 else float("inf"))
        self._told = max(self._told, min(1.0, elapsed_s / whole if whole > 0 else 0.0))
        return self._told


def share_of_time(left: float) -> float:
    """The share of the time of all paths after which the share `left` of them is left."""
    left = min(1.0, max(0.0, left))
    return (1 / (left + FLAT) - 1 / (1 + FLAT)) / (1 / FLAT - 1 / (1 + FLAT))
