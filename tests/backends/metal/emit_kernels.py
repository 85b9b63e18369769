"""Small modules of kernel IR as text, and running what `emit` makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smelt.backends.gpu.manifest import Manifest
from smelt.backends.metal.check import check
from smelt.backends.metal.emit import emit
from smelt.backends.metal.simulator import Library
from smelt.ir import mlir
from smelt.ir.dialect import context

#: How elements of each MLIR type lie in memory; i1 as bytes, bf16 as its bits.
STORED = {
    "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i1": np.uint8, "i8": np.uint8, "i16": np.uint16,
    "i32": np.uint32, "i64": np.uint64, "complex<f32>": np.complex64,
}  # fmt: skip


def module(kernels: str, main: str = "") -> str:
    """A module around the members of its gpu.module."""
    return f"module attributes {{gpu.container_module}} {{\n{main}\ngpu.module @kernels {{\n{kernels}\n}}\n}}"


def kernel(
    body: str, arguments: str = "%x: memref<64xf32>, %o: memref<64xf32>", name: str = "k", threads: str = "64, 1, 1",
    groups: str = "1, 1, 1", extra: str = "", local: str = "",
) -> str:  # fmt: skip
    """A kernel. Arguments called %x have the location that names them so."""
    written = [f"%{a.rstrip(', ')}" for a in arguments.split("%")[1:]]
    named = ", ".join(f'{a} loc("{a.split(":")[0][1:]}")' for a in written)
    return (
        f"gpu.func @{name}({named}) {local} kernel attributes {{known_block_size = array<i32: {threads}>, "
        f"known_grid_size = array<i32: {groups}>, smelt.schedule = \"map\"{extra}}} {{\n{body}\ngpu.return\n}}"
    )


def emitted(text: str) -> tuple[str, Manifest]:
    """`emit` of a module's text, which the strict check accepts."""
    with mlir.lock, context():
        metal, manifest = emit(mlir.ir.Module.parse(text))
    problems = "\n".join(str(d) for d in check(metal, strict=True))
    assert not problems, problems
    return metal, manifest


def lines(text: str) -> list[str]:
    """The lines of the last kernel's body, without indentation around all of them."""
    body = emitted(text)[0].rpartition("kernel void ")[2].split("{\n", 1)[1].rpartition("}")[0]
    return [line[4:] for line in body.splitlines()]


def launch(
    library: Library, manifest: Manifest, entry: str, arrays: Sequence[np.ndarray]
) -> None:
    """Run a kernel over arrays, in place."""
    info = manifest.kernel(entry)
    buffers = {i: (a.ctypes.data, a.nbytes) for i, a in enumerate(arrays)}
    library.launch(entry, buffers, info.threadgroups, info.threads)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at an address that vectors may be loaded from."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    found = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


@dataclass(frozen=True)
class Elementwise:
    """A kernel that computes one op for each element: inputs and result as MLIR types."""

    name: str
    op: str
    inputs: tuple[str, ...]
    result: str
    count: int
    lanes: int = 1

    @property
    def text(self) -> str:
        """Its gpu.func."""
        n, width = self.count, self.lanes

        def kind(element: str) -> str:
            return f"vector<{width}x{element}>" if width > 1 else element

        def stored(element: str) -> str:
            return "i8" if element == "i1" else element

        arguments = [f"%{c}_in: memref<{n}x{stored(t)}>" for c, t in zip("abc", self.inputs)]
        body = [f"%t = gpu.global_id x\n%width = arith.constant {width} : index\n%i = arith.muli %t, %width : index"]
        for c, t in zip("abc", self.inputs):
            load = "vector.load" if width > 1 else "memref.load"
            to = f", {kind(stored(t))}" if width > 1 else ""
            raw = f"%{c}" if t != "i1" else f"%{c}_raw"
            body.append(f"{raw} = {load} %{c}_in[%i] : memref<{n}x{stored(t)}>{to}")
            if t == "i1":
                zero = "dense<0>" if width > 1 else "0"
                body.append(f"%{c}_zero = arith.constant {zero} : {kind('i8')}")
                body.append(f"%{c} = arith.cmpi ne, {raw}, %{c}_zero : {kind('i8')}")
        op = self.op
        for element in ("f32", "f16", "bf16", "i1", "i8", "i16", "i32", "i64"):
            op = op.replace(f"<{element}>", kind(element))
        body.append(op if "%r" in op else f"%r = {op}")
        value = "%r"
        if self.result == "i1":
            body.append(f"%wide = arith.extui %r : {kind('i1')} to {kind('i8')}")
            value = "%wide"
        store = "vector.store" if width > 1 else "memref.store"
        to = f", {kind(stored(self.result))}" if width > 1 else ""
        body.append(f"{store} {value}, %out[%i] : memref<{n}x{stored(self.result)}>{to}")
        arguments.append(f"%out: memref<{n}x{stored(self.result)}>")
        threads = n // width
        return kernel("\n".join(body), ", ".join(arguments), self.name, f"{threads}, 1, 1")

    def run(self, library: Library, manifest: Manifest, operands: Sequence[np.ndarray]) -> np.ndarray:
        """The result of one launch over operands of `count` elements."""
        arrays = [aligned(x.astype(STORED[t]) if t == "i1" else x) for x, t in zip(operands, self.inputs)]
        out = aligned(np.zeros(self.count, STORED[self.result]))
        launch(library, manifest, self.name, [*arrays, out])
        return out
