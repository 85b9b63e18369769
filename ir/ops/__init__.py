"""The ops, one file a family. Importing this package fills the registry."""

from . import arithmetic as arithmetic
from . import call as call
from . import movement as movement
from . import reduce as reduce
