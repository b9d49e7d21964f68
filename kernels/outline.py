"""Arrays of which only shape and type are known, for estimates of problems that nobody has read yet."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.problems.arrays import Array, Csr, Inputs, InvalidProblem, numeric


def stand_in(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """An array of that shape, in the type that problems hold it in, that takes next to no memory.

    Each line is the one before it, moved by one. Its entries are random, so that lines have nothing to do with each
    other and an estimate takes it for a matrix without structure.
    """
    held = numeric("", np.ones(1, dtype), ndim=(1,)).dtype
    noise = np.random.default_rng(0).integers(1, 100, sum(shape) + 1).astype(held)
    return as_strided(noise, shape, (noise.itemsize,) * len(shape), writeable=False)


def dense(inputs: Inputs, name: str, ndim: tuple[int, ...] = (2,)) -> Array:
    """The input of that name. Raises InvalidProblem where it is sparse or of another rank."""
    found = inputs.get(name)
    if found is None or isinstance(found, Csr) or found.ndim not in ndim:
        told = "is missing" if found is None else "is sparse" if isinstance(found, Csr) else f"has shape {found.shape}"
        raise InvalidProblem(name, f"{told}; expected a {' or '.join(f'{n}-dimensional' for n in ndim)} array")
    return found
