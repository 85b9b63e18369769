"""What a linker writes into machine code: relocations, as the ABI of each machine defines them.

S + A is the address that is meant, P that of the place that is changed; names are those of the ABI documents.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from smelt.ir.errors import InternalError


class RelocationError(InternalError, ValueError):
    """An address that does not fit where it should go."""


class Patch(NamedTuple):
    """How one kind of relocation changes its place.

    Attributes:
        size: of the place, in bytes.
        apply: ``(old, target, place)``, the new content. Raises RelocationError where it does not fit.
        is_call: whether it may go by a jump that lies near.
    """

    size: int
    apply: Callable[[int, int, int], int]
    is_call: bool = False


class Patches(NamedTuple):
    """The relocations of a machine, and 16 bytes of code that jump to any address (None: it is not needed)."""

    kinds: Mapping[int, Patch]
    jump: Callable[[int], bytes] | None


def _fits(value: int, bits: int, signed: bool) -> int:
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    if not low <= value < high:
        raise RelocationError(f"{value:#x} does not fit into {bits} bits")
    return value & ((1 << bits) - 1)


def _absolute(bits: int, signed: bool = False) -> Callable[[int, int, int], int]:
    return lambda old, target, place: _fits(target, bits, signed)


def _relative(bits: int) -> Callable[[int, int, int], int]:
    return lambda old, target, place: _fits(target - place, bits, True)


X86_64 = Patches(
    {
        1: Patch(8, _absolute(64)),  # R_X86_64_64
        2: Patch(4, _relative(32)),  # R_X86_64_PC32
        4: Patch(4, _relative(32)),  # R_X86_64_PLT32
        10: Patch(4, _absolute(32)),  # R_X86_64_32
        11: Patch(4, _absolute(32, True)),  # R_X86_64_32S
        24: Patch(8, _relative(64)),  # R_X86_64_PC64
    },
    None,
)


def _arm_jump(target: int) -> bytes:
    """``ldr x16, [pc + 8]``, ``br x16``, and the address."""
    return struct.pack("<IIQ", 0x58000050, 0xD61F0200, target)


def _move(group: int) -> Callable[[int, int, int], int]:
    """Sixteen bits of an address into MOVZ or MOVK."""

    def apply(old: int, target: int, place: int) -> int:
        part = _fits(target, 64, False) >> (16 * group) & 0xFFFF
        return old & ~(0xFFFF << 5) | part << 5

    return apply


def _branch(old: int, target: int, place: int) -> int:
    """The distance to a function, in instructions, into B or BL."""
    if (target - place) & 3:
        raise RelocationError("a jump into the middle of an instruction")
    return old & ~0x3FFFFFF | _fits(target - place, 28, True) >> 2


def _page(old: int, target: int, place: int) -> int:
    """The distance to a page into ADRP."""
    pages = _fits((target & ~0xFFF) - (place & ~0xFFF), 33, True) >> 12
    return old & ~(3 << 29 | 0x7FFFF << 5) | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _in_page(shift: int) -> Callable[[int, int, int], int]:
    """The place in a page, in units of what is loaded or stored, into ADD, LDR or STR."""

    def apply(old: int, target: int, place: int) -> int:
        if target & ((1 << shift) - 1):
            raise RelocationError(f"{target:#x} is no multiple of {1 << shift}")
        return old & ~(0xFFF << 10) | (target & 0xFFF) >> shift << 10

    return apply


ARM64 = Patches(
    {
        257: Patch(8, _absolute(64)),  # R_AARCH64_ABS64
        258: Patch(4, _absolute(32)),  # R_AARCH64_ABS32
        260: Patch(8, _relative(64)),  # R_AARCH64_PREL64
        261: Patch(4, _relative(32)),  # R_AARCH64_PREL32
        264: Patch(4, _move(0)),  # R_AARCH64_MOVW_UABS_G0_NC
        266: Patch(4, _move(1)),  # R_AARCH64_MOVW_UABS_G1_NC
        268: Patch(4, _move(2)),  # R_AARCH64_MOVW_UABS_G2_NC
        269: Patch(4, _move(3)),  # R_AARCH64_MOVW_UABS_G3
        275: Patch(4, _page),  # R_AARCH64_ADR_PREL_PG_HI21
        277: Patch(4, _in_page(0)),  # R_AARCH64_ADD_ABS_LO12_NC
        278: Patch(4, _in_page(0)),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: Patch(4, _branch, True),  # R_AARCH64_JUMP26
        283: Patch(4, _branch, True),  # R_AARCH64_CALL26
        284: Patch(4, _in_page(1)),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: Patch(4, _in_page(2)),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: Patch(4, _in_page(3)),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: Patch(4, _in_page(4)),  # R_AARCH64_LDST128_ABS_LO12_NC
    },
    _arm_jump,
)
