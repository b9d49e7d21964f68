"""The client's models beside the service's: what one side says, the other knows."""

import re
import subprocess
import sys
import tomllib
import types
import typing
from collections.abc import Mapping
from typing import Any

import allot_client
import httpx
import pytest
from allot_client import Certificate, Client, Result
from allot_client.errors import _BY_STATUS
from allot_client.tasks import JOB_FIELDS

from app.http.routes import DESCRIPTIONS
from app.http.schemas import CertificateView, JobRequest, ResultView
from kernels import SOLVERS
from tests.app.conftest import Service
from tests.wheel_commands import MINORS, ROOT

CLIENT_ONLY = {"arrays", "document", "row_names", "column_names", "home"}
IN_THE_DOCUMENT = {"solver", "options", "seed", "attempt", "versions", "input_digests"}
"""What the client leaves in `Result.document`."""


def test_results() -> None:
    assert set(Result.__dataclass_fields__) - CLIENT_ONLY == set(ResultView.model_fields) - IN_THE_DOCUMENT
    assert set(Certificate.__dataclass_fields__) == set(CertificateView.model_fields)


TYPES = {"number": float, "integer": int, "string": str, "boolean": bool, "null": type(None), "object": Mapping}


def of_schema(schema: dict[str, Any]) -> set[Any]:
    """What JSON of a schema becomes in Python."""
    if "$ref" in schema:
        return {Certificate} if schema["$ref"].endswith("CertificateView") else set()
    return set().union(*map(of_schema, schema.get("anyOf", ()))) or {TYPES[schema["type"]]}


def of_annotation(annotation: Any) -> set[Any]:
    kinds = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return {typing.get_origin(kind) or kind for kind in kinds}


@pytest.mark.parametrize(("ours", "theirs"), [(Result, "ResultView"), (Certificate, "CertificateView")])
def test_types_are_those_of_the_openapi_document(allot: Client, ours: Any, theirs: str) -> None:
    published = httpx.get(f"{allot.url}/openapi.json").json()["components"]["schemas"][theirs]["properties"]
    annotations = typing.get_type_hints(ours)
    for name, schema in published.items():
        if name not in IN_THE_DOCUMENT:
            assert of_annotation(annotations[name]) == of_schema(schema), name


def test_every_name_is_there_and_none_is_loaded_before_it_is_used() -> None:
    assert set(allot_client._HOMES) == set(allot_client.__all__)
    for name in allot_client.__all__:
        assert getattr(allot_client, name).__name__ == name
    code = "import sys, allot_client.cli as c; c.parser(); sys.exit(bool({'numpy', 'httpx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


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


def test_what_is_promised_of_pythons_is_what_is_tried() -> None:
    promised = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]
    versions = [f"3.{minor}" for minor in MINORS]
    assert promised["requires-python"] == f">={versions[0]}"
    assert re.findall(r"Python :: (3\.\d+)", " ".join(promised["classifiers"])) == versions
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    client = workflow.partition("\n  client:\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^ {12}(3\.\d+)$", client, flags=re.MULTILINE)) == versions
    assert "make wheel" in client
