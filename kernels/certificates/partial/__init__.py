"""Proof for transport whose marginals are held by a part of the mass, total variation or squares.

For potentials f, g every plan P costs at least the dual value

    Phi_1(f) + Phi_2(g) - reg sum (P(f, g) - R)     where reg > 0, for any f and g,
    Phi_1(f) + Phi_2(g)                             where reg = 0, for f_i + g_j <= c_ij,

because <C, P> + reg Omega(P) >= <f, P 1> + <g, P' 1> - reg sum (P(f, g) - R), and p D's smallest value of <f, p> + D(p)
over all marginals p that a plan can have is Phi(f). `sides.py` has Phi of each D, in fractions; `linear.py` the case
without an entropic term, `entropic.py` that with one.
"""

from collections.abc import Callable

from kernels.certificates.partial import entropic, linear
from kernels.problems.marginal_transport import MarginalTransport
from kernels.solution import Certificate, Solution, unheard


def certify(problem: MarginalTransport, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute the plan's objective, and the bound of its potentials."""
    return entropic.certify(problem, solution, progress) if problem.reg else linear.certify(problem, solution, progress)
