"""`client.uot` with clouds of different sizes, strengths of its own, a divergence, derivatives, and without entropy."""

from typing import Any

import numpy as np
import pytest
from allot_client import Client, InvalidInput
from allot_client.answers import Certificate, Home
from allot_client.transported import TransportResult


def test_lists_of_clouds_are_one_job(allot: Client) -> None:
    rng = np.random.default_rng(0)
    x, y = [rng.normal(size=(m, 2)) for m in (3, 5)], [rng.normal(size=(n, 2)) for n in (4, 2)]
    answer = allot.uot(x=x, y=y, gradients=True)
    found = list(answer.each())
    assert [one["plan"].shape for one in found] == [(3, 4), (5, 2)]
    for one, left, right in zip(found, x, y, strict=True):
        alone = allot.uot(x=left, y=right, gradients=True)
        assert one["plan"] == pytest.approx(alone.plan)
        assert one["grad_x"] == pytest.approx(alone.arrays["grad_x"])
        assert one["objective"] == alone.objective
        assert one["termination"] == "gap_reached"


def test_a_batch_of_costs_has_an_answer_each(allot: Client) -> None:
    costs = np.random.default_rng(1).random((3, 4, 5))
    answer = allot.uot(costs, regs=[0.1, 0.2, 0.3], reg_m=1.0)
    assert answer.document["facts"]["reg"] == [0.1, 0.2, 0.3]
    assert [one["plan"].shape for one in answer.each()] == [(4, 5)] * 3


def test_nothing_is_called_proved_without_a_certificate(allot: Client) -> None:
    answer = allot.uot(np.eye(4), certificate="none")
    assert answer.termination == "converged"
    assert answer.verified is False
    assert answer.certificate.holds is None
    assert answer.certificate.bound is answer.gap is None
    assert answer.objective is not None


def test_an_exact_plan_and_where_it_leads(allot: Client) -> None:
    cost, y = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([[5.0], [7.0]])
    for output in ("plan", "potentials"):
        answer = allot.uot(cost, a=[1, 2], b=[2, 1], method="exact", output=output)
        assert answer.objective == 1.0
        assert answer.optimal
        assert answer.barycentric(y).ravel().tolist() == [7.0, 5.0]


def test_a_part_of_the_mass_comes_proved(allot: Client) -> None:
    cost, a, b = [[0, 2], [3, 1]], [3, 2], [2, 4]
    for output in ("plan", "potentials"):
        answer = allot.uot(cost, a=a, b=b, method="exact", mass=4, output=output)
        assert answer.objective == 2
        assert answer.optimal
    answer = allot.uot(np.array(cost, float), a=a, b=b, reg=0.01, mass_share=0.5)
    assert np.asarray(answer.plan).sum() == pytest.approx(2.5)
    assert allot.uot(cost, a=a, b=b, marginals="tv", certificate="none").objective is not None


def test_a_divergence_has_its_interval(allot: Client) -> None:
    rng = np.random.default_rng(2)
    answer = allot.uot(x=rng.normal(size=(6, 2)), y=rng.normal(size=(5, 2)), divergence=True)
    assert answer.certificate.bound is not None
    assert answer.objective is not None
    assert answer.certificate.facts["divergences"] == [[answer.certificate.bound, answer.objective]]


def test_rows_of_a_plan_follow_from_potentials_at_the_default_reg(allot: Client) -> None:
    cost = 100 * np.random.default_rng(3).random((4, 5))
    whole, parts = allot.uot(cost), allot.uot(cost, output="potentials")
    columns, masses = parts.top(2, cost=cost)
    assert masses == pytest.approx(np.take_along_axis(np.asarray(whole.plan), np.asarray(columns), axis=1))


def test_clouds_without_a_partner_are_named(allot: Client) -> None:
    with pytest.raises(ValueError, match="as many"):
        allot.uot(x=[np.ones((2, 1))], y=[np.ones((2, 1)), np.ones((1, 1))])


