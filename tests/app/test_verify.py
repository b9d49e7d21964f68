"""`allot verify`: right answers hold, and whatever is changed in them, or in the problem, is found."""

import hashlib
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allot_client.files import Read
from scipy.sparse import csr_array, save_npz

from app.answers.answer import json_bytes
from app.cli.main import main
from app.cli.solve import solve
from kernels import SOLVERS

Printed = pytest.CaptureFixture[str]


def solved(capsys: Printed, *arguments: str) -> dict[str, Any]:
    assert main(["solve", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def verified(tmp_path: Path, capsys: Printed, document: dict[str, Any], *arguments: str) -> tuple[int, str]:
    (tmp_path / "answer.json").write_text(json.dumps(document))
    status = main(["verify", str(tmp_path / "answer.json"), *arguments])
    return status, capsys.readouterr().out


@pytest.fixture
def cost(tmp_path: Path) -> str:
    np.save(tmp_path / "c.npy", np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    return str(tmp_path / "c.npy")


def test_a_right_answer_holds(tmp_path: Path, capsys: Printed, cost: str) -> None:
    document = solved(capsys, cost)
    for given in (cost, f"cost={cost}"):
        status, out = verified(tmp_path, capsys, document, given)
        assert status == 0
        assert "NO" not in out
        assert "yes          bound" in out


@pytest.mark.parametrize("name", ["objective", "termination"])
def test_a_changed_answer_does_not(tmp_path: Path, capsys: Printed, cost: str, name: str) -> None:
    document = solved(capsys, cost)
    document[name] = {"objective": 4, "termination": "infeasible"}[name]
    status, _ = verified(tmp_path, capsys, document, cost)
    assert status in (1, 2)
    document = solved(capsys, cost)
    document["certificate"]["bound"] += 1
    status, out = verified(tmp_path, capsys, document, cost)
    assert status == 1
    assert "NO           bound" in out


def test_another_problem_does_not(tmp_path: Path, capsys: Printed, cost: str) -> None:
    document = solved(capsys, cost)
    np.save(tmp_path / "d.npy", np.array([[4, 2, 3], [2, 0, 5], [3, 2, 2]]))
    assert verified(tmp_path, capsys, document, str(tmp_path / "d.npy"))[0] == 1


def test_the_options_are_those_of_the_job(tmp_path: Path, capsys: Printed, cost: str) -> None:
    document = solved(capsys, cost, "-o", "maximize=true")
    assert document["options"] == {"maximize": True}
    assert verified(tmp_path, capsys, document, cost)[0] == 0
    assert verified(tmp_path, capsys, document, cost, "-o", "maximize=false")[0] == 1


def test_every_solver(tmp_path: Path, capsys: Printed, cost: str) -> None:
    save_npz(tmp_path / "g.npz", csr_array(np.array([[7, 4, 0], [0, 6, 3], [5, 0, 8]])))
    (tmp_path / "a.dat").write_text("3\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n")
    for arguments in ([str(tmp_path / "g.npz")], [str(tmp_path / "a.dat")], [cost, "--solver", "auction"]):
        document = solved(capsys, *arguments)
        assert verified(tmp_path, capsys, document, arguments[0])[0] == 0, arguments
    document = solved(capsys, cost, "--solver", "uot", "-o", "reg=0.5")
    status, out = verified(tmp_path, capsys, document, cost)
    assert "yes          objective" in out
    assert status in (0, 1)


def test_arrays_beside_the_answer(tmp_path: Path, capsys: Printed, cost: str) -> None:
    document = solved(capsys, cost)
    np.savez(tmp_path / "r.npz", assignment=document.pop("assignment"), **document.pop("duals"))
    document["assignment"] = {"blob": "sha256:0", "dtype": "int64", "shape": [3]}
    assert verified(tmp_path, capsys, document, cost)[0] == 2
    assert verified(tmp_path, capsys, document, cost, "--arrays", str(tmp_path / "r.npz"))[0] == 0


def digest(array: Any) -> str:
    file = io.BytesIO()
    np.save(file, array)
    return f"sha256:{hashlib.sha256(file.getvalue()).hexdigest()}"


def test_the_inputs_are_those_that_were_solved(tmp_path: Path, capsys: Printed, cost: str) -> None:
    right = digest(np.load(cost))
    document = solved(capsys, cost)
    form = {"format": "npy", "dtype": "int64", "shape": [3, 3]}
    for reference in (right, {"kind": "array", "digest": right}, {"blob": right, **form}):
        document["input_digests"] = {"cost": reference}
        assert verified(tmp_path, capsys, document, cost)[0] == 0
    wrong = ("sha256:0", {"blob": right, **form, "dtype": "float64"}, {"blob": right, **form, "shape": [9]})
    for reference in wrong:
        document["input_digests"] = {"cost": reference}
        assert verified(tmp_path, capsys, document, cost)[0] == 1
    document["input_digests"] = {"cost": right, "v0": right}
    assert verified(tmp_path, capsys, document, cost)[0] == 0
    document["input_digests"] = {"cost": right, "sizes": right}
    assert verified(tmp_path, capsys, document, cost)[0] == 1


def test_what_was_posted_is_a_problem_too(tmp_path: Path, capsys: Printed) -> None:
    posted = {"solver": "lap", "inputs": {"cost": [[4, 1], [2, None]]}, "options": {}}
    (tmp_path / "job.json").write_text(json.dumps(posted))
    arrays = {"assignment": [1, 0], "duals": {"u": [1, 2], "v": [0, 0]}}
    certificate = {"bound": 3, "gap_abs": 0, "gap_rel": 0.0, "max_violation": 0, "holds": True, "proved": ""}
    document = {"solver": "lap", "termination": "optimal", "objective": 3, "certificate": certificate, **arrays}
    assert verified(tmp_path, capsys, document, str(tmp_path / "job.json"))[0] == 0
    document["assignment"] = [0, 1]
    assert verified(tmp_path, capsys, document, str(tmp_path / "job.json"))[0] == 1


def test_an_answer_for_other_options_than_were_posted(tmp_path: Path, capsys: Printed, cost: str) -> None:
    document, listed = solved(capsys, cost, "-o", "maximize=true"), np.load(cost).tolist()
    for options, status in (({"maximize": True}, 0), ({"maximize": False}, 1), ({}, 1), (None, 1)):
        (tmp_path / "job.json").write_text(
            json.dumps({"solver": "lap", "inputs": {"cost": listed}, "options": options})
        )
        found, out = verified(tmp_path, capsys, document, str(tmp_path / "job.json"))
        assert found == status
        assert ("NO           option maximize" in out) == bool(status)
    assert verified(tmp_path, capsys, document, str(tmp_path / "job.json"), "-o", "maximize=true")[0] == 0


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_a_number_that_is_none(tmp_path: Path, capsys: Printed, cost: str, wrong: float) -> None:
    for name in ("objective", "bound", "gap_abs", "gap_rel", "max_violation"):
        document = solved(capsys, cost)
        (document if name == "objective" else document["certificate"])[name] = wrong
        assert verified(tmp_path, capsys, document, cost)[0] == 2


def test_wrong_input(tmp_path: Path, capsys: Printed, cost: str) -> None:
    assert main(["verify", str(tmp_path / "none.json"), cost]) == 2
    (tmp_path / "answer.json").write_text("{")
    assert main(["verify", str(tmp_path / "answer.json"), cost]) == 2
    (tmp_path / "answer.json").write_text('{"solver": "lap"}')
    assert main(["verify", str(tmp_path / "answer.json"), cost]) == 2
    capsys.readouterr()
    document = solved(capsys, cost)
    assert verified(tmp_path, capsys, document, str(tmp_path / "none.npy"))[0] == 2
    assert verified(tmp_path, capsys, {**document, "solver": "tsp"}, cost)[0] == 2


def test_a_file_is_read_as_the_job_read_it(tmp_path: Path, capsys: Printed, cost: str) -> None:
    document, matrix = solved(capsys, cost), np.load(cost)
    (tmp_path / "c.raw").write_bytes(matrix.tobytes())
    np.savez(tmp_path / "c.npz", this=matrix, cost=matrix + 1)
    for file, form in (
        ("c.raw", {"format": "raw", "dtype": "int64", "shape": [3, 3]}),
        ("c.npz", {"format": "npz", "member": "this", "dtype": "int64", "shape": [3, 3]}),
    ):
        whole = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        document["input_digests"] = {"cost": {"blob": f"sha256:{whole}", **form}}
        assert verified(tmp_path, capsys, document, f"cost={tmp_path / file}")[0] == 0
    del document["input_digests"]
    assert verified(tmp_path, capsys, document, f"cost={tmp_path / 'c.npz'}")[0] == 1


def posted(tmp_path: Path, inputs: dict[str, Any]) -> list[str]:
    """The inputs as files, as the command takes them."""
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
    return [f"{name}={tmp_path / name}.npy" for name in inputs]


def transported(tmp_path: Path, inputs: dict[str, Any], options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The document of an answer, and its problem as files."""
    card = SOLVERS["uot"]
    chosen = card.options.model_validate(options)
    read = Read("uot", {name: np.asarray(value) for name, value in inputs.items()})
    document = json.loads(json_bytes(solve(card, read, chosen, "cpu", None, False).document))
    return document, posted(tmp_path, inputs)


CLOUD = np.array([[0.0, 1.0], [0.5, 0.25], [1.0, 0.0], [0.25, 0.75], [0.75, 0.5]])
BATCH = np.array([[[0.0, 1.0], [2.0, 0.5]], [[10.0, 30.0], [20.0, 0.0]]])
STRENGTHS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({"cost": BATCH[0]}, {}),
    "median": ({"cost": BATCH[0]}, {"reg_scale": "median", "reg": 0.1, "reg_m": [1.0, "inf"]}),
    "batch": ({"cost": BATCH}, {}),
    "own": ({"cost": BATCH, "regs": np.array([1.0, 2.0]), "regs_m": np.array([[1.0, np.inf], [2.0, 2.0]])}, {}),
    "clouds": ({"x": CLOUD[:3], "y": CLOUD[1:], "sizes": np.array([[1, 2], [2, 2]])}, {"reg": 0.5, "reg_m": 2.0}),
    "potentials": ({"x": CLOUD[:3], "y": CLOUD[1:], "sizes": np.array([[1, 2], [2, 2]])}, {"output": "potentials"}),
    "part": ({"cost": BATCH[0]}, {"mass_share": 0.5}),
    "total variation": ({"cost": BATCH[0]}, {"marginals": "tv", "reg_scale": "mean", "reg": 0.2, "reg_m": [1.0, 0.5]}),
    "squares": ({"x": CLOUD[:3], "y": CLOUD[2:]}, {"marginals": "l2", "reg_m": 2.0}),
    "divergence": ({"x": CLOUD[:3], "y": CLOUD[2:]}, {"divergence": True}),
    "divergences": (
        {"x": CLOUD[:3], "y": CLOUD[1:], "sizes": np.array([[1, 2], [2, 2]])},
        {"divergence": True, "reg_m": "inf"},
    ),
}


@pytest.mark.parametrize("case", STRENGTHS)
def test_transport_with_strengths_of_its_own(tmp_path: Path, capsys: Printed, case: str) -> None:
    document, files = transported(tmp_path, *STRENGTHS[case])
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 0, out
    facts = document["facts"]
    facts["reg"] = [1.1 * one for one in facts["reg"]] if isinstance(facts["reg"], list) else 1.1 * facts["reg"]
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 1
    assert "NO" in out


@pytest.mark.parametrize(("name", "none"), [("reg", 0.0), ("reg", -0.0), ("reg_m", [0.0, 1.0])])
def test_strengths_that_are_none(tmp_path: Path, capsys: Printed, name: str, none: Any) -> None:
    document, files = transported(tmp_path, *STRENGTHS["default"])
    document["facts"][name] = none
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 2
    assert "does not fit this problem" in out


def test_a_divergence_that_does_not_follow(tmp_path: Path, capsys: Printed) -> None:
    document, files = transported(tmp_path, *STRENGTHS["divergence"])
    for change in ("bound", "interval"):
        changed = json.loads(json.dumps(document))
        if change == "bound":
            changed["certificate"]["bound"] += 1e-4
        else:
            changed["certificate"]["facts"]["divergences"][0][1] -= 1e-4
        status, out = verified(tmp_path, capsys, changed, *files)
        assert status == 1
        assert "NO           divergence" in out


def test_what_was_not_certified_cannot_be_told(tmp_path: Path, capsys: Printed) -> None:
    document, files = transported(tmp_path, {"cost": BATCH[0]}, {"certificate": "none"})
    assert document["certificate"]["verified"] is False
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 1
    assert "cannot tell" in out


def test_a_layout_is_read_as_it_was_for_the_answer(tmp_path: Path, capsys: Printed) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    book, names, rooms = openpyxl.Workbook(), list("abc"), ["r1", "r2", "r3"]
    page = book.active
    page.title = "Trips"
    for row in (["", *names], ["a", 0, 1, 2], ["b", 1, 0, 3], ["c", 2, 3, 0]):
        page.append(row)
    page = book.create_sheet("Metres")
    for row in (["", *rooms], ["r1", 0, 5, 1], ["r2", 5, 0, 2], ["r3", 1, 2, 0]):
        page.append(row)
    book.save(tmp_path / "layout.xlsx")
    for name in ("flow", "distance"):
        sheet = {"flow": "Trips", "distance": "Metres"}[name]
        rows = [[str(cell or "0") for cell in row] for row in book[sheet].iter_rows(values_only=True)]
        (tmp_path / f"{name}.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    document = solved(capsys, str(tmp_path / "layout.xlsx"), "--time-limit", "3")
    sheets = [f"flow={tmp_path / 'layout.xlsx'}:Trips", f"distance={tmp_path / 'layout.xlsx'}:Metres"]
    tables = [f"{name}={tmp_path / name}.csv" for name in ("flow", "distance")]
    for given in ([str(tmp_path / "layout.xlsx")], sheets, tables):
        status, out = verified(tmp_path, capsys, document, *given)
        assert (status, "NO" in out) == (0, False), out


def test_what_is_no_answer_is_told_in_a_sentence(tmp_path: Path, capsys: Printed, cost: str) -> None:
    (tmp_path / "rooms.csv").write_text("row,column\na,b\n")
    assert main(["verify", str(tmp_path / "rooms.csv"), cost]) == 2
    assert "expected the answer as `--out answer.json` writes it" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "none.json"), cost]) == 2
    assert f"there is no file {tmp_path / 'none.json'}" in capsys.readouterr().err


BARYCENTER: dict[str, Any] = {
    "histograms": [[0.7, 0.3, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6]],
    "cost": [[0.0, 1.0, 4.0, 9.0], [1.0, 0.0, 1.0, 4.0], [4.0, 1.0, 0.0, 1.0], [9.0, 4.0, 1.0, 0.0]],
}
SPACES = {"x_distance": [[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]], "y_distance": [[0.0, 2.0], [2.0, 0.0]]}
LINES = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]
FOUR = [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
ALTERED: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, list[Any]]]] = {
    "one": ("lap", {"cost": LINES}, {}, {"termination": ["gap_reached"], "certificate.holds": [False]}),
    "batch": (
        "lap",
        {"cost": [LINES, LINES[::-1]]},
        {},
        {
            "termination": ["converged", "gap_reached", "infeasible"],
            "objective": [9, 11, None],
            "certificate.bound": [9, 11],
            "certificate.gap_abs": [1, None],
            "certificate.gap_rel": [-0.01],
            "certificate.max_violation": [-1],
            "certificate.facts.problems.terminations.1": ["converged", "gap_reached"],
        },
    ),
    "prices": (
        "lap",
        {"cost": [LINES, LINES[::-1]], "reject_rows": [[2, 2, 2], [3, 3, 3]]},
        {"maximize": True},
        {"termination": ["infeasible"], "objective": [0, None], "certificate.bound": [0]},
    ),
    "none": (
        "lap",
        {"cost": [[1.0, np.inf], [2.0, np.inf]]},
        {},
        {"objective": [1.5], "certificate.bound": [1.5], "certificate.gap_abs": [0.0], "certificate.gap_rel": [0.0]},
    ),
    "points": ("lap", {"x": [[0.0, 1.0]], "y": [[1.0, 1.0], [2.0, 0.0]]}, {}, {"termination": ["infeasible"]}),
    "list": (
        "lap",
        {"cost": LINES},
        {"k_best": 3},
        {"assignment.0": [2], "certificate.facts.others_bound": [100]},
    ),
    "epsilon": (
        "auction",
        {"benefit": [[0.5, 0.25], [0.75, 0.125]]},
        {"epsilon": 0.05},
        {"facts.epsilon": [0.06], "certificate.verified": [True, "yes"]},
    ),
    "locations": ("qap", {"flow": LINES, "distance": LINES}, {}, {"termination": ["gap_reached"]}),
    "fewer facilities": (
        "qap",
        {"flow": LINES, "distance": FOUR, "linear": [[1, 2, 3, 4], [4, 3, 2, 1], [1, 1, 2, 2]]},
        {},
        {"termination": ["gap_reached"]},
    ),
    "fewer facilities, no room": ("qap", {"flow": LINES, "distance": FOUR}, {"fixed": {0: 3, 1: 3}}, {}),
    "transport": (
        "uot",
        {"cost": [[0.0, 1.0], [2.0, 0.5]]},
        {"reg": 0.3},
        {
            "termination": ["infeasible"],
            "certificate.gap_rel": [0.0, -0.01],
            "certificate.verified": [True],
        },
    ),
    "transports": (
        "uot",
        {"cost": [[[0.0, 1.0], [2.0, 0.5]], [[1.0, 3.0], [2.0, 0.0]]]},
        {"reg": 0.3},
        {
            "termination": ["optimal", "converged", "infeasible"],
            "objective": [0.5, None],
            "certificate.bound": [1.5],
            "certificate.gap_abs": [0.0],
            "certificate.gap_rel": [0.0],
            "certificate.facts.problems.proved": ["optimal", ["no plan exists"]],
        },
    ),
    "squares": (
        "uot",
        {"cost": [[0.0, 1.0], [2.0, 0.5]]},
        {"reg": 0.2, "reg_m": 0.5, "marginals": "l2"},
        {"certificate.gap_rel": [-0.01]},
    ),
    "divergence": (
        "uot",
        {"x": [[0.0, 1.0], [2.0, 0.5]], "y": [[0.5, 1.0], [1.0, 0.0]]},
        {"reg": 0.3, "divergence": True},
        {"termination": ["optimal", "infeasible"], "certificate.gap_abs": [-1.0], "certificate.gap_rel": [-0.01]},
    ),
    "auction": (
        "auction",
        {"benefit": [[7, 4, 1], [6, 6, 3], [9, 2, 2], [5, 1, 8]], "reject": [2, 5, 1, 0]},
        {},
        {"profits.0": [0, 9, None], "profits.1": [4, 6]},
    ),
    "auction, epsilon": (
        "auction",
        {"benefit": [[7.5, 4.0, 1.0], [6.0, 6.5, 3.0], [9.0, 2.0, 2.5]]},
        {"epsilon": 1.0},
        {"profits.2": [9.5, 0.5]},
    ),
    "general": ("lawler", {"cost": np.arange(81).reshape(3, 3, 3, 3)}, {}, {"termination": ["infeasible"]}),
    "spaces": ("gromov", SPACES, {}, {"termination": ["gap_reached", "infeasible", "converged x"]}),
    "barycenter": ("barycenter", BARYCENTER, {"reg": 0}, {"termination": ["infeasible"], "plan.0.0.0": [-0.01, 0.02]}),
}


@pytest.mark.parametrize("name", ALTERED)
def test_what_the_whole_answer_says_is_checked(tmp_path: Path, capsys: Printed, name: str) -> None:
    """A word, a sum over a batch, a relative gap or an array, each altered in a stored answer by itself."""
    solver, inputs, options, altered = ALTERED[name]
    arrays = {key: np.asarray(value) for key, value in inputs.items()}
    chosen = SOLVERS[solver].options.model_validate(options)
    document = json.loads(json_bytes(solve(SOLVERS[solver], Read(solver, arrays), chosen, "cpu", 5.0, False).document))
    files = posted(tmp_path, arrays)
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 0, out
    for path, others in altered.items():
        for other in others:
            wrong, (*way, last) = (
                json.loads(json.dumps(document)),
                [int(x) if x.isdigit() else x for x in path.split(".")],
            )
            at = wrong
            for step in way:
                at = at[step]
            assert at[last] != other
            at[last] = other
            status, out = verified(tmp_path, capsys, wrong, *files)
            assert status in (1, 2), (path, other, out)


def test_a_forbidden_pair_is_no_answer(tmp_path: Path, capsys: Printed) -> None:
    inputs = {"flow": np.array(LINES), "distance": np.array(LINES), "linear": np.zeros((3, 3))}
    inputs["linear"][0, 0] = np.inf
    options = SOLVERS["qap"].options()
    document = json.loads(json_bytes(solve(SOLVERS["qap"], Read("qap", inputs), options, "cpu", 5.0, False).document))
    files = posted(tmp_path, inputs)
    assert verified(tmp_path, capsys, document, *files)[0] == 0
    document |= {"termination": "converged", "permutation": [0, 1, 2]}
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 1
    assert "NO           permitted" in out


def test_a_floor_without_its_proof_cannot_be_told(tmp_path: Path, capsys: Printed) -> None:
    """What the guide to facility planning says of layouts that are too large for a tree."""
    places = np.abs(np.subtract.outer(range(10), range(10)))
    np.savez(tmp_path / "q.npz", flow=(places * 7) % 5, distance=places**2 % 13)
    value = int((((places * 7) % 5) * (places**2 % 13)).sum())
    certificate = {"bound": value - 2, "gap_abs": 2, "gap_rel": 2 / value, "max_violation": 0, "facts": {}}
    document: dict[str, Any] = {
        "solver": "qap", "termination": "time_limit", "objective": value, "permutation": list(range(10)),
        "certificate": certificate,
    }  # fmt: skip
    status, out = verified(tmp_path, capsys, document, str(tmp_path / "q.npz"))
    assert status == 1
    assert "cannot tell  bound" in out
    assert "NO " not in out
    certificate["gap_abs"] = 1
    assert "NO           gap" in verified(tmp_path, capsys, document, str(tmp_path / "q.npz"))[1]


@pytest.mark.parametrize("name", ALTERED)
def test_another_sentence_is_not_believed(tmp_path: Path, capsys: Printed, name: str) -> None:
    solver, inputs, options, _ = ALTERED[name]
    arrays = {key: np.asarray(value) for key, value in inputs.items()}
    chosen = SOLVERS[solver].options.model_validate(options)
    document = json.loads(json_bytes(solve(SOLVERS[solver], Read(solver, arrays), chosen, "cpu", 5.0, False).document))
    files, own = posted(tmp_path, arrays), document["certificate"]["proved"]
    status, out = verified(tmp_path, capsys, document, *files)
    assert status == 0, out
    assert "yes          proved" in out
    for sentence in ("optimal, as anybody can see", f"{own} and more", own.replace("bound", "lie"), f"optimal: {own}"):
        if sentence != own:
            document["certificate"]["proved"] = sentence
            status, out = verified(tmp_path, capsys, document, *files)
            assert status == 1, (sentence, out)
            assert "NO           proved" in out
    document["certificate"]["proved"] = 3
    assert verified(tmp_path, capsys, document, *files)[0] == 2
