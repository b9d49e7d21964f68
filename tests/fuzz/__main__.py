"""`python -m tests.fuzz`: draw cases, run them, judge them; shrink and keep what fails; write one row of counts."""

import sys

from tests.fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