def test_labels_and_places_come_certified(allot: Client) -> None:
    rng = np.random.default_rng(4)
    labels, middles = np.arange(12) % 3, np.array([[0.0, 0], [9, 0], [0, 9]])
    x, y = (middles[labels] + rng.normal(size=(12, 2)) for _ in range(2))
    answer = allot.uot(x=x, y=y, labels=labels, reg=0.5, reg_m=5.0, barycentric=True)
    assert answer.arrays["label"].tolist() == labels.tolist()
    here, sure = answer.transfer_labels(labels.tolist())
    assert here.tolist() == labels.tolist()
    assert answer.arrays["label_share"] == pytest.approx(np.asarray(sure), abs=1e-6)
    assert answer.arrays["barycentric"] == pytest.approx(answer.barycentric(y), abs=1e-6)
    assert answer.certificate.holds
    assert answer.certificate.facts["label_share_within"] < 1e-6
    assert answer.certificate.facts["barycentric_within"] < 1e-6


def test_labels_may_be_words(allot: Client) -> None:
    rng = np.random.default_rng(4)
    kinds, middles = np.arange(12) % 3, np.array([[0.0, 0], [9, 0], [0, 9]])
    x, y = (middles[kinds] + rng.normal(size=(12, 2)) for _ in range(2))
    words = np.array(["B cell", "T cell", "NK"])[kinds]
    a = np.where(np.arange(12) == 4, 0.0, 1 / 12)
    answer = allot.uot(x=x, y=y, a=a, labels=words, reg=0.5, reg_m=5.0)
    assert answer.label.tolist() == [None if k == 4 else word for k, word in enumerate(words)]
    assert answer.label_share[4] == 0
    assert answer.certificate.facts["label_share_within"] < 1e-6
    clusters = allot.uot(x=x, y=y, a=a, labels=(kinds * 50).tolist(), reg=0.5, reg_m=5.0)  # numbers that are no codes
    assert clusters.label.tolist() == [None if k == 4 else kind * 50 for k, kind in enumerate(kinds)]

    class Series:  # what indexes by a name of its own, as pandas' does
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return words

        def __getitem__(self, key: Any) -> Any:
            raise KeyError(key)

    assert allot.uot(x=x, y=y, a=a, labels=Series(), reg=0.5, reg_m=5.0).label.tolist() == answer.label.tolist()


NOTHING = np.datetime64("NaT")


class Categorical:
    """As much of pandas' as is looked at: what `obs[...].values` is has no `index`."""

    def to_numpy(self) -> Any:
        return np.array(["T", np.nan, "B", "T"], object)


Categorical.__module__ = "pandas.core.arrays.categorical"
LABELS: dict[str, tuple[Any, list[Any]]] = {
    "words, some missing": (["T", None, "B", np.nan], ["T", None, "B", None]),
    "numbers, some missing": ([1, np.nan, 7, None], [1, None, 7, None]),
    "an array of numbers": (np.array([1, np.nan, 7, 1]), [1.0, None, 7.0, 1.0]),
    "masked": (np.ma.array([3, 1, 2, 0], mask=[False, True, False, False]), [3, None, 2, 0]),
    "no time": ([NOTHING, "T", "T", "B"], [None, "T", "T", "B"]),
    "booleans": (np.array([True, False, True, True]), [True, False, True, True]),
    "a list of booleans": ([True, False, None, True], [True, False, None, True]),
    "categorical": (Categorical(), ["T", None, "B", "T"]),
    "nothing": ([None] * 4, [None] * 4),
    "codes": ([0, 2, 1, 0], [0, 2, 1, 0]),
}


def labels_of(library: Any) -> dict[str, tuple[Any, list[Any]]]:
    return {
        "categorical": (library.Categorical(["T", "B", None, "T"]), ["T", "B", None, "T"]),
        "an index": (library.Index(["T", "B", "B", "T"]), ["T", "B", "B", "T"]),
        "a series": (library.Series(["T", None, "B", "T"], dtype="category"), ["T", None, "B", "T"]),
        "booleans with gaps": (library.array([True, None, False, True]), [True, None, False, True]),
        "a category of booleans": (library.Series([True, False] * 2, dtype="category"), [True, False] * 2),
    }


