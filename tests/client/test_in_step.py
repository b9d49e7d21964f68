"""The client's models beside the service's: what one side says, the other knows."""

from typing import Any

from allot_client import Certificate, Client, Result
from allot_client.errors import _BY_STATUS
from allot_client.tasks import JOB_FIELDS

from app.http.routes import DESCRIPTIONS
from app.http.schemas import CertificateView, JobRequest, ResultView
from kernels import SOLVERS
from tests.app.conftest import Service

CLIENT_ONLY = {"arrays", "document", "row_names", "column_names"}
IN_THE_DOCUMENT = {"solver", "options", "seed", "attempt", "versions", "input_digests"}
"""What the client leaves in `Result.document`."""


def test_results() -> None:
    assert set(Result.__dataclass_fields__) - CLIENT_ONLY == set(ResultView.model_fields) - IN_THE_DOCUMENT
    assert set(Certificate.__dataclass_fields__) == set(CertificateView.model_fields)


def test_requests() -> None:
    assert set(JOB_FIELDS) == set(JobRequest.model_fields)
    for card in SOLVERS.values():
        assert not set(JOB_FIELDS) & set(card.options.model_fields), card.name


def test_errors() -> None:
    assert set(DESCRIPTIONS) - {406, 411} <= set(_BY_STATUS)


def test_every_solver_has_a_method(service: Service, allot: Client) -> None:
    known: Any = {one["name"]: one for one in allot.solvers()["solvers"]}
    assert set(known) == set(SOLVERS)
    assert all(callable(getattr(allot, name)) for name in known)
