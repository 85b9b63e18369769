"""``python -m smelt``: the command `smelt`."""

import sys

from smelt.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
