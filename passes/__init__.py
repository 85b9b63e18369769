"""Passes on the smelt dialect, one file each, with their registry and driver."""

from .driver import PassRecord as PassRecord
from .driver import Pipeline as Pipeline
from .registry import Pass as Pass
from .registry import register_pass as register_pass
from .registry import registry as registry
