"""Benefit graphs as files: the auction paper's binary instances, and MatrixMarket.

Each reader takes the bytes of a file and returns CSR (or a dense matrix where every entry is an edge). Sizes that a
header claims are held against the bytes there are before anything is allocated, and nothing is ever unpickled.
"""

import argparse
import re
import struct
import sys
import warnings

import numpy as np

from kernels.problems import Csr, InvalidProblem
from kernels.problems.arrays import Amounts, Costs, Floats, Indices, Integers32

COMMENTS = re.compile(rb"(?:\s*+%[^\n]*+(?:\n|$))*+\s*+")
"""Possessive, so that no text makes it look twice."""
FREE_LINES = 1 << 16
"""Rows or columns that a MatrixMarket file may claim however few bytes it has: each costs memory, empty or not."""
MTX_FIELDS = {"real": np.float64, "integer": np.int64, "pattern": np.int64}
MTX_SYMMETRIES = {"general": 0, "symmetric": 1, "skew-symmetric": -1}


def generate(n_rows: int, n_cols: int, density: float, seed: int, limit: int = 10_000) -> Csr:
    """The paper's instances: weights uniform in [1, limit], edges at `density`, a full assignment planted.

    The planted edges come on top of the random ones, so that the graph is feasible at any density.

    Raises:
        InvalidProblem: n_rows > n_cols, no rows, a density outside [0, 1] or a limit below 1.
    """
    if not 1 <= n_rows <= n_cols:
        raise InvalidProblem("n_rows", f"is {n_rows} with n_cols {n_cols}; expected 1 <= n_rows <= n_cols")
    if not 0 <= density <= 1:
        raise InvalidProblem("density", f"is {density}; expected a number from 0 to 1")
    if not 1 <= limit < 2**31:
        raise InvalidProblem("limit", f"is {limit}; expected 1 to 2**31 - 1")
    rng = np.random.default_rng(seed)
    planted = rng.permutation(n_cols)[:n_rows].astype(np.int32)
    rows = []
    for i in range(n_rows):
        count = rng.binomial(n_cols, density)
        columns = np.arange(n_cols) if count == n_cols else rng.choice(n_cols, count, replace=False, shuffle=False)
        rows.append(np.union1d(columns, planted[i]).astype(np.int32))
    indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])])
    values = rng.integers(1, limit + 1, int(indptr[-1]), dtype=np.int32)
    return Csr(indptr, np.concatenate(rows), values, (n_rows, n_cols))


def read_paper(data: bytes) -> Integers32 | Csr:
    """The paper's binary instance: int32 m, n, then m * n int32 weights by rows, little-endian; negative is no edge.

    Raises:
        InvalidProblem: the file is shorter or longer than its header says.
    """
    if len(data) < 8:
        raise InvalidProblem("benefit", f"is a file of {len(data)} bytes; expected int32 m and n first")
    m, n = struct.unpack("<ii", data[:8])
    if m < 1 or n < 1 or len(data) != 8 + 4 * m * n:
        raise InvalidProblem(
            "benefit", f"claims {m} x {n} and is {len(data)} bytes long; expected 8 + 4 * m * n bytes, m and n above 0"
        )
    weight = np.frombuffer(data, "<i4", offset=8).reshape(m, n).astype(np.int32)
    edges = weight >= 0
    if edges.all():
        return weight
    indptr = np.concatenate([[0], np.cumsum(edges.sum(1, dtype=np.int64))])
    return Csr(indptr, np.nonzero(edges)[1].astype(np.int32), weight[edges], (m, n))


def write_paper(benefit: Costs | Csr) -> bytes:
    """The bytes that `read_paper` reads; absent edges become -1. Weights must be integers in [0, 2**31)."""
    if isinstance(benefit, Csr):
        full = np.full(benefit.shape, -1, np.int32)
        full[np.repeat(np.arange(benefit.shape[0]), np.diff(benefit.indptr)), benefit.indices] = benefit.values
        benefit = full
    return struct.pack("<ii", *benefit.shape) + benefit.astype("<i4").tobytes()


