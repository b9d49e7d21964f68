"""POT's names, solved by Allot: `import allot_client.pot as ot`, or change one import.

Each function has the signature and the answer of POT's. Beside that:

* Arguments that steer POT's own iterations, as `method`, `armijo` or `numThreads`, change nothing here.
* A tolerance (`stopThr`, `tol`) is a proved relative gap where the problem has one, and no less than 1e-12.
* `log=True` gives POT's entries that a service can know, and `objective`, `bound` and `gap` of the certificate.
* Numbers that are answers are floats, without gradients; for these see `allot_client.torch`.
* What has no answer raises ValueError.
"""

from allot_client.pot import bregman, gromov, lp, partial, unbalanced
from allot_client.pot.bregman import barycenter, sinkhorn, sinkhorn2
from allot_client.pot.costs import dist
from allot_client.pot.gromov import (
    fused_gromov_wasserstein,
    fused_gromov_wasserstein2,
    gromov_wasserstein,
    gromov_wasserstein2,
)
from allot_client.pot.lp import emd, emd2
from allot_client.pot.unbalanced import sinkhorn_unbalanced, sinkhorn_unbalanced2

__all__ = [
    "barycenter",
    "bregman",
    "dist",
    "emd",
    "emd2",
    "fused_gromov_wasserstein",
    "fused_gromov_wasserstein2",
    "gromov",
    "gromov_wasserstein",
    "gromov_wasserstein2",
    "lp",
    "partial",
    "sinkhorn",
    "sinkhorn2",
    "sinkhorn_unbalanced",
    "sinkhorn_unbalanced2",
    "unbalanced",
]
