"""How a notebook shows an array: its text, what its elements are like, and a matrix as a small picture."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType

from ..lazy.arrays import array
from ..lazy.graph import state

__all__: list[str] = []

#: A picture has at most so many elements along an axis; of larger matrices it shows some.
_MOST_CELLS = 64
#: So many pixels on the screen is its longer side, at least.
_SIDE = 128
#: Statistics of larger arrays are those of about so many elements.
_MOST_ELEMENTS = 1 << 22


def html_of(self: array) -> str:
    """The text of the array for a notebook, with its shape and dtype, statistics, and a matrix as a picture."""
    import html  # nobody needs it elsewhere

    extents = " × ".join(map(str, self.shape)) or "scalar"
    text = f"<pre>{html.escape(repr(self))}</pre>"
    facts = f"{extents}, {self.dtype.name}"
    if state.compiling and self._ref[0].values is None:
        return f"{text}<small>{facts}</small>"
    host = self._host()
    if self.dtype.is_complex:
        host, facts = np.abs(host), f"{facts}, absolute values"
    x = np.asarray(host, np.float64) if host.size <= _MOST_ELEMENTS else _some(host, _MOST_ELEMENTS).astype(np.float64)
    said = _statistics(x, host.size <= _MOST_ELEMENTS, self.dtype) if x.ndim else ""
    shown = _picture(host) if host.ndim == 2 and min(host.shape) > 1 else ""
    return f"{text}{shown}<small>{facts}{'; ' if said else ''}{said}</small>"


def _some(host: np.ndarray, most: int) -> np.ndarray:
    """Elements of an array at equal distances, not many more than `most`."""
    return host.reshape(-1)[:: -(-host.size // most)]


def _statistics(x: np.ndarray, of_all: bool, dtype: DType) -> str:
    if x.size == 0:
        return "empty"
    about, spec = "" if of_all else "about ", ",.0f" if dtype.is_integer else ".6g"
    if dtype is dtypes.bool_:
        return f"{about}{100 * x.mean():.3g}% true"
    finite = x[np.isfinite(x)]
    found = []
    if finite.size:
        found += [f"least {about}{finite.min():{spec}}", f"largest {about}{finite.max():{spec}}"]
        with np.errstate(over="ignore", invalid="ignore"):
            found += [f"mean {about}{finite.mean():.6g}", f"deviation {about}{finite.std():.6g}"]
    nan, infinite = int(np.isnan(x).sum()), int(np.isinf(x).sum())
    found += [f"{about}{n:,} {what}" for n, what in ((nan, "NaN"), (infinite, "infinite")) if n]
    return ", ".join(found)


def _picture(host: np.ndarray) -> str:
    """An image of a matrix: blue below zero, red above, white at zero; from black to white where none is below."""
    rows, columns = (np.linspace(0, n - 1, min(n, _MOST_CELLS)).astype(int) for n in host.shape)
    x = host[np.ix_(rows, columns)].astype(np.float64)
    finite = np.isfinite(x)
    largest = float(np.abs(x[finite]).max(initial=0.0))
    x = np.where(finite, x, 0.0) / (largest or 1.0)
    if x.min() < 0:
        pixels = np.stack([1 - np.maximum(-x, 0), 1 - np.abs(x), 1 - np.maximum(x, 0)], -1)
    else:
        pixels = np.repeat(x[..., None], 3, -1)
    colours = np.round(255 * pixels).astype(np.uint8)
    colours[~finite] = (255, 200, 0)
    height, width = x.shape
    scale = max(1, -(-_SIDE // max(height, width)))
    source = base64.b64encode(_png(colours)).decode()
    style = "image-rendering: pixelated; border: 1px solid #888"
    return (
        f'<img src="data:image/png;base64,{source}" width="{width * scale}" height="{height * scale}" '
        f'style="{style}" alt="the matrix as a picture"><br>'
    )


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file of [height, width, 3] bytes."""
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)  # 0: not filtered

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # eight bits, red green blue
    chunks = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines.tobytes())), chunk(b"IEND", b"")
    return b"".join([b"\x89PNG\r\n\x1a\n", *chunks])
