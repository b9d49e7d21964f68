#!/usr/bin/env bash
# A linear assignment in one request; null forbids a pair. Start the service first: make serve
set -euo pipefail
url=${ALLOT_URL:-http://127.0.0.1:8000}

curl --silent --show-error --fail-with-body "$url/v1/jobs" \
    -H 'Prefer: wait=30' \
    -d '{"solver": "lap", "inputs": {"cost": [[4, 1, 3], [2, null, 5], [3, 2, 2]]}}'
