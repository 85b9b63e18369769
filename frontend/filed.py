"""What `rest` is to other functions, to those that read and write files: their formats take as long to load."""

from __future__ import annotations

from .io import *
from .transforms.export import *
from .transforms.imported import *
