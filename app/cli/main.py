"""`allot`: serve, worker, solve, verify, doctor, demo, warm, mcp, key; each is a function of the file of its name.

submit, watch, get, jobs and cancel talk to a service and are those of `allot_client.commands`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from allot_client.cli import add_output, add_problem, add_progress, add_remote, guarded, parsed, run_remote

from workers.runtime.version import allot_version

KEY_VERBS = ("create", "list", "rotate", "revoke", "entry", "limit", "-h", "--help")


def parser() -> argparse.ArgumentParser:
    """Every command and option on one screen."""
    root = argparse.ArgumentParser(prog="allot", description="Assignment problems, answered with a proof.")
    root.add_argument("--version", action="version", version=f"allot {allot_version()}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="run API, workers and (unless ALLOT_REDIS_URL is set) Redis")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    serve.add_argument("--port", type=int, default=8000, help="0 takes a free one and prints it (default 8000)")
    serve.add_argument("--insecure", action="store_true", help="listen on any address without API keys")
    serve.add_argument("--data-dir", type=Path, help="where everything is kept (default ./data or ALLOT_DATA_DIR)")
    serve.add_argument("--workers", type=int, metavar="N", help="CPU workers; 0 runs the API alone")

    serve.add_argument("--api-workers", type=int, metavar="N", help="processes that answer HTTP (default: by cores)")

    worker = commands.add_parser("worker", help="run workers alone, for an API on the same ALLOT_REDIS_URL")
    worker.add_argument("--data-dir", type=Path)
    for command in (serve, worker):
        command.add_argument("--log-format", choices=("text", "json"), help="default text, or ALLOT_LOG_FORMAT")
    worker.add_argument("--workers", type=int, metavar="N", help="CPU workers (every visible GPU gets one besides)")

    worker.add_argument("--check", action="store_true", help="is a worker of this machine alive? (for health checks)")

    solve = commands.add_parser("solve", help="solve problems in files in this process, without a service")
    for add in (add_problem, add_output, add_progress):
        add(solve)

    add_remote(commands)

    verify = commands.add_parser("verify", help="check a stored answer against its problem in exact arithmetic")
    verify.add_argument(
        "answer", type=Path, help="a result, as GET /v1/jobs/{id}/result or `allot solve --json` gives it"
    )
    verify.add_argument(
        "problem", nargs="+", help="NAME=FILE for each input, or one file as for solve, or the posted JSON"
    )
    verify.add_argument(
        "--arrays", type=Path, metavar="NPZ", help="the result's arrays, where they are not in the answer"
    )
    verify.add_argument("--option", "-o", action="append", default=[], metavar="NAME=VALUE", help="as the job had it")

    doctor = commands.add_parser("doctor", help="say what is missing here and how to mend it")
    doctor.add_argument("--data-dir", type=Path)

    demo = commands.add_parser("demo", help="start everything, solve a problem of each kind over HTTP, stop")
    demo.add_argument("--workers", type=int, metavar="N")

    warm = commands.add_parser("warm", help="compile every solver now, so that no first job waits for it")
    warm.add_argument("--cubins", action="store_true", help="CUDA kernels instead, for GPUs that need not be here")
    warm.add_argument("--for", dest="architectures", metavar="80,90", help="the GPUs' compute capabilities")
    warm.add_argument("--record", action="store_true", help="note which kernels the solvers ask for, on a GPU")

    mcp = commands.add_parser("mcp", help="serve agents over the Model Context Protocol on standard input and output")
    mcp.add_argument("--url", help="the service (default ALLOT_URL, else http://127.0.0.1:8000)")
    mcp.add_argument("--files", type=Path, metavar="FOLDER", help="let tools read .npy files below this folder")

    key = commands.add_parser("key", help="make, list, rotate and revoke API keys").add_subparsers(
        dest="verb", required=True, metavar="VERB"
    )
    create = key.add_parser("create", help="make a key in the service's Redis")
    create.add_argument("owner", help="whose jobs and blobs it opens")
    create.add_argument(
        "--scopes", default="read,submit", help="some of read,submit,metrics,admin (default read,submit)"
    )
    create.add_argument("--days", type=float, help="how long it is good; default: until it is revoked")
    create.add_argument("--label", default="", help="a note for `allot key list`")
    rotate = key.add_parser("rotate", help="make a new key in place of one")
    rotate.add_argument("id")
    rotate.add_argument("--grace-hours", type=float, default=0.0, help="how long the old one stays good (default 0)")
    key.add_parser("revoke", help="take a key back").add_argument("id")
    limit = key.add_parser("limit", help="show or set what an owner may have, within a second")
    limit.add_argument("owner")
    limit.add_argument("limits", nargs="*", metavar="NAME=VALUE", help="as weight=3; NAME= takes one back")
    listed = key.add_parser("list", help="every key, without its secret")
    for verb in (create, rotate, limit, key.choices["revoke"], listed):
        verb.add_argument("--data-dir", type=Path, help="of a service with its own Redis")
    key.add_parser("entry", help="make a key for ALLOT_API_KEYS_FILE").add_argument("owner")
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its modules are imported only then, so that `allot --help` is quick."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["key"] and given[1:] and given[1] not in KEY_VERBS:
        given.insert(1, "entry")  # `allot key OWNER`, as it was before there were verbs
    args = parsed(parser(), given)
    if args.command == "serve":
        from app.cli.serve import serve

        return serve(args)
    if args.command == "worker":
        from app.cli.serve import work

        return work(args)
    if args.command == "solve":
        from app.cli.solve import solve_file

        return guarded(solve_file, args)
    if args.command in ("submit", "watch", "get", "jobs", "cancel"):
        return run_remote(args)
    if args.command == "verify":
        from app.cli.verify import verify_file

        return guarded(verify_file, args)
    if args.command == "doctor":
        from app.cli.doctor import doctor

        return doctor(args)
    if args.command == "demo":
        from app.cli.demo import demo

        return demo(args)
    if args.command == "warm":
        from app.cli.warm import warm

        return warm(args)
    if args.command == "mcp":
        from app.cli.mcp import mcp

        return mcp(args)
    from app.cli.key import key

    return key(args)


if __name__ == "__main__":
    sys.exit(main())
