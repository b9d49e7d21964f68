from app.cli.warm import warm_one


def test_a_solver_warms_up_without_complaint() -> None:
    assert warm_one("lap", "cpu")[0] == ""


def test_what_cannot_be_compiled_is_told() -> None:
    assert "KeyError" in warm_one("sudoku", "cpu")[0]
