"""The server: its tools and what they say of themselves."""

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from app.agents.doors import LONGEST_WAIT_S, Doors, Refused, explained, short

INSTRUCTIONS = """Allot solves assignment and transport problems exactly or with a proved gap.
lap: each row of a cost matrix gets one column. auction: the same for sparse or large benefit matrices (maximises).
uot: how much mass goes from where to where. qap: places for things that exchange flows. lawler: the same with a cost
for each two placements, up to 40 places.
gromov: which points of two spaces belong together, from the distances within each. barycenter: the measure that lies
between several. lowrank: transport between large clouds, as a few components. multimarginal: how mass is shared by
triples of points of three measures.
Call list_solvers for inputs and options, then solve. null in a matrix forbids a pair; -1 in an answer is unassigned.
A job that takes longer than `wait_s` goes on: ask job_status, then job_result."""


def make_server(doors: Doors, version: str) -> MCPServer[Any]:
    """A server whose tools go through `doors`."""
    server: MCPServer[Any] = MCPServer("allot", instructions=INSTRUCTIONS, version=version, log_level="ERROR")
    _solving(server, doors)
    _looking(server, doors)
    return server


def _solving(server: MCPServer[Any], doors: Doors) -> None:
    @server.tool()
    async def list_solvers() -> dict[str, Any]:
        """List the solvers: what each solves, its inputs, its options, and an example that works."""
        told = await _asked(doors, "GET", "/v1/solvers")
        kept = ("name", "summary", "devices", "inputs", "options_schema", "example")
        return {"solvers": [{name: one[name] for name in kept} for one in told["solvers"]]}

    @server.tool()
    async def solve(
        solver: str,
        inputs: dict[str, Any],
        options: dict[str, Any] | None = None,
        time_limit_s: float | None = None,
        wait_s: float = 30.0,
    ) -> dict[str, Any]:
        """Solve a problem and give the answer with its certificate; or the job's id if that takes longer than wait_s.

        An input is a nested list of numbers, a reference {"blob": "sha256:..."} to an uploaded array, or, where the
        server was given a folder, {"path": "file.npy"}.
        """
        wait = min(max(wait_s, 0.0), LONGEST_WAIT_S)
        try:
            body = await doors.job(solver, inputs, options=options, time_limit_s=time_limit_s)
            told = await doors.ask("POST", "/v1/jobs", json=body, headers={"Prefer": f"wait={wait:g}"})
        except Refused as refused:
            raise ToolError(str(refused)) from None
        if "certificate" in told:
            return _answered(told)
        return _seen(told)

    @server.tool()
    async def estimate(solver: str, inputs: dict[str, Any], options: dict[str, Any] | None = None) -> dict[str, Any]:
        """Say what a job would need in seconds and bytes on each device, without solving it."""
        try:
            body = await doors.job(solver, inputs, options=options)
            told: dict[str, Any] = await doors.ask("POST", "/v1/estimates", json=body)
        except Refused as refused:
            raise ToolError(str(refused)) from None
        return told


def _looking(server: MCPServer[Any], doors: Doors) -> None:
    @server.tool()
    async def job_status(job_id: str, wait_s: float = 0.0) -> dict[str, Any]:
        """Show a job: its state, how far it is, its best objective and its bound. Waits for its end up to wait_s."""
        wait = min(max(wait_s, 0.0), LONGEST_WAIT_S)
        return _seen(await _asked(doors, "GET", _path(job_id), params={"wait": wait}))

    @server.tool()
    async def job_result(job_id: str) -> dict[str, Any]:
        """Give the answer of a job that has ended."""
        return _answered(await _asked(doors, "GET", f"{_path(job_id)}/result"))

    @server.tool()
    async def list_jobs(state: str | None = None, limit: int = 20) -> dict[str, Any]:
        """List your jobs, the newest first. `state` is queued, running, succeeded, failed or cancelled."""
        params = {"limit": limit} | ({"state": state} if state else {})
        return {"jobs": [_seen(one) for one in (await _asked(doors, "GET", "/v1/jobs", params=params))["jobs"]]}

    @server.tool()
    async def cancel_job(job_id: str) -> dict[str, Any]:
        """Stop a job and keep the best answer found so far."""
        return _seen(await _asked(doors, "POST", f"{_path(job_id)}/cancel"))

    @server.tool()
    async def explain_certificate(job_id: str) -> str:
        """Say in words what was proved about a job's answer, and how far it may be from the best possible."""
        return explained(await _asked(doors, "GET", f"{_path(job_id)}/result"))

    @server.resource("allot://jobs/{job_id}/result", mime_type="application/json")
    async def result(job_id: str) -> dict[str, Any]:
        """The answer of a job that has ended."""
        return _answered(await _asked(doors, "GET", f"{_path(job_id)}/result"))


async def _asked(doors: Doors, method: str, path: str, **given: Any) -> Any:
    try:
        return await doors.ask(method, path, **given)
    except Refused as refused:
        raise ToolError(str(refused)) from None


def _path(job_id: str) -> str:
    if not job_id.isalnum():
        raise ToolError("That is no job's id.")
    return f"/v1/jobs/{job_id}"


def _seen(job: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "solver", "state", "queue_position", "progress", "termination", "error", "created_at", "ended_at")
    return {name: job[name] for name in kept if job.get(name) is not None}


def _answered(result: dict[str, Any]) -> dict[str, Any]:
    source = f"GET /v1/jobs/{result['id']}/result"
    left_out = {"links", "versions", "timings_ms", "input_digests"}
    told = {name: short(value, source) for name, value in result.items() if name not in left_out}
    return {**told, "in_words": explained(result)}
