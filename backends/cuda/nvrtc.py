"""One compile by NVRTC: a function, and a process of its own for it, which imports nothing of smelt.

Threads that compile at the same time wait for each other (16 of them took 20 times as long as one, each); processes do
not.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping, Sequence

#: The exit status where NVRTC refuses.
REFUSED = 3


class CompileError(Exception):
    """NVRTC refuses a source; what it says."""


def compiled(nvrtc: ctypes.CDLL, source: str, headers: Mapping[str, str], flags: Sequence[str]) -> bytes:
    """A source's machine code.

    Args:
        headers: by the names by which it includes them.

    Raises:
        CompileError: see there.
    """
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", len(headers), texts, names):
        raise CompileError("NVRTC could not make a program")
    try:
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        size = ctypes.c_size_t()
        if nvrtc.nvrtcCompileProgram(program, len(flags), given):
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise CompileError(log.value.decode(errors="replace"))
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return cubin.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def main() -> None:
    """Reads the path of NVRTC and what `compiled` takes; writes machine code, or why not, and ends with `REFUSED`."""
    asked = json.load(sys.stdin)
    nvrtc = ctypes.CDLL(asked["library"])
    try:
        found = compiled(nvrtc, asked["source"], asked["headers"], asked["flags"])
    except CompileError as error:
        sys.stderr.write(str(error))
        sys.exit(REFUSED)
    sys.stdout.buffer.write(found)


if __name__ == "__main__":
    main()
