"""Importing this module makes all programs known, in the table's order."""

from . import generation as generation
from . import small as small
from . import training as training

from . import modules as modules  # isort: skip
from . import shapes as shapes  # isort: skip
from . import loops as loops  # isort: skip
from . import large as large  # isort: skip
