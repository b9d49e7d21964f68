"""Wire models. The request union is derived from the solver registry: a new card needs no line here.

Inputs may be huge, so pydantic never walks them: it validates everything around them, and app/intake/parsed.py turns
them into arrays. Their models exist for the OpenAPI document alone.
"""

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema, create_model
from pydantic.json_schema import models_json_schema

from app.intake.json_arrays import DEEPEST
from app.intake.json_bytes import DTYPES
from kernels import SOLVERS, InputSpec, Solver
from workers.store.codec import FORMATS
from workers.store.reference import NOTES

JOB_ID = r"^[0-9a-f]{32}$"
make_model: Any = create_model  # models made of data are beyond what types can say

FORM: dict[str, Any] = {
    "format": {"enum": list(FORMATS), "description": "what the bytes are; found out when left out"},
    "member": {"type": "string", "description": "which array of several"},
    "dtype": {"type": "string", "description": "as float32: needed for raw bytes, checked for others"},
    "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 8, "description": "likewise"},
    "scale": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "what integers of 16 bits at most are multiplied by; 37 significant bits at most",
    },
}
"""How a reference says that its bytes are to be read."""
NOTE: dict[str, Any] = {name: {"description": "as the service wrote it; not looked at"} for name in NOTES}
REF: list[dict[str, Any]] = [
    {"type": "object", "required": ["blob"], "additionalProperties": False, "properties": {
        "blob": {"type": "string", "pattern": "^sha256[tu]?:[0-9a-f]{64}$", "description": "of an uploaded blob"},
        **FORM, **NOTE}},
    {"type": "object", "required": ["part"], "additionalProperties": False, "properties": {
        "part": {"type": "string", "description": "name of a file part of this multipart body"}, **FORM}},
    {"type": "object", "required": ["file"], "additionalProperties": False, "properties": {
        "file": {"type": "string", "maxLength": 1024, "description": "a file of the operator's that you may name"},
        **FORM}},
    {"type": "object", "required": ["url"], "additionalProperties": False, "properties": {
        "url": {"type": "string", "maxLength": 1024, "pattern": "^s3://",
                "description": "an S3 object that the operator lets you name"}, **FORM}},
]  # fmt: skip
LISTS: dict[str, Any] = {
    "type": "array",
    "items": {},
    "description": "nested lists of numbers; null forbids a matrix entry",
}
PACKED: dict[str, Any] = {
    "type": "object",
    "required": ["data", "dtype", "shape"],
    "additionalProperties": False,
    "description": "the array's bytes, little-endian and row by row",
    "properties": {
        "data": {"type": "string", "contentEncoding": "base64"},
        "dtype": {"enum": list(DTYPES)},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "maxItems": DEEPEST},
    },
}


def _input_schema(spec: InputSpec) -> dict[str, Any]:
    data = {"type": "object", "required": ["data"], "properties": {"data": LISTS}, "additionalProperties": False}
    shapes: list[dict[str, Any]] = [LISTS, data, PACKED, *REF]
    if spec.sparse:
        arrays = {name: {"oneOf": [LISTS, PACKED, REF[0]]} for name in ("indptr", "indices", "values")}
        shape = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2}
        csr = {"type": "object", "required": [*arrays, "shape"], "properties": {**arrays, "shape": shape}}
        shapes.append(
            {"type": "object", "required": ["csr"], "properties": {"csr": csr}, "additionalProperties": False}
        )
    return {"description": spec.description, "oneOf": shapes}


def _inputs_model(card: Solver) -> Any:
    fields: dict[str, Any] = {}
    for spec in card.inputs:
        kind = Annotated[Any, WithJsonSchema(_input_schema(spec))]
        fields[spec.name] = (kind, ... if spec.required else None)
    return make_model(f"{card.name.capitalize()}Inputs", __config__=ConfigDict(extra="forbid"), **fields)


