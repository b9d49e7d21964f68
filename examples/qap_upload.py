"""Upload a QAPLIB file, follow the search as it improves, fetch the answer.

python examples/qap_upload.py nug12.dat [nug12.sln]     (without a file: a small instance of its own)
"""

import json
import os
import sys
from pathlib import Path

import httpx

URL = os.environ.get("ALLOT_URL", "http://127.0.0.1:8000")
SMALL = "4\n\n0 5 2 4\n5 0 3 0\n2 3 0 1\n4 0 1 0\n\n0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0\n"


def main() -> None:
    paths = [Path(argument) for argument in sys.argv[1:]]
    files = {"qaplib": ("small.dat", SMALL.encode())}
    if paths:
        files = {("sln" if path.suffix == ".sln" else "qaplib"): (path.name, path.read_bytes()) for path in paths}
    job = {"solver": "qap", "time_limit_s": 5, "options": {"seed": 1}}
    with httpx.Client(base_url=URL, timeout=60) as client:
        links = client.post("/v1/jobs", data={"job": json.dumps(job)}, files=files).raise_for_status().json()["links"]
        with client.stream("GET", links["events"]) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    told = json.loads(line.removeprefix("data: "))
                    if told.get("objective") is not None:
                        print(f"{told['elapsed_s']:6.2f} s  objective {told['objective']}  bound {told['bound']}")
        answer = client.get(links["result"]).raise_for_status().json()
    proof = answer["certificate"]
    print(f"{answer['termination']}: {answer['objective']}, bound {proof['bound']}, proved: {proof['proved']}")
    print("facility -> location:", answer["permutation"])


if __name__ == "__main__":
    main()