def read_mtx(data: bytes) -> Amounts | Csr:
    """A MatrixMarket file: coordinate or array; real, integer or pattern (all 1); general or (skew-)symmetric.

    Stored zeros are edges of weight 0.

    Raises:
        InvalidProblem: a header, a size line or a body that does not fit the format.
    """
    head, _, rest = data.partition(b"\n")
    words = head.decode("latin-1").lower().split()
    layouts = ("coordinate", "array")
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"] or words[2] not in layouts:
        raise InvalidProblem("benefit", f"starts with {head[:60]!r}; expected %%MatrixMarket matrix coordinate ...")
    layout, kind, symmetry = words[2:]
    if kind not in MTX_FIELDS or symmetry not in MTX_SYMMETRIES or (layout == "array" and kind == "pattern"):
        raise InvalidProblem(
            "benefit", f"is {kind} {symmetry}; expected real, integer or pattern, general or (skew-)symmetric"
        )
    comments = COMMENTS.match(rest)
    sizes, _, body = rest[comments.end() if comments else 0 :].partition(b"\n")
    wanted = 3 if layout == "coordinate" else 2
    try:
        extent = [int(word) for word in sizes.split()]
    except ValueError:
        extent = []
    if len(extent) != wanted or min(extent) < 0 or min(extent[:2]) < 1:
        raise InvalidProblem("benefit", f"has the size line {sizes[:60]!r}; expected {wanted} counts")
    if max(extent[:2]) > max(FREE_LINES, len(body)):
        raise InvalidProblem(
            "benefit",
            f"claims {extent[0]} rows and {extent[1]} columns in {len(body)} bytes of entries; expected no more lines "
            f"than bytes, or at most {FREE_LINES}",
        )
    if layout == "array":
        return _mtx_array(body, extent[0], extent[1], kind, symmetry)
    return _mtx_coordinates(body, extent[0], extent[1], extent[2], kind, symmetry)


def _numbers(body: bytes, count: int) -> Floats:
    if 2 * count - 1 > len(body):  # a number and a blank take two bytes
        raise InvalidProblem("benefit", f"claims {count} numbers in {len(body)} bytes; the file is cut short")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # what NumPy says of text that is not a number
        try:
            found = np.fromstring(body.decode("latin-1"), np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            raise InvalidProblem("benefit", "holds something that is not a number after its size line") from None
    if found.size != count:
        raise InvalidProblem("benefit", f"holds {found.size} numbers after its size line; expected {count}")
    return found


def _mtx_array(body: bytes, m: int, n: int, kind: str, symmetry: str) -> Amounts:
    if symmetry != "general":
        raise InvalidProblem("benefit", f"is an array that is {symmetry}; expected a general one")
    return _cast(_numbers(body, m * n), kind).reshape(n, m).T.copy()


def _mtx_coordinates(body: bytes, m: int, n: int, count: int, kind: str, symmetry: str) -> Csr:
    width = 2 if kind == "pattern" else 3
    table = _numbers(body, count * width).reshape(count, width)
    at = table[:, :2]
    inside = (at >= 1) & (at <= (m, n)) & (at == np.floor(at))
    if not inside.all():
        i, j = at[~inside.all(1)][0]
        raise InvalidProblem("benefit", f"has an entry at ({i:g}, {j:g}); expected rows 1 to {m}, columns 1 to {n}")
    rows, columns = (at.T - 1).astype(np.int64)
    values = np.ones(count, np.int64) if kind == "pattern" else _cast(table[:, 2], kind)
    sign = MTX_SYMMETRIES[symmetry]
    if sign:
        off = rows != columns
        rows, columns = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
        values = np.concatenate([values, sign * values[off]])
    return _by_rows(rows, columns, values, (m, n))


def _cast(values: Floats, kind: str) -> Amounts:
    if kind == "real":
        return values
    if not (np.abs(values) < 2**53).all() or (values != np.floor(values)).any():
        raise InvalidProblem("benefit", "says integer and holds a number that is not one, or is beyond 2**53")
    return values.astype(np.int64)


def _by_rows(rows: Indices, columns: Indices, values: Amounts, shape: tuple[int, int]) -> Csr:
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    return Csr(indptr, columns[order], values[order], shape)


def main() -> None:
    """Write a generated instance to standard output (python -m kernels.auction.files 500 500 0.1 > a.bin)."""
    parser = argparse.ArgumentParser(description="Write one of the auction paper's instances to standard output.")
    for name, kind in (("n_rows", int), ("n_cols", int), ("density", float)):
        parser.add_argument(name, type=kind)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=10_000)
    sys.stdout.buffer.write(write_paper(generate(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
