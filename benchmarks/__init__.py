"""Measurements against peers. A wrong answer has no time: every row carries a checked certificate.

They run from a source tree that was never installed, too: the client is then found where it stands.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "client"
if find_spec("allot_client") is None:
    sys.path.append(str(CLIENT))
