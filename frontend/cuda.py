"""What `mlx.core.cuda` has, for programs that ask for an NVIDIA GPU before they use it."""

from __future__ import annotations

from smelt.ir.listing import listed as _listed

from .lazy.streams import is_available as _is_available

__all__ = ["is_available"]

__dir__ = _listed(globals())


def is_available() -> bool:
    """Whether there is an NVIDIA GPU here. It is the device ``cuda``, which has to be asked for.

    >>> import smelt
    >>> smelt.cuda.is_available() is smelt.is_available("cuda")
    True
    """
    return _is_available("cuda")
