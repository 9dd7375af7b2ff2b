"""`python -m gradwhy` is the command `gradwhy`."""

import sys

from gradwhy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
