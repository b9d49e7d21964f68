"""The OpenAPI document: FastAPI's, with the request union and one example per solver from its card."""

from typing import Any

from fastapi import FastAPI

from app.http.errors import MEDIA_TYPE
from app.http.schemas import components
from kernels import SOLVERS

MULTIPART = {
    "type": "object",
    "required": ["job"],
    "properties": {"job": {"type": "string", "contentMediaType": "application/json", "description": "the JSON body"}},
    "additionalProperties": {"type": "string", "format": "binary", "description": "an input, by its name"},
}
RESULT_MEDIA = ("application/x-npz", "application/x-safetensors")


def install(app: FastAPI) -> None:
    """Let the app make its document once, when it is first asked."""
    made = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(made())
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _completed(api: dict[str, Any]) -> dict[str, Any]:
    request, models = components()
    schemas = api.setdefault("components", {}).setdefault("schemas", {})
    schemas |= {**models, "JobRequest": request}
    body = {"schema": {"$ref": "#/components/schemas/JobRequest"}, "examples": _examples()}
    multipart = {"schema": MULTIPART, "encoding": {"job": {"contentType": "application/json"}}}
    content = {"application/json": body, "multipart/form-data": multipart}
    for path in ("/v1/jobs", "/v1/estimates"):
        api["paths"][path]["post"]["requestBody"] = {"required": True, "content": content}
    upload = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    api["paths"]["/v1/blobs"]["post"]["requestBody"] = {"required": True, "content": upload}
    answers = api["paths"]["/v1/jobs/{job_id}/result"]["get"]["responses"]["200"]["content"]
    answers |= {media: {"schema": {"type": "string", "format": "binary"}} for media in RESULT_MEDIA}
    for path in ("/v1/jobs/{job_id}/events", "/v1/blobs/{digest}", "/metrics"):
        del api["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]  # FastAPI's own addition
    _headers(api["paths"])
    _problems(api["paths"])
    schemes = {"key": {"type": "http", "scheme": "bearer", "description": "an API key, where the service has keys"}}
    api["components"]["securitySchemes"] = schemes
    api["security"] = [{}, {"key": []}]
    return api


def _examples() -> dict[str, Any]:
    return {
        name: {"summary": card.summary, "value": dict(card.example)} for name, card in SOLVERS.items() if card.example
    }


def _problems(paths: dict[str, Any]) -> None:
    """FastAPI files every model under application/json; errors have a media type of their own."""
    for verbs in paths.values():
        for operation in verbs.values():
            for answer in operation["responses"].values():
                if MEDIA_TYPE in answer.get("content", {}):
                    answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}


def _headers(paths: dict[str, Any]) -> None:
    """Request headers, which the handlers read by themselves."""

    def header(verb: str, path: str, name: str, description: str) -> None:
        parameter = {
            "in": "header",
            "name": name,
            "required": False,
            "schema": {"type": "string"},
            "description": description,
        }
        paths[path][verb].setdefault("parameters", []).append(parameter)

    header("post", "/v1/jobs", "Prefer", "wait=N: answer with the result when it is there within N seconds")
    header("post", "/v1/jobs", "Idempotency-Key", "the same key and body give the same job")
    header("get", "/v1/jobs/{job_id}", "If-None-Match", "the ETag that you have: 304 when nothing changed")
    header("get", "/v1/jobs/{job_id}/events", "Last-Event-ID", "replay from behind this event")
    header("post", "/v1/blobs", "Content-Digest", "sha-256=:<base64>: that the body must have")
