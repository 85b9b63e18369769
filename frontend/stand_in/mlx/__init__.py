"""``mlx`` in processes that a program started by `smelt.compat` starts: names for smelt, as in the program."""

import os
import sys

# The smelt that the program has: variables that say where it is may not be there.
root = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, os.pardir))
sys.path.insert(0, root)
try:
    import smelt
finally:
    sys.path.remove(root)

if __name__ == "mlx":
    del sys.modules[__name__]  # `install` puts another there
    smelt.compat.install()
    smelt.compat._install_in_processes()
