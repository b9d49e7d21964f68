"""What a job on a GPU asks for was compiled ahead: the list holds every form that the solvers' own code chooses."""

import random
from pathlib import Path

import pytest

from kernels import shelf
from kernels.shelf import Form

pytest.importorskip("kernels.cuda", reason="cupy is not installed")

from kernels.papers.hungarian.gpu import OURS, VERSIONS
from kernels.sources import sources
from kernels.uot.iteration.gpu_geometry import ALIKE, MatrixSize, costs_geometry, geometry
from tests.kernels.asked_forms import asked, everywhere, form_of
from tests.kernels.asked_transport import KINDS, Kind


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
    assert set(sources()) - {form.path for form in shelf.listed()} == compared


def test_what_is_asked_for_is_what_the_host_code_says() -> None:
    """Forms that a GPU was seen to ask for, of each solver."""
    wanted = {form_of(path, defines) for path, defines in everywhere()}
    for form in (
        form_of(
            "lap/batched/batched.cu", {"COST": "float", "VALUE": "double", "TEAM": 32, "SLOTS": 2, "MATRIX_SHARED": 1}
        ),
        form_of("lap/auto/forest.cu", {"COST": "double", "VALUE": "double", "STRIPS": 4, "RESIDENT": 0}),
        form_of("auction/auction.cu", {"VALUE": "int", "FIXED_POINT": 0}),
        form_of("uot/batch/batch.cu", {"WARPS": 17, "ROWS": 12, "COLS": 7, "HELD": 0, "BLOCKS": 1}),
    ):
        assert form in wanted


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.method}-{kind.storage}-{len(kind.mores)}")
def test_nearly_every_size_of_transport_has_a_form_that_is_nearly_the_best(kind: Kind) -> None:
    """The sizes are none of those that the list was made of."""
    rng = random.Random(3)
    served = []
    for _ in range(300):
        n = int(200 * 125 ** rng.random())
        m = min(50_000, int(n * 2 ** rng.uniform(-1.2, 1.2)))
        near = {way for way, time in kind.ways(m, n, rng.choice((7, 8))).items() if time <= kind.near}
        served.append(all(near & shelf.ahead(kind.path, more, "90") for more in kind.mores))
    assert sum(served) >= 0.97 * len(served)


def test_of_the_forms_that_are_ahead_the_fastest_is_taken() -> None:
    size = MatrixSize(1700, 1700, "float32", 8, 16, True, False)
    cuts = sorted(size.cuts(), key=lambda one: one[0])
    best, others = cuts[0], [cut for time, cut in cuts if cuts[0][0] < time <= ALIKE * cuts[0][0]]
    slow = next(cut for time, cut in cuts if time > 2 * ALIKE * cuts[0][0])
    assert len(others) > 3
    shape = 1700, 1700, "float32", 8, 16
    for ahead, wanted in (
        (set(), best[1]),
        ({("-DELEM=0",)}, best[1]),
        ({slow.defines}, slow),
        ({others[-1].defines, slow.defines}, others[-1]),
        ({others[-1].defines, others[2].defines}, others[2]),
        ({others[0].defines, best[1].defines}, best[1]),
    ):
        assert geometry(*shape, stores=True, ahead=frozenset(ahead)).defines == wanted.defines


def test_costs_stay_in_shared_memory_by_a_form_that_is_ahead_and_else_are_read_by_one() -> None:
    shape = 700, 900, 8, 16
    kept = sorted(MatrixSize(700, 900, "float32", 8, 16, False, False).cuts(), key=lambda one: one[0])
    stored = sorted(MatrixSize(700, 900, "float32", 8, 16, True, False).cuts(), key=lambda one: one[0])
    assert kept[0][1].keeps
    near = next(cut for time, cut in kept[1:] if cut.keeps and time <= ALIKE * kept[0][0])
    far = next(cut for time, cut in kept if cut.keeps and time > max(stored[0][0], ALIKE * kept[0][0]))
    one = stored[0][1]
    for ahead, storing, wanted in (
        ((), (), kept[0][1]),
        ((near,), (one,), near),
        ((far,), (one,), one),
        ((far,), (), far),
        ((), (one,), one),
    ):
        cuts = (frozenset(cut.defines for cut in cuts) for cuts in (ahead, storing))
        assert costs_geometry(*shape, *cuts) == wanted


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
