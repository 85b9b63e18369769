"""`save_gguf`, and what `load` reads of .gguf files: arrays and metadata to and from the format's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    AttributeValueError,
    DTypeError,
    FileFormatError,
    ShapeError,
    SmeltError,
    TreeError,
    at_user_line,
    shown,
)

from .formats import gguf, gguf_blocks
from .lazy.arguments import word
from .lazy.arrays import array, as_array
from .lazy.signatures import File

_SAVE = "smelt.save_gguf"


def read(source: IO[bytes]) -> tuple[dict[str, tuple[np.ndarray, DType]], dict[str, Any]]:
    """Arrays by name, and metadata: texts, lists of texts, arrays. Raises as `gguf.read_gguf`."""
    arrays, found = gguf.read_gguf(source)
    metadata = {k: array(v, dtypes.of(v.dtype)) if isinstance(v, np.ndarray) else v for k, v in found.items()}
    return arrays, metadata


def save(
    opened: Callable[[File, str], AbstractContextManager[IO[bytes]]], file: File, arrays: Any, metadata: Any, types: Any
) -> None:
    """See `smelt.save_gguf`; `opened` makes the file, with an end of its name."""
    for what, given in (("arrays", arrays), ("metadata", metadata), ("types", types)):
        if not isinstance(given, Mapping) or not all(isinstance(k, str) for k in given):
            raise TreeError(at_user_line(f"{_SAVE}: {what} must be a dict with names, is {shown(given)}"))
    values = {k: _value(k, v) for k, v in metadata.items()}
    found = {k: as_array(x) for k, x in arrays.items()}
    parts: set[str] = set()
    tensors = {}
    for name, kind in types.items():
        tensors[name], used = _packed(name, kind, found)
        parts |= used
    for name, x in found.items():
        if name not in parts:
            tensors[name] = _tensor(name, x)
    order = [tensors[name] for name in found if name in tensors]
    try:
        with opened(file, ".gguf") as out:
            gguf.write_gguf(out, order, values)
    except FileFormatError as error:
        raise AttributeValueError(at_user_line(f"{_SAVE}: {error}")) from None


def _tensor(name: str, x: array) -> gguf.Tensor:
    kind = gguf.BY_DTYPE.get(x.dtype)
    if kind is None:
        packed = '; packed weights need types={name: "Q4_0"} or the like' if x.dtype is dtypes.uint32 else ""
        raise DTypeError(at_user_line(f"{_SAVE}: the format has no elements of {shown(name)}, {x.aval}{packed}"))
    if x.ndim > gguf.MAX_DIMENSIONS:
        most = gguf.MAX_DIMENSIONS
        raise ShapeError(at_user_line(f"{_SAVE}: {shown(name)} has more than {most} axes, {x.aval}"))
    return gguf.Tensor(name, kind, x.shape, x._host())


def _packed(name: str, kind: Any, arrays: dict[str, array]) -> tuple[gguf.Tensor, set[str]]:
    """A tensor of quantized blocks, and the names of the arrays that it is made of."""
    word("save_gguf", f"the type of {shown(name)}", kind, *gguf_blocks.PACKED)
    prefix = name.removesuffix(".weight")
    names = [name, f"{prefix}.scales"] + ([] if kind in gguf_blocks.OF_BYTES else [f"{prefix}.biases"])
    missing = [n for n in names if n not in arrays]
    if missing:
        raise TreeError(at_user_line(f"{_SAVE}: {kind} weights {shown(name)} need {', '.join(map(shown, missing))}"))
    words, scales, *biases = (arrays[n] for n in names)
    what = ", ".join(f"{n} {arrays[n].aval}" for n in names)
    small = dtypes.uint8 if kind in gguf_blocks.OF_BYTES else dtypes.float16
    if words.dtype is not dtypes.uint32 or any(x.dtype is not small for x in (scales, *biases)):
        raise DTypeError(at_user_line(f"{_SAVE}: {kind} needs uint32 words and parts of {small.name}; {what}"))
    bits, group, each = gguf_blocks.BITS[kind], gguf_blocks.GROUPS[kind], gguf_blocks.EACH[kind]
    fits = words.ndim and scales.ndim and words.shape[:-1] == scales.shape[:-1] and words.ndim <= gguf.MAX_DIMENSIONS
    fits = fits and words.shape[-1] * 32 == scales.shape[-1] * bits * group and not scales.shape[-1] % each
    if not fits or any(x.shape != scales.shape for x in biases):
        rule = f"{bits} bits an element and groups of {group}" + (f", {each} in a block" if each > 1 else "")
        raise ShapeError(at_user_line(f"{_SAVE}: parts of {kind} weights do not belong together with {rule}; {what}"))
    hosts = [x._host() for x in (words, scales, *biases)]
    blocks = gguf_blocks.blocks_of(kind, gguf_blocks.Packed(hosts[0], hosts[1], hosts[2] if biases else None))
    if blocks is None and kind == "NVFP4":
        raise AttributeValueError(at_user_line(f"{_SAVE}: scales of NVFP4 are neither negative nor NaN; {what}"))
    if blocks is None:
        rule = "-8 times the scales; Q4_1 takes any" if kind == "Q4_0" else "-128 times the scales"
        raise AttributeValueError(at_user_line(f"{_SAVE}: the biases of {kind} are {rule}; {what}"))
    shape = (*scales.shape[:-1], scales.shape[-1] * group)
    return gguf.Tensor(name, gguf.BY_NAME[kind], shape, blocks), set(names)


def _value(name: str, value: Any) -> gguf.Value:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value)):
        return value
    kinds = "a text, a list of texts, a number or an array of one axis"
    try:
        found = as_array(value)
    except SmeltError:
        raise TreeError(at_user_line(f"{_SAVE}: metadata {shown(name)} must be {kinds}, is {shown(value)}")) from None
    if found.ndim > 1:
        raise ShapeError(at_user_line(f"{_SAVE}: metadata {shown(name)} must be {kinds}, is {found.aval}"))
    if not gguf.is_number(found.dtype):
        raise DTypeError(at_user_line(f"{_SAVE}: metadata has no such numbers: {shown(name)}, {found.aval}"))
    return found._host()
