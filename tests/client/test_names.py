"""The names of real data frames and AnnData objects. Skipped where these are not installed."""

from typing import Any

import numpy as np
import pytest
from allot_client import Client
from scipy.sparse import csr_matrix

random = np.random.default_rng(5)


def test_data_frames(allot: Client) -> None:
    pandas: Any = pytest.importorskip("pandas")
    costs = pandas.DataFrame([[4, 1], [2, 9]], index=["Anna", "Bob"], columns=["wash", "cook"])
    assert dict(allot.lap(costs).pairs()) == {"Anna": "cook", "Bob": "wash"}
    frame = allot.uot(costs.astype(float), reg=1.0).frame()
    assert (list(frame.index), list(frame.columns)) == (["Anna", "Bob"], ["wash", "cook"])
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