def both_ways(allot: Client, labels: Any, expected: list[Any]) -> None:
    """Each row stands at a column of its own, but the last, which has no mass."""
    x = np.arange(4.0)[:, None] * 9
    answer = allot.uot(x=x, y=x, a=[1, 1, 1, 0], labels=labels, reg=0.5)
    told = [*expected[:3], None if answer.label.dtype == object else -1]
    here, sure = answer.transfer_labels(labels)
    for found in (answer.label.tolist(), here.tolist()):
        assert [(type(one), one) for one in found] == [(type(one), one) for one in told]
    assert here.dtype == answer.label.dtype
    assert sure == pytest.approx(answer.label_share, abs=1e-6)
    assert sure.tolist()[3] == 0
    assert answer.certificate.facts["label_share_within"] < 1e-6


@pytest.mark.parametrize(("labels", "expected"), LABELS.values(), ids=LABELS)
def test_labels_may_be_missing(allot: Client, labels: Any, expected: list[Any]) -> None:
    both_ways(allot, labels, expected)


def test_labels_of_data_frames_may_be_missing(allot: Client) -> None:
    for labels, expected in labels_of(pytest.importorskip("pandas")).values():
        both_ways(allot, labels, expected)


def test_each_of_several_has_its_objective_without_a_certificate_too(allot: Client) -> None:
    costs = np.random.default_rng(4).random((3, 5, 6))
    for one, other in zip(
        *(allot.uot(costs, reg=0.2, certificate=how).each() for how in ("none", "full")), strict=True
    ):
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-5)


@pytest.mark.parametrize("how", ["none", "full"])
def test_each_divergence_is_that_of_its_clouds(allot: Client, how: str) -> None:
    random = np.random.default_rng(5)
    x, y = ([random.normal(size=(n, 2)) for n in sizes] for sizes in ((4, 6, 5), (5, 3, 5)))
    options: dict[str, Any] = {"reg": 0.2, "reg_m": 1.0, "divergence": True, "tolerance": 1e-8, "certificate": how}
    for left, right, found in zip(x, y, allot.uot(x=x, y=y, **options).each(), strict=True):
        alone = allot.uot(x=left, y=right, **options)
        assert found["objective"] == pytest.approx(alone.objective, rel=1e-5)
        assert (found["bound"] is None) == (how == "none")


def test_each_of_several_is_an_answer(allot: Client) -> None:
    rng = np.random.default_rng(6)
    x, y = [rng.normal(size=(m, 2)) for m in (3, 5)], rng.normal(size=(4, 2))
    for one, left in zip(allot.uot(x=x, y=y, reg=0.2).each(), x, strict=True):  # the same cloud beside each
        alone = allot.uot(x=left, y=y, reg=0.2)
        assert one.objective == alone.objective
        assert one.bound == alone.bound
        assert one.gap == pytest.approx(alone.gap, abs=1e-12)
        assert one.termination == alone.termination
        assert one.plan == pytest.approx(alone.plan)
        assert one.top(1)[0].tolist() == alone.top(1)[0].tolist()
        assert one.certificate.holds


@pytest.mark.parametrize("metric", ["sqeuclidean", "correlation", "cityblock"])
def test_potentials_know_what_they_were_worked_out_from(allot: Client, metric: str) -> None:
    rng = np.random.default_rng(7)
    x, y, a = rng.normal(size=(6, 3)), rng.normal(size=(5, 3)), rng.random(6) + 0.5
    whole, short = (allot.uot(x=x, y=y, a=a, metric=metric, output=kind) for kind in ("plan", "potentials"))
    for one, other in zip(whole.top(2), short.top(2), strict=True):
        assert np.asarray(one) == pytest.approx(np.asarray(other), rel=1e-5)
    several = allot.uot(x=[x, x[:4]], y=[y, y], metric=metric, output="potentials")
    assert several.top(2)[0][0].tolist() == allot.uot(x=x, y=y, metric=metric).top(2)[0].tolist()
    fetched = allot.job(short.id).result()
    with pytest.raises(ValueError, match="metric"):
        fetched.top(2)  # type: ignore[attr-defined]
    if metric == "correlation":
        with pytest.raises(ValueError, match="would carry"):  # not what the problem had
            fetched.top(2, x=x, y=y, a=a, metric="sqeuclidean")  # type: ignore[attr-defined]
    columns, _ = fetched.top(2, x=x, y=y, a=a, metric=metric)  # type: ignore[attr-defined]
    assert columns.tolist() == whole.top(2)[0].tolist()


