"""One pass over some rows of a kernel or of a cost matrix, compiled by numba: the loops behind solver.py.

Potentials are in base-2 units here: F = f log2(e) / reg, and likewise G, to which log2 of the column weights is added;
`scale` = log2(e) / reg takes a cost to them. A call owns the rows [first, last), which threads.py deals out to the
cores (numba's own threads spin between calls: 700 ms where this takes 44 on a busy machine), ROWS of them at a time:

    s_i   = sum_j E_ij                  E_ij = 2^(F_i + G_j - scale C_ij), or K_ij v_j from a stored kernel K
    F_i'  = phi (target_i - log2 s_i + F_i)
    z_i   = weight_i 2^(F_i' - F_i)
    T_j  += z_i E_ij                    the same rows again, still in cache: memory is read once

so that T ends as the column sums of the plan at (F', G). Sums run in the kernel's own type over FLUSH rows at a time
and in float64 beyond, which keeps float32 sums good to about 1e-6.
"""

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Floats, Reals
from kernels.uot.cpu.exp2 import exp2

ROWS = 4  # two rows win 4% less than four over one; eight spill the L2 cache at n = 20480
FLUSH = 128
FAR = 1e28  # a row sum outside [1 / FAR, FAR] may have lost terms: the row is done again from its own maximum


@register_jitable(fastmath=True, no_cfunc_wrapper=True)
def _exp_row(cost: Reals, scale: float, row: float, g: Reals, out: Reals) -> float:
    """out_j = 2^(row + g_j - scale cost_j); returns the sum.

    A loop that writes is compiled twice, and which is run depends on how far apart its arrays lie: as vectors, or one
    by one. A sum in such a loop would be rounded by where memory happened to be had, so it has a loop of its own.
    """
    kind = out.dtype.type
    scale_, row_, total = kind(scale), kind(row), kind(0)
    for j in range(g.size):
        out[j] = exp2((g[j] - scale_ * kind(cost[j])) + row_)
    for j in range(g.size):
        total += out[j]
    return float(total)


@register_jitable(fastmath=True, no_cfunc_wrapper=True)
def _largest(cost: Reals, scale: float, g: Reals) -> float:
    """max_j g_j - scale cost_j."""
    kind = g.dtype.type
    scale_, top = kind(scale), kind(-np.inf)
    for j in range(g.size):
        top = max(top, g[j] - scale_ * kind(cost[j]))
    return float(top)


@register_jitable(no_cfunc_wrapper=True)
def _balance_row(
    cost: Reals, scale: float, start: float, g: Reals, target: float, phi: float, out: Reals
) -> tuple[float, float]:
    """Fill `out` with E of one row; return the new F and the factor from E to the plan, less the row's weight."""
    start = float(out.dtype.type(start))
    total = _exp_row(cost, scale, start, g, out)
    if not (1 / FAR < total < FAR):
        start = float(out.dtype.type(-_largest(cost, scale, g)))
        total = _exp_row(cost, scale, start, g, out)
    best = phi * (target - np.log2(total) + start)
    return best, exp2(best - start)


@register_jitable(fastmath=True, no_cfunc_wrapper=True)
def _scale_row(row: Reals, factor: float, out: Reals) -> None:
    factor_ = out.dtype.type(factor)
    for j in range(row.size):
        out[j] = factor_ * row[j]


@njit(fastmath=True, inline="always")
def _add_rows(block: Reals, first: int, z: Reals, rows: int, sums: Reals) -> None:
    """sums_j += sum over `rows` rows from `first` of z_r block_rj."""
    if rows == 4:
        z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
        for j in range(sums.size):
            low = z0 * block[first, j] + z1 * block[first + 1, j]
            sums[j] += low + (z2 * block[first + 2, j] + z3 * block[first + 3, j])
    else:
        for r in range(rows):
            zr = z[r]
            for j in range(sums.size):
                sums[j] += zr * block[first + r, j]


@njit(inline="always")
def _flush(sums: Reals, into: Floats) -> None:
    for j in range(sums.size):
        into[j] += sums[j]
        sums[j] = 0


