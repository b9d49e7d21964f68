"""The URLs of the workbench: its pages, its assets, and what its pages need of the server."""

from typing import Any

from fastapi import Depends, FastAPI

from app.http.auth import may
from app.http.limits import counted, counted_by_address, taking
from app.http.media import wants_json
from app.http.routes import IN, OUT, problems
from app.web import manual, notes, pages, pictures, previews, shares

PAGES = ("/", "/solve", "/solve/{problem}", "/jobs", "/jobs/{job_id}", "/compare", "/workers", "/shared")


def install(app: FastAPI) -> None:
    """Give every URL of the workbench its handler."""
    for path in PAGES:
        app.add_api_route(path, pages.page, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_api_route("/assets/{name}", pages.asset, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_api_route("/favicon.ico", pages.icon, methods=["GET", "HEAD"], include_in_schema=False)
    for path in ("/docs", "/docs/{path:path}"):
        app.add_api_route(path, manual.page, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_api_route("/llms.txt", manual.for_models, methods=["GET", "HEAD"], include_in_schema=False)
    submit: list[Any] = [Depends(counted), Depends(taking), Depends(may("submit")), Depends(wants_json)]
    read: list[Any] = [Depends(counted), Depends(may("read")), Depends(wants_json)]
    change: list[Any] = [Depends(counted), Depends(may("submit"))]
    here = "/v1/jobs/{job_id}"
    _api(app, "PUT", f"{here}/note", notes.put_note, change, {**OUT, **problems(400, 413)}, 204)
    _api(app, "GET", f"{here}/note", notes.get_note, read, OUT)
    _api(app, "POST", f"{here}/shares", shares.share, submit, {**OUT, **problems(400, 409, 413)}, 201)
    _api(app, "GET", f"{here}/shares", shares.share_list, submit, OUT)
    _api(app, "DELETE", f"{here}/shares/{{share_id}}", shares.unshare, change, OUT, 204)
    _api(
        app,
        "GET",
        "/v1/shared",
        shares.shared,
        [Depends(counted_by_address), Depends(wants_json)],
        {**OUT, **problems(409)},
    )
    _api(app, "POST", "/v1/previews", previews.post, submit, {**IN, **problems(429)})
    _api(app, "GET", "/v1/samples/{name}", previews.sample, submit, {**OUT, **problems(507)})
    _api(app, "GET", "/v1/jobs/{job_id}/picture", pictures.picture, read, {**OUT, **problems(409)})


def _api(
    app: FastAPI, verb: str, path: str, handler: Any, guards: list[Any], responses: Any, status: int = 200
) -> None:
    summary = (handler.__doc__ or "").split("\n")[0].rstrip(".")
    name = f"workbench_{handler.__name__}"
    app.add_api_route(path, handler, methods=[verb], dependencies=guards, response_model=None, summary=summary,
                      status_code=status, responses=responses, tags=["workbench"], operation_id=name)  # fmt: skip
