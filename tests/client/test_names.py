"""The names of real data frames and AnnData objects. Skipped where these are not installed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allot_client import Client
from allot_client.files import Wanted, read_job
from scipy.sparse import csr_matrix

random = np.random.default_rng(5)


def test_data_frames(allot: Client) -> None:
    pandas: Any = pytest.importorskip("pandas")
    costs = pandas.DataFrame([[4, 1], [2, 9]], index=["Anna", "Bob"], columns=["wash", "cook"])
    assert dict(allot.lap(costs).pairs()) == {"Anna": "cook", "Bob": "wash"}
    frame = allot.uot(costs.astype(float), reg=1.0).frame()
    assert (list(frame.index), list(frame.columns)) == (["Anna", "Bob"], ["wash", "cook"])
    layout = allot.qap(1 - pandas.DataFrame(np.eye(2), list("ab"), list("ab")), 1 - np.eye(3))
    assert layout.frame().shape == (2, 2)
    masses = pandas.Series([0.25, 0.75], index=["Anna", "Bob"])
    plan = allot.uot(costs.astype(float), a=masses, b=[0.5, 0.5], reg=1.0, reg_m="inf").frame()
    np.testing.assert_allclose(plan.sum(axis=1), masses, rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_annotated_data(allot: Client, sparse: bool) -> None:
    anndata: Any = pytest.importorskip("anndata")
    pandas: Any = pytest.importorskip("pandas")
    sides = []
    for prefix, n in (("old", 6), ("new", 5)):
        counts = random.poisson(3.0, (n, 8)).astype(np.float32)
        names = pandas.DataFrame(index=[f"{prefix}{k}" for k in range(n)])
        sides.append(anndata.AnnData(csr_matrix(counts) if sparse else counts, obs=names))
    answer = allot.uot(x=sides[0], y=sides[1], metric="correlation", reg=0.1)
    frame = answer.frame()
    assert list(frame.index) == list(sides[0].obs_names)
    assert list(frame.columns) == list(sides[1].obs_names)
    labels, _ = answer.transfer_labels(["even" if k % 2 == 0 else "odd" for k in range(5)])
    assert set(labels) <= {"even", "odd"}


class Genes:
    """As much of an AnnData as is looked at, with a name for each gene."""

    def __init__(self, values: Any, cells: list[str], genes: list[str], kinds: list[str] | None = None) -> None:
        self.X, self.obs_names, self.var_names, self.shape = values, cells, genes, values.shape
        self.obs = {} if kinds is None else {"kind": kinds}

    def __getitem__(self, key: tuple[Any, Any]) -> "Genes":
        lines, order = key
        return Genes(self.X[lines][:, order], self.obs_names, [self.var_names[k] for k in order])


Genes.__module__ = "anndata._core.anndata"


def test_genes_are_the_same_by_name_not_by_place(allot: Client) -> None:
    random = np.random.default_rng(9)
    cells, order = random.random((6, 5)), [3, 0, 4, 1, 2]
    left = Genes(random.random((4, 5)), list("abcd"), list("ABCDE"))
    right = Genes(cells, list("uvwxyz"), list("ABCDE"), kinds=["B", "T"] * 3)
    mixed = Genes(cells[:, order], list("uvwxyz"), [list("ABCDE")[k] for k in order])
    options: dict[str, Any] = {"metric": "correlation", "reg": 0.05}
    whole = allot.uot(x=left, y=right, labels="kind", **options)
    assert set(whole.label) <= {"B", "T"}
    assert allot.uot(x=left, y=mixed, **options).objective == pytest.approx(whole.objective)
    assert allot.lap(x=left, y=mixed).objective == pytest.approx(allot.lap(x=left, y=right).objective)
    several = allot.uot(x=[left, left], y=[right, mixed], output="potentials", **options)
    for one in several.each():
        assert one.objective == pytest.approx(whole.objective)
        assert (one.row_names, one.column_names) == (tuple("abcd"), tuple("uvwxyz"))
        assert one.top(1, names=True)[0].tolist() == whole.top(1, names=True)[0].tolist()
    with pytest.raises(ValueError, match="5 named columns and y 4, with 4 in common; A are in one alone"):
        allot.uot(x=left, y=mixed[:, [0, 2, 3, 4]], **options)
    with pytest.raises(ValueError, match="columns of y share a name"):
        allot.uot(x=left, y=Genes(cells, list("uvwxyz"), list("ABCDD")), **options)


def test_a_table_of_points_goes_by_its_headings(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("cell,A,B\nu,1,2\nv,3,4\n")
    (tmp_path / "y.csv").write_text("cell,B,A\ns,2,1\nt,4,3\n")
    read = read_job([f"{name}={tmp_path / name}.csv" for name in "xy"], Wanted(), lambda path: path)
    assert read.inputs["x"].tolist() == read.inputs["y"].tolist()
    (tmp_path / "y.csv").write_text("cell,B,C\ns,2,1\nt,4,3\n")
    with pytest.raises(ValueError, match="1 in common"):
        read_job([f"{name}={tmp_path / name}.csv" for name in "xy"], Wanted(), lambda path: path)
