"""``mlx`` in processes that a program started by `smelt.compat` starts: names for smelt, as in the program."""

import sys

del sys.modules[__name__]  # `install` puts another there
import smelt  # noqa: E402

smelt.compat.install()
