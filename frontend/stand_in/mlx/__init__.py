"""``mlx`` in processes that a program started by `smelt.compat` starts: names for smelt, as in the program."""

import sys

import smelt

if __name__ == "mlx":
    del sys.modules[__name__]  # `install` puts another there
    smelt.compat.install()
