"""The kernels of quadratic assignment, launched small and directly, for tests/sanitize.py: through the solver they
would run too long. Every objective is recomputed on the host."""

import threading
from collections.abc import Iterator

import numpy as np

from kernels import Array
from kernels.problems import QuadraticAssignment

rng = np.random.default_rng(0)


def symmetric(n: int, high: int) -> Array:
    half = np.triu(rng.integers(0, high, (n, n)), 1)
    return np.asarray(half + half.T)


def any_sign(n: int, high: int) -> Array:
    return rng.integers(-3, high, (n, n))


def forms() -> Iterator[QuadraticAssignment]:
    """Each way that deltas are kept: one matrix pair or two, with linear costs, in 64 bits, as floats."""
    yield QuadraticAssignment(symmetric(14, 40), symmetric(14, 40))
    yield QuadraticAssignment(symmetric(23, 40), any_sign(23, 40))
    yield QuadraticAssignment(any_sign(12, 40), any_sign(12, 40))
    yield QuadraticAssignment(symmetric(13, 40), symmetric(13, 40), rng.integers(0, 99, (13, 13)))
    yield QuadraticAssignment(symmetric(12, 2**26), symmetric(12, 2**25))
    yield QuadraticAssignment(rng.random((15, 15)), rng.random((15, 15)))


def orders(count: int, n: int) -> Array:
    return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)


def multistart() -> None:
    """2-opt and tabu in every tile, more searches than blocks, and what does not fit shared memory."""
    for problem in forms():
        for tile, matrices in (((4, 5), False), ((4, 5), True), ((2, 5), False), ((4, 3), False)):
            search(problem, tile, matrices, 5, 40)
    search(QuadraticAssignment(symmetric(200, 9), symmetric(200, 9)), (8, 16), False, 2, 6)
    search(QuadraticAssignment(symmetric(530, 3), symmetric(530, 3)), (16, 32), False, 1, 2)


def search(problem: QuadraticAssignment, tile: tuple[int, int], matrices: bool, count: int, steps: int) -> None:
    from kernels.qap.form import search_form
    from kernels.qap.multistart import gpu_multistart

    form = search_form(problem)
    layout = gpu_multistart.layout(form, tile, matrices)
    if layout is None:
        return
    searches = gpu_multistart.Searches(form, layout, orders(count, problem.n))
    searches.grid = min(searches.grid, 3)
    for tenure in ((2, 5), None):
        searches.launch(steps, tenure)
        cost, permutation = searches.best()
        assert np.isclose(cost, problem.objective(permutation), rtol=1e-9)
    print(f"qap:multistart n = {problem.n} {tile} {layout.streamed}", flush=True)


def population() -> None:
    """Generations through several epochs; then with ever more of the state in global memory."""
    from kernels.qap.memetic import gpu_geometry, gpu_memetic
    from kernels.qap.memetic.gpu_geometry import MemeticGeometry, geometry

    policy = gpu_memetic.Policy(moves=0.1, quiet=1, relink=0.4, cross=0.3)
    for problem in forms():
        assert evolve(problem, policy, 5, 6) > 0
    longer = gpu_memetic.Policy(moves=0.6)
    for streamed in (1, 2, 3):
        setattr(gpu_geometry, "geometry", lambda n, wide, streamed=streamed: MemeticGeometry(64, streamed, 2))  # noqa: B010
        evolve(QuadraticAssignment(any_sign(14, 40), any_sign(14, 40), rng.integers(0, 99, (14, 14))), longer, 3, 2)
        evolve(QuadraticAssignment(symmetric(15, 40), symmetric(15, 40)), longer, 3, 2)
    setattr(gpu_geometry, "geometry", geometry)  # noqa: B010
    wide = QuadraticAssignment(symmetric(140, 9), symmetric(140, 9))
    evolve(wide, gpu_memetic.Policy(moves=0.06), 3, 2)


def evolve(problem: QuadraticAssignment, policy: object, members: int, generations: int) -> int:
    """Returns the epochs that ended."""
    from kernels.qap.memetic import gpu_memetic
    from kernels.qap.parts import split

    people = gpu_memetic.DevicePopulation(split(problem), members, 1, policy)  # type: ignore[arg-type]
    people.open(orders(members, problem.n))
    for _ in range(generations):
        people.generation()
    state, permutation = people.state(), people.best()
    assert np.isclose(state["best"] / people.scale, problem.objective(permutation), rtol=1e-6)
    print(f"qap:population n = {problem.n} {people.geometry}", flush=True)
    return int(state["number"])


def tree() -> None:
    """Some seconds of branch and bound of every integer form, and the bound by assignment problems."""
    from kernels.qap.bounds import gpu_bounds, rlt1
    from kernels.qap.exact import gpu_branch
    from kernels.qap.exact.planting import Ground

    wide = QuadraticAssignment(symmetric(19, 40), symmetric(19, 40))  # the kernels of 18 and 17 facilities left
    for problem in (*forms(), wide):
        if not problem.integer or problem.flow.max() > 2**20:
            assert gpu_bounds.gilmore_lawler(problem).value <= problem.objective(np.arange(problem.n))
            continue
        ascent = rlt1.DualAscent(problem)
        ascent.step()
        ascent.step()
        linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
        incumbent = np.array([problem.objective(np.arange(problem.n))])
        grown = gpu_branch.DeviceTree(Ground(problem, linear, ascent, incumbent, 1, 1 << 16))
        grown.batch, grown.sweeps, grown.top_sweeps = 24, 3, 3
        stop = np.zeros(1, np.uint8)
        threading.Timer(6.0, stop.fill, (1,)).start()
        grown.run(stop)
        assert grown.nodes > 0
        print(f"qap:tree n = {problem.n}, {grown.nodes} nodes", flush=True)


def signs() -> None:
    """Signs of symmetric matrices by half floats: of an order that fills its tiles, and of orders that do not."""
    import cupy

    from kernels.qap.bounds.relaxed.gpu_signs import TILE, Signs

    for order in (TILE, TILE + 13, 2 * TILE - 1):
        turned, _ = np.linalg.qr(rng.normal(size=(order, order)))
        values = np.linspace(0.05, 1.0, order) * rng.choice((-1.0, 1.0), order)
        matrix, wanted = turned * values @ turned.T, turned * np.sign(values) @ turned.T
        sign, product = Signs(order)(cupy.asarray(matrix, cupy.float32), 1e-3)
        assert np.abs(sign.get() - wanted).max() < 1e-3
        assert np.abs(product.get() - matrix @ wanted).max() < 1e-3
        print(f"qap:signs order = {order}", flush=True)
