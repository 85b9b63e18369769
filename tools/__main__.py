"""``python -m smelt.tools``: the same as the command `smelt`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
