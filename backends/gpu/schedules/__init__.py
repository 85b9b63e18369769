"""Schedules: how the elements of a fusion are spread over the threads of a GPU."""

from .build import build as build
from .build import build_op as build_op
