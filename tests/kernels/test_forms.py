"""What a job on a GPU asks for was compiled ahead: the list holds every form that the solvers' own code chooses."""

import random
from pathlib import Path

import pytest

from kernels import shelf
from kernels.shelf import Form

pytest.importorskip("kernels.cuda", reason="cupy is not installed")

from kernels.papers.hungarian.gpu import OURS, VERSIONS
from kernels.sources import sources
from kernels.uot.iteration.gpu_geometry import ALIKE, MatrixSize, geometry
from tests.kernels.asked_forms import asked, form_of, ways_of

OF_A_SIZE = {"uot/dense/fused.cu"}
"""Asked for by an option alone, in another form for each size."""


def test_everything_that_a_job_asks_for_is_on_the_list() -> None:
    listed = shelf.listed()
    missing = {form for form, asking in asked().items() if form not in listed or not _covers(listed[form], asking)}
    assert not missing, f"python -m tests.kernels.asked_forms adds {sorted(map(str, missing))[:5]}"


def _covers(listed: frozenset[str], asking: frozenset[str]) -> bool:
    return not listed or (bool(asking) and asking <= listed)


def test_every_source_is_on_the_list() -> None:
    compared = {
        f"papers/hungarian/{name}.cu" for level, name in VERSIONS.items() if level != OURS
    }  # by benchmarks alone
    assert set(sources()) - {form.path for form in shelf.listed()} == OF_A_SIZE | compared


def test_what_is_asked_for_is_what_the_host_code_says() -> None:
    """Forms that a GPU was seen to ask for, of each solver."""
    wanted = asked()
    for form in (
        form_of(
            "lap/batched/batched.cu", {"COST": "float", "VALUE": "double", "TEAM": 32, "SLOTS": 2, "MATRIX_SHARED": 1}
        ),
        form_of("lap/auto/forest.cu", {"COST": "double", "VALUE": "double", "STRIPS": 4, "RESIDENT": 0}),
        form_of("auction/auction.cu", {"VALUE": "int", "FIXED_POINT": 0}),
        form_of("uot/batch/batch.cu", {"WARPS": 17, "ROWS": 12, "COLS": 7, "HELD": 0, "BLOCKS": 1}),
    ):
        assert form in wanted


@pytest.mark.parametrize("path", ["uot/dense/log.cu", "uot/points/points.cu"])
def test_nearly_every_size_of_transport_has_a_form_that_is_nearly_the_best(path: str) -> None:
    """No job waits for NVRTC. The sizes are none of those that the list was made of."""
    rng, more = random.Random(3), ("-DMETRIC=0", "-DFLAT=1") if "points" in path else ()
    ahead = shelf.ahead(path, more, "90")
    served = []
    for _ in range(300):
        n = int(200 * 125 ** rng.random())
        m = min(50_000, int(n * 2 ** rng.uniform(-1.2, 1.2)))
        served.append(bool(ways_of(path, m, n, rng.choice((7, 8))) & ahead))
    assert sum(served) >= 0.97 * len(served)


def test_a_form_that_is_ahead_is_taken_where_it_is_nearly_the_best() -> None:
    size = MatrixSize(1700, 1700, "float32", 8, 16, True, False)
    cuts = sorted(size.cuts(), key=lambda one: one[0])
    best, others = cuts[0], [cut for time, cut in cuts if cuts[0][0] < time <= ALIKE * cuts[0][0]]
    slow = next(cut for time, cut in cuts if time > 2 * ALIKE * cuts[0][0])
    assert len(others) > 3
    shape = 1700, 1700, "float32", 8, 16
    for ahead, wanted in (
        (set(), best[1]),
        ({slow.defines}, best[1]),
        ({others[-1].defines, slow.defines}, others[-1]),
        ({others[-1].defines, others[2].defines}, others[2]),
        ({others[0].defines, best[1].defines}, best[1]),
    ):
        assert geometry(*shape, stores=True, ahead=frozenset(ahead)).defines == wanted.defines


def test_a_list_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "FORMS", tmp_path / "forms.txt")
    shelf.FORMS.write_text("# head\na.cu\t-DX=1\n")
    one, two = Form("a.cu", ("-DX=1",)), Form("b.cu", ("-DT=long long",))
    assert shelf.record([one, two], {one: ["90"], two: ["100", "90"]}) == 1
    assert shelf.listed() == {one: frozenset(), two: frozenset({"90", "100"})}
    assert shelf.FORMS.read_text() == "# head\na.cu\t-DX=1\nb.cu\t-DT=long long\tfor=90,100\n"
    assert (list(shelf.forms("80")), list(shelf.forms("90"))) == ([one], [one, two])
    assert shelf.record([two], {two: ["80"]}) == 0
    assert shelf.listed()[two] == frozenset({"80", "90", "100"})
    assert shelf.record([two]) == 0
    assert shelf.listed()[two] == frozenset({"80", "90", "100"})
    shelf.record([two], {two: []})
    assert shelf.listed()[two] == frozenset()
