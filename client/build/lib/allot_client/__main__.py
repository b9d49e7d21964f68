"""`python -m allot_client` is `allot-client`."""

import sys

from allot_client.cli import main

sys.exit(main())
