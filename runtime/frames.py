"""Messages through a pipe: a length of eight bytes, then the message."""

from __future__ import annotations

import struct

HEADER = struct.Struct("<Q")


def frame(message: bytes) -> bytes:
    """What is written."""
    return HEADER.pack(len(message)) + message


def taken(received: bytearray) -> bytes | None:
    """The first message, taken out of what was received; None: it is not whole yet."""
    if len(received) < HEADER.size:
        return None
    (size,) = HEADER.unpack_from(received)
    end = HEADER.size + size
    if len(received) < end:
        return None
    message = bytes(received[HEADER.size : end])
    del received[:end]
    return message
