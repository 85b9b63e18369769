"""A package outside of smelt with passes, ops, a set of rewrites, an analysis, a fusion heuristic and a device."""

from .functions import iterate as iterate
from .functions import softsign as softsign
