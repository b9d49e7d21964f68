"""The names of POT beside POT, on the same random data: `import allot_client.pot as ot` and no other change."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import allot_client.pot
import numpy as np
import ot
import pytest

from kernels import Array

pytestmark = [pytest.mark.usefixtures("default_service"), pytest.mark.filterwarnings("ignore")]
MODULES = ("", "unbalanced", "partial", "lp", "bregman", "gromov")
random = np.random.default_rng(7)


def functions() -> Iterator[Any]:
    for module in MODULES:
        ours, theirs = (getattr(one, module) if module else one for one in (allot_client.pot, ot))
        for name, function in vars(ours).items():
            own = inspect.isfunction(function) and not name.startswith("_")
            if own and (not module or function.__module__ == ours.__name__):
                yield pytest.param(function, getattr(theirs, name), id=f"{module}.{name}".strip("."))


@pytest.mark.parametrize(("ours", "theirs"), list(functions()))
def test_signatures(ours: Any, theirs: Any) -> None:
    one, other = (
        [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]
        for function in (ours, theirs)
    )
    assert one == other


def spaces(m: int, n: int) -> dict[str, Any]:
    """Two weighted clouds, the costs between them, their own distances, and histograms on the first."""
    x, y = random.random((m, 2)), random.random((n, 2)) + 0.2
    a, b = random.random(m) + 0.1, random.random(n) + 0.1
    return {
        "a": a / a.sum(), "b": b / b.sum(), "M": ot.dist(x, y), "C1": ot.dist(x, x), "C2": ot.dist(y, y),
        "A": random.dirichlet(np.ones(m), 3).T, "x": x, "y": y,
    }  # fmt: skip


def bumps() -> tuple[Array, Array]:
    """Two histograms on a line, and its squared distances."""
    places = np.linspace(0, 1, 30)
    shapes = np.exp(-((places[:, None] - np.array([0.3, 0.6])) ** 2) / 0.01)
    return shapes / shapes.sum(axis=0), (places[:, None] - places) ** 2


PLANS: dict[str, Callable[..., Any]] = {
    "emd": lambda ot, a, b, M, **_: ot.emd(a, b, M),
    "emd without masses": lambda ot, M, **_: ot.emd([], [], M[:5, :5]),
    "sinkhorn": lambda ot, a, b, M, **_: ot.sinkhorn(a, b, M, 0.1),
    "sinkhorn log": lambda ot, a, b, M, **_: np.outer(*(ot.sinkhorn(a, b, M, 0.1, log=True)[1][k] for k in "uv")),
    "partial": lambda ot, a, b, M, **_: ot.partial.partial_wasserstein(a, 2 * b, M, m=0.6),
    "partial, all of it": lambda ot, a, b, M, **_: ot.partial.partial_wasserstein(a, b / 2, M),
    "partial, nothing": lambda ot, a, b, M, **_: ot.partial.partial_wasserstein(a, b, M, m=0),
    "entropic partial": lambda ot, a, b, M, **_: ot.partial.entropic_partial_wasserstein(
        a, 2 * b, M, 0.1, m=0.6, stopThr=1e-9
    ),
    "entropic": lambda ot, C1, C2, a, b, **_: ot.gromov.entropic_gromov_wasserstein(
        C1, C2, a, b, epsilon=0.05, tol=1e-11
    ),
    "entropic and fused": lambda ot, M, C1, C2, a, b, **_: ot.gromov.entropic_fused_gromov_wasserstein(
        M, C1, C2, a, b, epsilon=0.05, alpha=0.3, tol=1e-11
    ),
    "barycenter": lambda ot, A, C1, **_: ot.barycenter(
        A, C1, 0.1, [0.5, 0.3, 0.2], "sinkhorn_log", stopThr=1e-11
    ),
    "debiased": lambda ot, **_: ot.bregman.barycenter_debiased(
        *bumps(), 0.01, method="sinkhorn_log", stopThr=1e-8
    ),
    "moving points": lambda ot, x, y, a, b, **_: ot.lp.free_support_barycenter([x, y], [a, b], x[:4] + 0.1),
}  # fmt: skip
CLOSE = {"debiased": 1e-3}


@pytest.mark.parametrize("name", PLANS)
def test_the_same_arrays(name: str) -> None:
    for m, n in ((6, 8), (9, 5)):
        data = spaces(m, n)
        ours, theirs = PLANS[name](allot_client.pot, **data), PLANS[name](ot, **data)
        np.testing.assert_allclose(ours, theirs, atol=CLOSE.get(name, 1e-7), rtol=1e-5)


def between(ot_: Any, A: Array, C1: Array) -> Any:
    """What a barycenter costs: there are often several."""
    found, shares = ot_.lp.barycenter(A, C1, [0.5, 0.3, 0.2], solver="highs"), (0.5, 0.3, 0.2)
    return sum(share * ot.emd2(found, one, C1) for share, one in zip(shares, A.T, strict=True))


VALUES: dict[str, Callable[..., Any]] = {
    "emd2": lambda ot, a, b, M, **_: ot.emd2(a, b, M),
    "emd2 of whole costs": lambda ot, a, b, M, **_: ot.emd2([], [], np.eye(4)[::-1].copy()),
    "sinkhorn2": lambda ot, a, b, M, **_: float(ot.sinkhorn2(a, b, M, 0.1)),
    "sinkhorn2 without masses": lambda ot, M, **_: float(ot.sinkhorn2([], [], M, 0.1)),
    "sinkhorn2 of several": lambda ot, a, b, M, **_: float(
        sum(ot.sinkhorn2(a, np.stack([b, b[::-1]], axis=1), M, 0.1))
    ),
    "unbalanced": lambda ot, a, b, M, **_: float(
        ot.sinkhorn_unbalanced2(a, 2 * b, M, 0.1, 1.0, numItermax=10000, stopThr=1e-9)
    ),
    "unbalanced, entropy": lambda ot, a, b, M, **_: float(
        ot.unbalanced.sinkhorn_unbalanced2(a, b, M, 0.1, (1.0, 2.0), reg_type="entropy", numItermax=10000, stopThr=1e-9)
    ),
    "unbalanced of several": lambda ot, a, b, M, **_: float(
        sum(ot.sinkhorn_unbalanced2(a, np.stack([b, b[::-1]], axis=1), M, 0.1, 1.0, numItermax=10000, stopThr=1e-9))
    ),
    "emd2 of several": lambda ot, a, b, M, **_: sum(ot.emd2(a, np.stack([b, b[::-1]], axis=1), M)),
    "partial": lambda ot, a, b, M, **_: ot.partial.partial_wasserstein2(a, b, M, m=0.4),
    "barycenter": lambda ot, A, C1, **_: between(ot, A, C1),
    "gromov": lambda ot, C1, C2, **_: ot.gromov_wasserstein2(C1, C2),
    "fused": lambda ot, M, C1, C2, a, b, **_: ot.fused_gromov_wasserstein2(M, C1, C2, a, b, alpha=0.3),
    "entropic": lambda ot, C1, C2, a, b, **_: ot.gromov.entropic_gromov_wasserstein2(C1, C2, a, b, epsilon=0.05),
    "entropic and fused": lambda ot, M, C1, C2, a, b, **_: ot.gromov.entropic_fused_gromov_wasserstein2(
        M, C1, C2, a, b, epsilon=0.05
    ),
}
EXACT = ("emd2", "emd2 of whole costs", "emd2 of several", "partial", "barycenter", "gromov", "fused")
"""What POT does not stop short of."""
SEARCHED = ("gromov", "fused")
"""What is only known not to be worse."""


@pytest.mark.parametrize("name", VALUES)
def test_the_same_values(name: str) -> None:
    data = spaces(7, 6)
    ours, theirs = VALUES[name](allot_client.pot, **data), VALUES[name](ot, **data)
    assert isinstance(ours, float)
    assert ours <= theirs + (1e-9 if name in EXACT else 1e-6)
    if name not in SEARCHED:
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_the_whole_value_of_an_unbalanced_plan() -> None:
    data = spaces(7, 6)
    a, b, M = (data[name] for name in ("a", "b", "M"))
    ours = allot_client.pot.sinkhorn_unbalanced2(a, 2 * b, M, 0.1, 1.0, returnCost="total")
    assert ours == pytest.approx(ot.unbalanced.lbfgsb_unbalanced2(a, 2 * b, M, 0.1, 1.0, returnCost="total"), rel=1e-5)
    with pytest.raises(ValueError, match="returnCost"):
        allot_client.pot.sinkhorn_unbalanced2(a, b, M, 0.1, 1.0, returnCost="all")


def test_logs_of_several_are_lists() -> None:
    data = spaces(5, 4)
    sides = np.stack([data["b"], data["b"][::-1]], axis=1)
    values, facts = allot_client.pot.sinkhorn2(data["a"], sides, data["M"], 0.1, log=True)
    assert values.shape == (2,)
    assert [len(one) for one in facts.values()] == [2] * len(facts)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "minkowski"])
def test_costs_between_points(metric: str) -> None:
    x, y = random.random((5, 4)), random.random((6, 4))
    for left, right in ((x, y), (x, None), (x.astype(np.float32), y.astype(np.float32))):
        ours, theirs = allot_client.pot.dist(left, right, metric), ot.dist(left, right, metric)
        np.testing.assert_allclose(ours, theirs, atol=1e-12 if ours.dtype == np.float64 else 1e-6)
        assert ours.dtype == theirs.dtype
    for other in (("chebyshev",), ("minkowski", 3), (metric, 2, np.ones(4))):
        with pytest.raises(ValueError, match="expected one of"):
            allot_client.pot.dist(x, y, *other)


def value(plan: Array, C1: Array, C2: Array) -> float:
    apart = (C1[:, None, :, None] - C2[None, :, None, :]) ** 2
    return float(np.einsum("ijkl,ij,kl->", apart, plan, plan))


def test_a_coupling_is_worth_what_its_log_says() -> None:
    data = spaces(6, 7)
    C1, C2, a, b = (data[name] for name in ("C1", "C2", "a", "b"))
    plan, log = allot_client.pot.gromov_wasserstein(C1, C2, a, b, G0=np.outer(a, b), log=True)
    np.testing.assert_allclose(plan.sum(axis=1), a)
    assert log["gw_dist"] == pytest.approx(value(plan, C1, C2))
    assert log["bound"] <= log["gw_dist"] <= value(ot.gromov_wasserstein(C1, C2, a, b), C1, C2) + 1e-9


REFUSED: dict[str, Callable[..., Any]] = {
    "more than there is": lambda ot, a, b, M, **_: ot.partial.partial_wasserstein(a, b, M, m=1.5),
    "less than nothing": lambda ot, a, b, M, **_: ot.partial.entropic_partial_wasserstein(a, b, M, 0.1, m=-1),
    "sums": lambda ot, a, b, M, **_: ot.emd(a, 2 * b, M),
    "solver": lambda ot, C1, C2, **_: ot.gromov.entropic_gromov_wasserstein(C1, C2, solver="none"),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_both_refuse(call: Callable[..., Any]) -> None:
    data = spaces(4, 4)
    for library in (allot_client.pot, ot):
        with pytest.raises((ValueError, AssertionError)):
            call(library, **data)


def test_arrays_of_another_library_come_back_in_it() -> None:
    jnp = pytest.importorskip("jax.numpy")
    given = {name: jnp.asarray(array, jnp.float32) for name, array in spaces(5, 5).items()}
    for found in (
        allot_client.pot.emd(given["a"], given["b"] / given["b"].sum(), given["M"]),
        allot_client.pot.partial.partial_wasserstein(given["a"], given["b"], given["M"], m=0),
        allot_client.pot.gromov_wasserstein(given["C1"], given["C2"]),
        allot_client.pot.lp.free_support_barycenter([given["x"]] * 2, [given["a"]] * 2, given["x"]),
    ):
        assert type(found) is type(given["M"])
        assert found.dtype == jnp.float32


def test_what_only_pot_does_is_refused() -> None:
    data = spaces(4, 4)
    with pytest.raises(ValueError, match="square_loss"):
        allot_client.pot.gromov_wasserstein(data["C1"], data["C2"], loss_fun="kl_loss")
    with pytest.raises(ValueError, match="reference measure"):
        allot_client.pot.sinkhorn_unbalanced(data["a"], data["b"], data["M"], 0.1, 1.0, c=data["M"])
    with pytest.raises(ValueError, match="equal"):
        allot_client.pot.lp.free_support_barycenter([data["x"]] * 2, [data["a"]] * 2, data["x"], b=data["a"])
    with pytest.raises(ValueError, match="expected 1"):
        allot_client.pot.gromov_wasserstein(data["C1"], data["C2"], 2 * data["a"])