class JobRequest(BaseModel):
    """What every job request shares."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    device: Literal["auto", "gpu", "cpu"] = Field("auto", description="where to solve; auto takes the faster")
    time_limit_s: float | None = Field(None, ge=0, description="seconds to solve; the best found by then is the answer")
    warm_start: str | None = Field(None, pattern=JOB_ID, description="an earlier job whose answer to start from")
    result_ttl_s: float | None = Field(None, gt=0, description="seconds to keep the result once the job has ended")
    keep_inputs: bool = Field(False, description="keep small inputs as blobs too, to be fetched and used again")
    priority: int = Field(0, ge=-9, le=9, description="of your own jobs those of higher priority go first")


def _request_model(card: Solver) -> Any:
    return make_model(
        f"{card.name.capitalize()}Job",
        __base__=JobRequest,
        __doc__=card.summary,
        solver=(Literal[card.name], ...),
        options=(card.options, Field(default_factory=card.options)),
        inputs=(Any, Field(None, exclude=True)),
    )


def _documented_model(card: Solver) -> Any:
    """The request as the OpenAPI document shows it: the one above with its inputs spelled out."""
    config = ConfigDict(json_schema_extra={"examples": [dict(card.example)]} if card.example else {})
    request = _request_model(card)
    fields = {"inputs": (_inputs_model(card), ...)}
    model = make_model(f"{card.name.capitalize()}Job", __base__=request, __doc__=card.summary, **fields)
    model.model_config.update(config)
    model.model_rebuild(force=True)
    return model


_requests: Any = Union[tuple(_request_model(card) for card in SOLVERS.values())]  # noqa: UP007
REQUEST: TypeAdapter[Any] = TypeAdapter(Annotated[_requests, Field(discriminator="solver")])


def components() -> tuple[dict[str, Any], dict[str, Any]]:
    """(schema of a job request, component schemas) for the OpenAPI document."""
    models = [_documented_model(card) for card in SOLVERS.values()]
    refs, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    ones = [refs[(model, "validation")] for model in models]
    mapping = {name: one["$ref"] for name, one in zip(SOLVERS, ones, strict=True)}
    return {"oneOf": ones, "discriminator": {"propertyName": "solver", "mapping": mapping}}, definitions["$defs"]


class Reference(BaseModel):
    """Bytes, and how they are to be read; it is taken as an input as it is."""

    blob: str
    format: str
    member: str | None = None
    dtype: str | None = None
    shape: list[int] | None = None


class BlobView(Reference):
    """What an upload is answered with: a reference, and notes beside it."""

    kind: Literal["array", "csr", "arrays"]
    arrays: dict[str, Any] = {}
    digest: str
    size: int
    links: dict[str, str]


class UploadView(BaseModel):
    """An upload in ranges that is under way."""

    name: str
    size: int
    received: list[tuple[int, int]] = Field(description="first and last byte of each range that is there")
    links: dict[str, str]


class Named(BaseModel):
    """A small array that came with its job: named, so that it can be compared, and nothing to fetch."""

    digest: str
    format: str
    dtype: str
    shape: list[int]


class SparseParts(BaseModel):
    """The three arrays of a sparse matrix."""

    indptr: Reference | Named
    indices: Reference | Named
    values: Reference | Named
    shape: list[int]


class SparseReference(BaseModel):
    """A sparse matrix that came as three arrays."""

    csr: SparseParts


InputDigests = dict[str, Reference | Named | SparseReference]


class Progress(BaseModel):
    """How far a job has come; null means not known."""

    phase: Literal["load", "solve", "certify", "store", "wait"] = Field(
        description="what is being done; an answer that came out loose is solved and certified a second time"
    )
    fraction: float | None = Field(description="of this phase, from 0 to 1; it starts anew with each")
    iteration: int = Field(description="never falls")
    objective: float | None
    bound: float | None
    gap: float | None
    elapsed_s: float = Field(description="since the job started on its worker")
    permutation: list[int] | None = Field(
        default=None,
        description="in an `incumbent` event: the answer behind `objective`, up to 2000 entries: the place of each"
        " facility, or the column of each row (-1: none)",
    )


class JobView(BaseModel):
    """A job as the API shows it."""

    id: str
    solver: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    attempt: int
    queue_position: int | None
    progress: Progress | None
    termination: str | None
    verified: bool | None = Field(None, description="whether `optimal` or `infeasible` was proved")
    error: dict[str, Any] | None
    device: Literal["auto", "gpu", "cpu"]
    ran_on: str | None
    options: dict[str, Any]
    input_digests: InputDigests
    time_limit_s: float | None
    timings_ms: dict[str, float]
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    noted: bool = Field(False, description="whether names are kept beside it")
    links: dict[str, str]


class JobPage(BaseModel):
    """One page of jobs, newest first."""

    jobs: list[JobView]
    next: str | None


class CertificateView(BaseModel):
    """What other code proved of the answer. The answer's objective is the one that was recomputed for it."""

    bound: float | None
    gap_abs: float | None
    gap_rel: float | None
    max_violation: float | None
    holds: bool | None = Field(description="null where the job asked for no certificate")
    verified: bool | None = Field(
        None,
        description="beside `optimal` or `infeasible`: true where that was proved here, false where it is the word of "
        "a search that was not checked, and for every job that asked for no certificate; null beside other words",
    )
    proved: str
    facts: dict[str, Any] = {}


class ResultView(BaseModel):
    """An answer; beside these fields stand its arrays (assignment, plan, permutation, duals, prices, ...)."""

    model_config = ConfigDict(extra="allow")

    id: str
    solver: str
    termination: str
    objective: float | None
    certificate: CertificateView
    method: str
    device: str
    iterations: int
    seed: int | None
    options: dict[str, Any] = {}
    timings_ms: dict[str, float]
    attempt: int
    versions: dict[str, str]
    input_digests: InputDigests


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] = []
