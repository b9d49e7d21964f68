import tracemalloc

import numpy as np
import pytest

from kernels import InvalidProblem
from kernels.problems import QuadraticAssignment
from kernels.qap.qaplib import parse_dat, parse_sln
from tests.instances import quadratic as instances

TWO = "2\n\n0 1\n1 0\n\n0 3\n3 0\n"


def test_reads_what_published_files_hold() -> None:
    for text in (
        TWO,
        "2 99\n0 1 1 0\n0 3 3 0",
        "  2\n0\n1\n1 0 0 3\n\n\n3 0",
        "2\n0,1\n1,0\n0,3\n3,0",
        TWO.replace("\n", "\r\n"),
    ):
        flow, distance = parse_dat(text)
        assert flow.tolist() == [[0, 1], [1, 0]]
        assert distance.tolist() == [[0, 3], [3, 0]]
        assert flow.dtype == np.int64
    flow, _ = parse_dat(TWO.replace("1", "1.5"))
    assert flow.tolist() == [[0, 1.5], [1.5, 0]]
    assert parse_dat("1 -4 +5e0")[0].tolist() == [[-4]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("2\n0 1\n1 0\n0 3\n3", r"ends at line 5, token 1 after 7 matrix entries; expected 8"),
        (TWO + "7", r"'7' at line 8, token 1"),
        ("0\n", "n = 0"),
        ("-3\n", "n = -3"),
        ("2.5\n", "n = 2.5"),
        ("1000000000\n1 2 3", "expected 2000000000000000000"),
        ("1" * 5000, "expected an integer"),
        ("2\n0 x\n1 0\n0 3\n3 0", r"'x' at line 2, token 2; expected a number"),
        ("2\n0 nan\n1 0\n0 3\n3 0", "'nan'"),
        ("2\n0 1_0\n1 0\n0 3\n3 0", "'1_0'"),
        ("2\n0 1-2\n1 0\n0 3\n3 0", "'1-2' at line 2, token 2"),
        ("2\n0 1.2.3\n1 0\n0 3\n3 0", "'1.2.3'"),
        ("2\n0 é\n1 0\n0 3\n3 0", "line 2, token 2; expected a number"),
        ("2\n0 --1\n1 0\n0 3\n3 0", "'--1'"),
        (
            "2\n0 9223372036854775808\n1 0\n0 3\n3 0",
            "9223372036854775808 at line 2, token 2; expected an integer of 64",
        ),
        ("1\n99999999999999999999 1", "64 bits"),
        ("1\n1e999 1", "finite"),
    ],
)
def test_refuses_with_the_place(text: str, says: str) -> None:
    with pytest.raises(InvalidProblem, match=says):
        parse_dat(text)


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("inverse", [False, True])
def test_solution_in_either_base_and_direction(base: int, inverse: bool) -> None:
    flow, distance = instances.asymmetric(6, 0, 50, 1), instances.asymmetric(6, 0, 50, 2)
    permutation = np.array([2, 0, 1, 4, 5, 3])
    value = QuadraticAssignment(flow, distance).objective(permutation)
    places = (np.argsort(permutation) if inverse else permutation) + base
    found, objective = parse_sln(f"6 {value}\n" + " ".join(map(str, places)), flow, distance)
    assert found.tolist() == permutation.tolist()
    assert objective == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2 7\n1 2", "claims objective 7"),
        ("3 6\n1 2 3", "expected n = 2"),
        ("2 6\n1 1", "no permutation"),
        ("2 6\n1", "expected n, the objective and 2 places"),
        ("2 6\n1 900", "expected a place"),
    ],
)
def test_wrong_solution_is_refused(text: str, says: str) -> None:
    flow, distance = parse_dat(TWO)
    with pytest.raises(InvalidProblem, match=says):
        parse_sln(text, flow, distance)


def test_four_million_numbers_take_no_more_than_their_own_memory_a_few_times() -> None:
    n = 1400
    text = f"{n}\n" + "0 " * (2 * n * n)
    tracemalloc.start()
    flow, _ = parse_dat(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert flow.shape == (n, n)
    assert peak < 12 * 8 * 2 * n * n


def test_the_least_and_greatest_integers() -> None:
    text = "1\n-9223372036854775808 9223372036854775807"
    assert [int(m[0, 0]) for m in parse_dat(text)] == [-(2**63), 2**63 - 1]
