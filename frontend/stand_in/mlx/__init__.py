"""``mlx`` in processes that a program started by `smelt.compat` starts: names for smelt, as in the program."""

import os
import sys

try:
    import smelt
except ModuleNotFoundError:  # found by a variable that this process was not given
    sys.path.append(os.path.abspath(os.path.join(*[os.path.dirname(__file__)] + [os.pardir] * 3)))
    import smelt

if __name__ == "mlx":
    del sys.modules[__name__]  # `install` puts another there
    smelt.compat.install()
    smelt.compat._install_in_processes()