@register_jitable(fastmath=True, no_cfunc_wrapper=True)
def _fill_costs(x: Reals, y_turned: Reals, metric: int, first: int, rows: int, block: Reals) -> None:
    """Costs of `rows` points of x to all points y (turned: (d, n)): 0 squared Euclidean, 1 Euclidean, 2 inner."""
    tile = 1024  # of columns, so that the sums over coordinates stay in L1
    for j0 in range(0, block.shape[1], tile):
        j1 = min(block.shape[1], j0 + tile)
        for r in range(rows):
            out = block[r, j0:j1]
            out[:] = 0
            for k in range(x.shape[1]):
                here, there = x[first + r, k], y_turned[k, j0:j1]
                if metric == 2:
                    for j in range(out.size):
                        out[j] -= here * there[j]
                else:
                    for j in range(out.size):
                        away = here - there[j]
                        out[j] += away * away
            if metric == 1:
                for j in range(out.size):
                    out[j] = np.sqrt(out[j])


@njit(nogil=True, cache=True)
def sweep_cost(
    first: int,
    last: int,
    cost: Reals,
    scale: float,
    f: Floats,
    g: Reals,
    weight: Floats,
    target: Floats,
    phi: float,
    kept: Reals,
    best: Floats,
    total: Floats,
) -> None:
    """Sweep with E worked out from the cost: fill the new F, best (m,), and total (n,), this call's part of T.

    `g` has the type to work in. Where `kept` is (m, n) it receives the plan density 2^(F' + G - scale C), that is the
    plan without the row weights; pass shape (0, 0) to keep nothing.
    """
    n = g.size
    block, sums, z = np.empty((ROWS, n), g.dtype), np.zeros(n, g.dtype), np.empty(ROWS, g.dtype)
    total[:] = 0
    for i in range(first, last, ROWS):
        rows = min(ROWS, last - i)
        for r in range(rows):
            best[i + r], factor = _balance_row(cost[i + r], scale, f[i + r], g, target[i + r], phi, block[r])
            z[r] = weight[i + r] * factor
            if kept.size:
                _scale_row(block[r], factor, kept[i + r])
        _add_rows(block, 0, z, rows, sums)
        if (i - first) % FLUSH == 0:
            _flush(sums, total)
    _flush(sums, total)


@njit(nogil=True, cache=True)
def sweep_points(
    first: int,
    last: int,
    x: Reals,
    y_turned: Reals,
    metric: int,
    scale: float,
    f: Floats,
    g: Reals,
    weight: Floats,
    target: Floats,
    phi: float,
    best: Floats,
    total: Floats,
) -> None:
    """`sweep_cost` with the costs worked out too, from points x (m, d) and y_turned (d, n)."""
    n = g.size
    costs, block = np.empty((ROWS, n), g.dtype), np.empty((ROWS, n), g.dtype)
    sums, z = np.zeros(n, g.dtype), np.empty(ROWS, g.dtype)
    total[:] = 0
    for i in range(first, last, ROWS):
        rows = min(ROWS, last - i)
        _fill_costs(x, y_turned, metric, i, rows, costs)
        for r in range(rows):
            best[i + r], factor = _balance_row(costs[r], scale, f[i + r], g, target[i + r], phi, block[r])
            z[r] = weight[i + r] * factor
        _add_rows(block, 0, z, rows, sums)
        if (i - first) % FLUSH == 0:
            _flush(sums, total)
    _flush(sums, total)


@njit(fastmath=True, inline="always")
def _dot_rows(kernel: Reals, first: int, rows: int, v: Reals, out: Reals) -> None:
    """out_r = sum_j K_rj v_j for the block's rows."""
    kind = v.dtype.type
    if rows == 4:
        s0, s1, s2, s3 = kind(0), kind(0), kind(0), kind(0)
        for j in range(v.size):
            s0 += kernel[first, j] * v[j]
            s1 += kernel[first + 1, j] * v[j]
            s2 += kernel[first + 2, j] * v[j]
            s3 += kernel[first + 3, j] * v[j]
        out[0], out[1], out[2], out[3] = s0, s1, s2, s3
    else:
        for r in range(rows):
            total = kind(0)
            for j in range(v.size):
                total += kernel[first + r, j] * v[j]
            out[r] = total