def test_what_cannot_be_meant_is_said(allot: Client) -> None:
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match="as many, or one for all"):
        allot.lap(x=[x], y=[])
    with pytest.raises(ValueError, match="problem 1 of the list has shape"):
        allot.lap([x, np.ones(3)])
    with pytest.raises(ValueError, match=r"x is the text 'cells\.h5ad'; expected an array"):
        allot.uot(x="cells.h5ad", y=x)
    with pytest.raises(ValueError, match="labels is the word 'type'"):
        allot.uot(x=x, y=x, labels="type")
    with pytest.raises(TypeError, match="point is unknown here"):
        allot.uot(x=x, y=x + 1, output="potentials").top(1, point=3)


def test_lists_are_told_what_is_for_one_problem(allot: Client) -> None:
    x, y = [np.ones((2, 1))] * 3, [np.ones((2, 1))] * 3
    exact = (
        r"^method exact is for one problem, and x and y are lists of 3; expected a call for each.*client\.lap of them"
    )
    with pytest.raises(ValueError, match=exact):
        allot.uot(x=x, y=y, method="exact")
    for name, value in (("mass", 0.5), ("mass_share", 0.5), ("marginals", "tv")):
        options: dict[str, Any] = {name: value}
        with pytest.raises(ValueError, match=f"^{name} is for one problem"):
            allot.uot(x=x, y=y[0], **options)
    with pytest.raises(ValueError, match="cost is given beside lists"):
        allot.uot(np.ones((2, 2)), x=x, y=y)
    found = allot.map(lambda pair: allot.uot(x=pair[0], y=pair[1], method="exact"), zip(x, y, strict=True))
    assert [one.objective for one in found] == [0, 0, 0]
    assert [one.objective for one in allot.lap(x=x, y=y).each()] == [0, 0, 0]


def test_a_batch_without_entropy_is_told_what_to_do(allot: Client) -> None:
    with pytest.raises(InvalidInput, match="a job for each, or `lap` of the batch"):
        allot.uot(np.ones((2, 3, 3)), method="exact")


def test_a_problem_of_several_says_no_more_than_was_proved(allot: Client) -> None:
    """The gap of each is the certificate's, which holds what missed sides cost, and the word of each is its own."""
    costs = np.random.default_rng(3).random((3, 5, 5))
    answer = allot.uot(costs, reg=0.01, reg_m="inf", iterations=2)
    facts = answer.certificate.facts["problems"]
    numbers = zip(*(facts[name] for name in ("gaps", "objectives", "bounds")), strict=True)
    assert any(gap > abs(objective - bound) for gap, objective, bound in numbers)
    for k, one in enumerate(answer.each()):
        assert one.certificate.gap_abs == facts["gaps"][k]
    costs[1] = np.inf
    answer = allot.uot(costs, reg=0.1, reg_m="inf")
    assert answer.termination == "infeasible"
    assert answer.certificate.verified is True
    assert [one.certificate.verified for one in answer.each()] == [None, True, None]


def test_a_divergence_has_the_word_of_its_worst_value() -> None:
    words = ["gap_reached", "gap_reached", "gap_reached", "time_limit", "gap_reached", "gap_reached"]
    listed = {"terminations": words, "objectives": [1.0] * 6, "bounds": [0.5] * 6, "gaps": [0.5] * 6}
    facts = {"problems": listed, "divergences": [[0.0, 1.0], None]}
    proof = Certificate(0.0, 1.0, 1.0, 0.0, True, "", facts)
    document = {"facts": {}, "options": {"divergence": True}}
    arrays = {"f": np.zeros((2, 3))}
    answer = TransportResult("", "time_limit", 1.0, proof, {}, "", "cpu", 0, arrays, document, home=Home())
    first, second = (answer._told(k, 2) for k in range(2))
    assert (first["termination"], first["gap"]) == ("gap_reached", 1.0)
    assert (second["termination"], second["objective"], second["gap"]) == ("time_limit", None, None)
