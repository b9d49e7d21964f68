import math
from typing import Any

import numpy as np
import pytest

from app.intake.json_arrays import array_from_lists
from kernels import FORBIDDEN, InvalidProblem


def read(data: Any, forbidden: float | None = math.inf) -> Any:
    return array_from_lists("cost", data, forbidden, 1000)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([[1, 2], [3, 4]], np.int64),
        ([[1, 2], [3, 4.5]], np.float64),
        ([2**63 - 1, -(2**63)], np.int64),
        ([[[1.0]], [[2.0]]], np.float64),
        ([[[[1, 2]], [[3, 4]]], [[[5, 6]], [[7, 8]]]], np.int64),
    ],
)
def test_numbers_keep_their_kind(data: Any, dtype: Any) -> None:
    array = read(data)
    assert array.dtype == dtype
    assert array.tolist() == data


def test_null_is_the_forbidden_value() -> None:
    assert read([[1, None], [2, 3]]).tolist() == [[1, math.inf], [2, 3]]
    assert read([[1, None]], -math.inf).tolist() == [[1, -math.inf]]


def test_null_among_integers_leaves_them_exact_where_asked() -> None:
    def masked(data: Any) -> Any:
        return array_from_lists("cost", data, math.inf, 1000, FORBIDDEN)

    kept = masked([[2**53 + 1, None], [None, 2]])
    assert kept.dtype == np.int64
    assert kept.tolist() == [[2**53 + 1, FORBIDDEN], [FORBIDDEN, 2]]
    assert masked([[1, None], [0.5, 2]]).tolist() == [[1, math.inf], [0.5, 2]]
    assert masked([[None, None]]).tolist() == [[math.inf, math.inf]]
    for data in ([[1, None], [-(2**63), 2]], [[1, 0], [-(2**63), 2]]):
        with pytest.raises(InvalidProblem, match=r"-9223372036854775808 at \[1, 0\]"):
            masked(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, 2], [3]], r"ragged: row \[1\] holds 1 entries; expected 2"),
        ([[1, 2], 3], r"ragged: row \[1\]"),
        ([[[1, 2], [3, 4]], [[1, 2], [3]]], r"ragged: row \[1, 1\]"),
        ([[[[1, 2]], [[3, 4]]], [[[5, 6]], [[7]]]], r"ragged: row \[1, 1, 0\]"),
        ([[[[1, 2]], [[3, True]]]], r"a boolean at \[0, 1, 0, 1\]"),
        ([1, [2]], r"a list at \[1\]"),
        ([[1, True]], r"a boolean at \[0, 1\]"),
        ([[1.5, False]], r"a boolean at \[0, 1\]"),
        ([["1", 2]], r"a string at \[0, 0\]"),
        ([[1, {}]], r"an object at \[0, 1\]"),
        ([[1, 2**63]], r"9223372036854775808 at \[0, 1\], which does not fit int64"),
        ([[0.5, 2**70]], r"does not fit int64"),
        ([10**400, 1.0], r"does not fit int64"),
        ([[[[[1]]]]], "nested 5 deep"),
        (5, "the number 5"),
        ("abc", "a string"),
        ([[0] * 40] * 40, "1600 entries; at most 1000"),
    ],
)
def test_the_place_of_the_fault_is_named(data: Any, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        read(data)


def test_null_in_a_vector_is_refused() -> None:
    with pytest.raises(InvalidProblem, match=r"null at \[1\]"):
        read([1, None], None)


@pytest.mark.parametrize("data", [[], [[]], [[], []]])
def test_empty_lists_stay_empty(data: Any) -> None:
    assert read(data).size == 0