@njit(nogil=True, fastmath=True, cache=True)
def sweep_kernel(
    first: int,
    last: int,
    kernel: Reals,
    f: Floats,
    v: Reals,
    weight: Floats,
    target: Floats,
    phi: float,
    best: Floats,
    total: Floats,
) -> None:
    """Sweep over a stored kernel K_ij = 2^(F_i + G_j - scale C_ij) with v = 2^(change of G): read K, write vectors.

    Fills the new F, best (m,), and total (n,), this call's part of T / v.
    """
    sums, z, s = np.zeros(v.size, v.dtype), np.empty(ROWS, v.dtype), np.empty(ROWS, v.dtype)
    total[:] = 0
    for i in range(first, last, ROWS):
        rows = min(ROWS, last - i)
        _dot_rows(kernel, i, rows, v, s)
        for r in range(rows):
            best[i + r] = phi * (target[i + r] - np.log2(float(s[r])) + f[i + r])
            z[r] = weight[i + r] * exp2(best[i + r] - f[i + r])
        _add_rows(kernel, i, z, rows, sums)
        if (i - first) % FLUSH == 0:
            _flush(sums, total)
    _flush(sums, total)


@njit(cache=True)
def scalings(g: Floats, scale: float, log_weight: Floats, at: Floats, v: Reals) -> float:
    """Fill v = 2^(G - at), (n,), where G = g scale + log_weight; return the largest |G - at|."""
    far = 0.0
    for j in range(g.size):
        away = g[j] * scale + log_weight[j] - at[j]
        far = max(far, abs(away))
        v[j] = exp2(away)
    return far


@njit(fastmath=True, cache=True)
def farthest(f: Floats, at: Floats) -> float:
    """The largest |f - at|."""
    far = 0.0
    for i in range(f.size):
        far = max(far, abs(f[i] - at[i]))
    return far


@njit(cache=True)
def soft_minima(sums: Floats, g: Floats, scale: float, lost: float, h: Floats) -> int:
    """Fill h = (log2 sums - G) / scale and count the columns whose sum is lost: outside [lost, 1 / lost]."""
    count = 0
    for j in range(g.size):
        if lost < sums[j] < 1 / lost:
            h[j] = (np.log2(sums[j]) - g[j]) / scale
        else:
            h[j] = np.nan
            count += 1
    return count


@njit(nogil=True, cache=True)
def soft_columns(first: int, last: int, cost: Floats, scale: float, f: Floats, out: Floats) -> None:
    """log2 sum_i 2^(f_i - scale cost_ij) for the columns j in [first, last), safe at any size: the rare, slow way.

    `f` holds the row weights' log2 as well; `cost` has the columns in question only, float64.
    """
    for j in range(first, last):
        top = -np.inf
        for i in range(cost.shape[0]):
            top = max(top, f[i] - scale * cost[i, j])
        total = 0.0
        for i in range(cost.shape[0]):
            total += 2.0 ** (f[i] - scale * cost[i, j] - top)
        out[j] = np.log2(total) + top


@njit(nogil=True, cache=True)
def write_costs(first: int, last: int, x: Reals, y_turned: Reals, metric: int, out: Reals) -> None:
    """out = costs of points x (rows, d) to points y_turned (d, n), rows in [first, last)."""
    for i in range(first, last, ROWS):
        rows = min(ROWS, last - i)
        _fill_costs(x, y_turned, metric, i, rows, out[i : i + rows])


@njit(nogil=True, cache=True)
def write_plan(first: int, last: int, cost: Reals, scale: float, f: Floats, g: Floats, plan: Reals) -> None:
    """plan_ij = 2^(f_i + g_j - scale cost_ij), in float64, weights inside f and g; zeros where forbidden."""
    for i in range(first, last):
        for j in range(cost.shape[1]):
            exponent = f[i] + g[j] - scale * cost[i, j]
            plan[i, j] = exp2(exponent) if exponent > -1000.0 else 0.0
