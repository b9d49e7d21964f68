"""`ot.gromov`: couplings of two spaces by the distances within each.

The loss is the square. A search for the best coupling begins from several plans, so that an answer can be better than
POT's; the entropic ones begin where POT's do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from allot_client.pot.taken import host, in_type, masses, told
from allot_client.scipy import default_client

STEPS = {"PGD": "entropic", "PPA": "proximal"}


def gromov_wasserstein(
    C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", symmetric: bool | None = None,
    log: bool = False, armijo: bool = False, G0: Any = None, max_iter: float = 1e4, tol_rel: float = 1e-9,
    tol_abs: float = 1e-9, **kwargs: Any,
) -> Any:  # fmt: skip
    """The coupling of two spaces that keeps distances best; see POT's documentation."""
    plan, facts = _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol_rel)
    return (plan, facts) if log else plan


def gromov_wasserstein2(
    C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", symmetric: bool | None = None,
    log: bool = False, armijo: bool = False, G0: Any = None, max_iter: float = 1e4, tol_rel: float = 1e-9,
    tol_abs: float = 1e-9, **kwargs: Any,
) -> Any:  # fmt: skip
    """By how much it does not keep them."""
    return _value("gw_dist", log, _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol_rel))


def fused_gromov_wasserstein(
    M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss",
    symmetric: bool | None = None, alpha: float = 0.5, armijo: bool = False, G0: Any = None, log: bool = False,
    max_iter: float = 1e4, tol_rel: float = 1e-9, tol_abs: float = 1e-9, **kwargs: Any,
) -> Any:  # fmt: skip
    """The same with costs M between the spaces, of which 1 - alpha counts; see POT's documentation."""
    plan, facts = _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol_rel, _fused(M, alpha))
    return (plan, facts) if log else plan


def fused_gromov_wasserstein2(
    M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss",
    symmetric: bool | None = None, alpha: float = 0.5, armijo: bool = False, G0: Any = None, log: bool = False,
    max_iter: float = 1e4, tol_rel: float = 1e-9, tol_abs: float = 1e-9, **kwargs: Any,
) -> Any:  # fmt: skip
    """The value of that coupling."""
    found = _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol_rel, _fused(M, alpha))
    return _value("fgw_dist", log, found)


def entropic_gromov_wasserstein(
    C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
    symmetric: bool | None = None, G0: Any = None, max_iter: int = 1000, tol: float = 1e-9, solver: str = "PGD",
    warmstart: bool = False, verbose: bool = False, log: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """A smooth coupling of two spaces; see POT's documentation."""
    plan, facts = _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol, _entropic(solver, epsilon))
    return (plan, facts) if log else plan


def entropic_gromov_wasserstein2(
    C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
    symmetric: bool | None = None, G0: Any = None, max_iter: int = 1000, tol: float = 1e-9, solver: str = "PGD",
    warmstart: bool = False, verbose: bool = False, log: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Its value, without the entropic term."""
    return _value("gw_dist", log, _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol, _entropic(solver, epsilon)))


def entropic_fused_gromov_wasserstein(
    M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
    symmetric: bool | None = None, alpha: float = 0.5, G0: Any = None, max_iter: int = 1000, tol: float = 1e-9,
    solver: str = "PGD", warmstart: bool = False, verbose: bool = False, log: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """A smooth coupling with costs M between the spaces, of which 1 - alpha counts; see POT's documentation."""
    own = _entropic(solver, epsilon) | _fused(M, alpha)
    plan, facts = _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol, own)
    return (plan, facts) if log else plan


def entropic_fused_gromov_wasserstein2(
    M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
    symmetric: bool | None = None, alpha: float = 0.5, G0: Any = None, max_iter: int = 1000, tol: float = 1e-9,
    solver: str = "PGD", warmstart: bool = False, verbose: bool = False, log: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Its value, without the entropic term."""
    own = _entropic(solver, epsilon) | _fused(M, alpha)
    return _value("fgw_dist", log, _coupled(C1, C2, p, q, loss_fun, G0, max_iter, tol, own))


def _entropic(solver: str, epsilon: float) -> dict[str, Any]:
    if solver not in STEPS:
        raise ValueError(f"solver is {solver!r}; expected one of {', '.join(STEPS)}")
    return {"method": STEPS[solver], "reg": float(epsilon), "starts": 1}


def _fused(M: Any, alpha: float) -> dict[str, Any]:
    return {"cost": M, "alpha": float(alpha)}


def _coupled(
    C1: Any, C2: Any, p: Any, q: Any, loss_fun: str, G0: Any, max_iter: float, stop: float, own: Any = None
) -> tuple[Any, dict[str, Any]]:
    if loss_fun != "square_loss":
        raise ValueError(f"loss_fun is {loss_fun!r}; expected 'square_loss'")
    a, b = masses(p, len(C1)), masses(q, len(C2))
    for name, side in (("p", a), ("q", b)):
        if abs(side.sum() - 1) > 1e-3:
            raise ValueError(f"{name} has the sum {side.sum()}; expected 1")
    answer = default_client().gromov(
        C1, C2, a=a, b=b, plan0=None if G0 is None else host(G0), tolerance=float(np.clip(stop, 0, 1)),
        max_iterations=max(1, int(max_iter)), **(own or {}),
    )  # fmt: skip
    plan = in_type(answer.arrays["plan"], C1)
    name = "fgw_dist" if own and "cost" in own else "gw_dist"
    return plan, told(answer, T=plan, loss=[answer.objective], **{name: answer.objective})


def _value(name: str, log: bool, found: tuple[Any, dict[str, Any]]) -> Any:
    return (found[1][name], found[1]) if log else found[1][name]
