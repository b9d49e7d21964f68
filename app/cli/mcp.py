"""`allot mcp`: a server of the Model Context Protocol on standard input and output, for agents."""

import os
import sys
from argparse import Namespace

import httpx

from workers.runtime.version import allot_version


def mcp(args: Namespace) -> int:
    """Serve until the agent hangs up. The key is read from ALLOT_API_KEY, and goes to the service as a header only."""
    try:
        from app.agents.server import make_server
    except ImportError:
        print("allot mcp needs the package mcp: pip install 'allot[mcp]'", file=sys.stderr)
        return 1
    from app.agents.doors import Doors

    key = os.environ.get("ALLOT_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = (args.url or os.environ.get("ALLOT_URL") or "http://127.0.0.1:8000").rstrip("/")
    http = httpx.AsyncClient(base_url=url, headers=headers)
    make_server(Doors(http, args.files), allot_version()).run("stdio")
    return 0
