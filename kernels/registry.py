"""The one place to add a solver: a card in its folder's __init__.py and a line in SOLVERS.

Everything that the service says of a solver (wire schema, docs, estimates, demo) is read from its card. Systems of
published papers are listed in kernels/papers.
"""

from kernels import auction, barycenter, gromov, lap, lawler, lowrank, multimarginal, qap, uot
from kernels.card import Solver

CARDS = (
    lap.CARD,
    auction.CARD,
    uot.CARD,
    qap.CARD,
    gromov.CARD,
    barycenter.CARD,
    lowrank.CARD,
    multimarginal.CARD,
    lawler.CARD,
)
SOLVERS: dict[str, Solver] = {card.name: card for card in CARDS}
