"""Numbers out of proportion: old prices beyond what benefits can justify are cut, benefits far from 1 are scaled."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.auction.scaling import NEAR, extremes
from kernels.problems import Csr
from kernels.problems.arrays import Amounts, Costs, Floats
from kernels.problems.sparse import Auction
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

CHAIN = 4
"""Spans that an old price may reach where rows cannot take every column: a chain of rows may pass a price on."""


def cut_prices(prices: Costs, scale: int | float, span: float, chains: bool, movable: bool, exact: bool) -> Amounts:
    """Old prices in the solver's arithmetic: times `scale`, in int64 (`exact`) or float64, cut to what can be of use.

    Where every row may take every column, or stay unassigned for a price that `span` covers too, prices of at most one
    span of benefits belong to some optimum. `chains` says that this is not so. `movable` says that adding the same to
    all prices changes nothing: prices that are too large are then first moved down together. An old price can so
    cost time; it costs no digits that the benefits need.
    """
    most = span * (min(CHAIN, prices.size) if chains else 1)
    if not exact:
        floats = prices.astype(np.float64)
        if movable and floats.max() > most:
            floats = floats - floats.min()
        return np.minimum(floats, most)
    whole, step = int(most), int(scale) if float(scale).is_integer() else 0
    if prices.dtype.kind == "i" and step:
        if whole < step:  # the cheapest price that is not 0 is beyond use
            return np.zeros(prices.shape, np.int64)
        ints = prices.astype(np.int64)
        if movable and int(ints.max()) > whole // step:
            ints = ints - ints.min()
        return np.minimum(ints, whole // step) * step
    floats = prices.astype(np.float64)
    if movable and floats.max() > whole / scale:
        floats = floats - floats.min()
    return np.minimum(np.floor(np.minimum(floats, whole / scale) * scale), float(whole)).astype(np.int64)


def bring_near(problem: Auction, options: "AuctionOptions") -> tuple[Auction, Any, int]:
    """The same problem in units of 2^k, and k: 0 unless floats are so large or small that sums or steps could leave
    float64. Such a scaling is exact."""
    weights, reject = problem.weights, problem.reject
    values = weights.values if isinstance(weights, Csr) else weights
    kinds = {part.dtype.kind for part in (values, reject) if part is not None}
    if "f" not in kinds or not values.size:
        return problem, options, 0
    parts = [values] if reject is None else [values, reject]
    largest = max(max(map(abs, extremes(part))) for part in parts)
    k = math.frexp(largest)[1] if largest > 0 else 0
    if -NEAR <= k <= NEAR:
        return problem, options, 0
    near = replace(
        problem,
        weights=replace(weights, values=scaled(values, -k)) if isinstance(weights, Csr) else scaled(values, -k),
        reject=None if reject is None else scaled(reject, -k),
        prices0=None if problem.prices0 is None else scaled(problem.prices0, -k),
    )
    if options.epsilon is not None:
        smallest, most = math.ulp(0.0), np.finfo(np.float64).max
        epsilon = max(smallest, min(most, float(scaled(np.array([options.epsilon]), -k)[0])))
        options = options.model_copy(update={"epsilon": epsilon})
    return near, options, k


def take_back(solution: Solution, k: int, options: "AuctionOptions") -> Solution:
    """The solution of the problem that `bring_near` scaled by 2^-k, in the problem's own units."""
    if k:
        for name in ("prices", "profits"):
            solution.arrays[name] = scaled(solution.arrays[name], k)
        if options.epsilon is not None:
            solution.facts["epsilon"] = float(options.epsilon)
        elif "epsilon" in solution.facts:
            solution.facts["epsilon"] = math.ldexp(solution.facts["epsilon"], k)
    return solution


def scaled(values: Costs, k: int) -> Floats:
    """values * 2^k in float64; what leaves float64 becomes the largest number, or 0."""
    with np.errstate(over="ignore", under="ignore"):
        times = np.ldexp(values.astype(np.float64), k)
    return np.where(np.isposinf(times), np.finfo(np.float64).max, times)
