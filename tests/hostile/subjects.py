"""What is fed with mutations. A subject raises nothing but errors of smelt, whatever it gets."""

from __future__ import annotations

import contextlib
import functools
import io
import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import smelt
from smelt.formats import gguf
from smelt.ir import mlir, text
from smelt.ir.errors import PassError, SmeltError
from smelt.ir.settings import RULES, Settings, override, variable
from smelt.passes import Pipeline
from smelt.passes.registry import registry

from . import commands, exchanged
from .mutate import NUMBERS, ODD, gently_mutated, mutated_bytes, mutated_text
from .sources import PIPELINES, modules, texts

# MLIR


@functools.cache
def _mlir_words() -> tuple[str, ...]:
    from smelt.ir.op import registry as ops

    kinds = ("f32", "i1", "ui8", "bf16")
    types = [f"tensor<{shape}{kind}>" for shape in ("", "4x", "0x", "?x", "2x3x") for kind in kinds]
    return (
        *(f'"smelt.{name}"' for name in ops), *types, "tensor<*xf32>", "complex<f32>", "index", "f32", "i64", "none",
        "func.func", "private", "return", "func.call", "func.constant", "call_indirect", "scf.for", "scf.if",
        "scf.while",
        "scf.yield", "module", "attributes", "array<i64: 0>", "array<i64>", "dense<1>", "dense<>", "loc(unknown)",
        "true",
        "unit", "#map", "affine_map<(d0) -> (d0)>", "@main", "@f", "%0", "%arg0", "%x", "->", "{", "}", "(", ")", "<",
        ">",
        ":", ",", "=", "^bb0:", "smelt.fusion", "smelt.custom_vjp", "smelt.checkpoint", '"cpu"', '"map"',
    )  # fmt: skip


def module(rng: random.Random) -> Callable[[], None]:
    """A mutated module: parsed, taken through passes, printed and read again."""
    source = rng.choice(modules())
    if rng.random() < 0.6:
        source = gently_mutated(source, _mlir_words(), rng)
    else:
        source = mutated_text(source, modules(), _mlir_words(), rng)
    pipeline = rng.choice(PIPELINES)

    def run() -> None:
        with mlir.lock:
            found = text.parse(source)
            try:
                Pipeline.parse(pipeline).run(found)
            except PassError as error:
                raise AssertionError(str(error)) from error
            text.verify(found)
            again = text.parse(text.to_text(found))
            assert text.to_text(again) == text.to_text(found), f"{pipeline} leaves what reads otherwise"

    run.subject = f"{pipeline} on\n{source}"  # type: ignore[attr-defined]
    return run


# Files


def _saved(write: Callable[..., None], *args: object, **kwargs: object) -> bytes:
    file = io.BytesIO()
    write(file, *args, **kwargs)
    return file.getvalue()


@functools.cache
def _files(kind: str) -> tuple[bytes, ...]:
    arrays = [
        np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 3), np.int8), np.array(True), np.ones(5, ">i2"),
        np.arange(4, dtype=np.complex64), np.asfortranarray(np.ones((2, 3), np.float16)), np.array(["text"]),
        np.zeros(3, [("a", "<f4")]), np.zeros((1, 2, 1, 3), np.uint64),
    ]  # fmt: skip
    named = {f"layers.{i}.w": x for i, x in enumerate(arrays)}
    if kind == "npy":
        return tuple(_saved(np.save, x) for x in arrays)
    if kind == "npz":
        packed = [_saved(write, **named) for write in (np.savez, np.savez_compressed)]
        return (*packed, _saved(np.savez, arrays[0]), _saved(np.savez_compressed, x=arrays[2]))
    if kind == "gguf":
        return _gguf_files()
    numbers = {k: smelt.array(x) for k, x in named.items() if x.dtype.kind in "fiubc" and x.dtype.isnative}
    return (
        _saved(smelt.save_safetensors, numbers, {"format": "mlx"}), _saved(smelt.save_safetensors, {}),
        _saved(smelt.save_safetensors, {"w": smelt.array([1.5, 2.5], smelt.bfloat16)}),
    )  # fmt: skip


def _gguf_files() -> tuple[bytes, ...]:
    def blocks(out: io.BytesIO, kind: gguf.Kind) -> None:
        elements = np.full((2, kind.nbytes), 3, np.uint8)
        tensor = gguf.Tensor("a.weight", kind, (2, kind.each), elements)
        gguf.write_gguf(out, [tensor], {"general.alignment": np.array(8)})

    plain = {"a": smelt.arange(5), "b": smelt.zeros((2, 0, 3)), "c": smelt.array(1.5, dtype=smelt.float16)}
    metadata = {"t": "text", "l": ["a", "bc", ""], "n": smelt.array([1, 2]), "s": 3, "b": True}
    kinds = [_saved(blocks, kind) for kind in gguf.KINDS.values() if kind.dtype is None]
    return (_saved(smelt.save_gguf, plain, metadata), _saved(smelt.save_gguf, {}, {}), *kinds)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for files that are mapped; it goes with the process."""
    return tempfile.TemporaryDirectory(prefix="smelt-hostile-")


def _file(kind: str, rng: random.Random) -> Callable[[], None]:
    files = _files(kind)
    data = mutated_bytes(rng.choice(files), files, rng)
    format = rng.choice((None, kind))
    path = Path(_folder().name) / f"mutated.{kind}" if rng.random() < 0.3 else None  # which is mapped

    def run() -> None:
        try:
            if path is not None:
                path.unlink(missing_ok=True)
                path.write_bytes(data)
            found = smelt.load(io.BytesIO(data) if path is None else path, format)
        except OSError as error:
            raise AssertionError(f"an error of the file system from memory: {error}") from error
        smelt.eval(found)
        for x in found.values() if isinstance(found, dict) else [found]:
            assert x.nbytes <= 1100 * len(data)

    run.subject = f"{format}: {data!r}"  # type: ignore[attr-defined]
    return run


@functools.cache
def _exported() -> tuple[bytes, ...]:
    weights, x = smelt.array(np.arange(20, dtype=np.float32).reshape(4, 5)), smelt.ones((3, 4))

    def looped(x: smelt.array) -> tuple[smelt.array, ...]:
        x = smelt.fori_loop(0, 3, lambda i, x: x * 2 + i, x)
        return smelt.scan(lambda c, r: (c + r, c * r), smelt.zeros(4), x)

    functions: list[tuple[Callable[..., object], dict[str, object]]] = [
        (lambda x: smelt.exp(x @ weights), {"shapeless": True, "metadata": "m"}), (looped, {}),
        (smelt.vmap(smelt.grad(lambda x: smelt.sin(x).sum())), {}), (lambda x: {"a": [x, 3], "b": (None, "t")}, {}),
    ]  # fmt: skip
    return tuple(_saved(smelt.export_function, f, x, **more) for f, more in functions)


def exported(rng: random.Random) -> Callable[[], None]:
    """A mutated file of a function, which is read, and called with what the file asked for and with other sizes."""
    files = _exported()
    source = rng.choice(files)
    if rng.random() < 0.5:
        data = mutated_bytes(source, files, rng)
    else:
        text = "\n".join(gently_mutated(part, _mlir_words(), rng) for part in (source.decode("latin-1"),))
        data = text.encode("latin-1", "replace")

    def run() -> None:
        found = smelt.import_function(io.BytesIO(data))
        for shape in ((3, 4), (7, 4), (1, 4)):
            with contextlib.suppress(SmeltError):
                found(smelt.ones(shape))  # not evaluated: loops may have no end

    run.subject = repr(data)  # type: ignore[attr-defined]
    return run


# Metal


@functools.cache
def _kernels() -> tuple[str, ...]:
    files = texts("backends/metal/kernels/*.metal", "backends/metal/golden/*.metal")
    rows = [re.split(r"^//// .*\n", text, flags=re.MULTILINE) for text in texts("metal/kernels/*.metal")]
    return (*files, *(part for parts in rows for part in parts if part.strip()))


METAL_WORDS = (
    "kernel", "device", "threadgroup", "constant", "thread", "float4", "half", "bfloat", "uint", "vec<float, 4>",
    "struct",
    "template <typename T>", "using", "typedef", "[[buffer(0)]]", "[[thread_position_in_grid]]", "[[", "]]", "if",
    "else",
    "for (;;)", "while", "do", "switch", "case", "return", "threadgroup_barrier(mem_flags::mem_threadgroup)",
    "simd_sum",
    "#define A A A\n", "#include <metal_stdlib>\n", '#include "x"\n', "#if 1\n", "#endif\n", "operator", "sizeof", "::",
    "<", ">", "(", ")", "{", "}", ";", ",", "=", "0x1p3", "1.0bf", "'a'", "atomic_uint", "auto", "goto x", "x:",
    "lambda",
    "[&](){}", "namespace a {", "metal", "const", "static", "constexpr", "typename", "alignas(16)", "enum", "union",
)  # fmt: skip


def kernel(rng: random.Random) -> Callable[[], None]:
    """A mutated Metal text, checked in this process, and read as the simulator and NVIDIA's compiler would."""
    from smelt.backends.cuda.source import cuda_source
    from smelt.backends.metal.check import check
    from smelt.backends.metal.simulator.library import host_source

    kernels = _kernels()
    first = rng.choice(kernels)
    if rng.random() < 0.3:
        source = gently_mutated(first, METAL_WORDS, rng)
    else:
        source = mutated_text(first, kernels, METAL_WORDS, rng)
    strict, metal = rng.random() < 0.5, rng.choice(("3.1", "3.1", "4.0"))
    has_macros = re.search(r"^\s*#\s*(?!include\s*<metal_|pragma\b)\w+", source, re.MULTILINE)

    def run() -> None:
        for diagnostic in check(source, "k.metal", strict, metal=metal):
            assert diagnostic.line >= 0 and str(diagnostic)
        if not has_macros:  # which would ask the C++ compiler
            for read in (host_source, cuda_source):
                with contextlib.suppress(SmeltError):
                    read(source)

    run.subject = source  # type: ignore[attr-defined]
    return run


# Words of a command line


def pipeline(rng: random.Random) -> Callable[[], None]:
    """A mutated pipeline: parsed and printed, and parsed again."""
    known = [*PIPELINES, "builtin.module(func.func(canonicalize{max-iterations=2}),cse)", "any(symbol-dce,sccp)"]
    words = (*registry(), "fixpoint(", ")", "(", "{", "}", "=", ",", "func.func(", "any(", "smelt-", "max-ops=3")
    source = mutated_text(rng.choice(known), known, words, rng)

    def run() -> None:
        found = Pipeline.parse(source)
        assert str(Pipeline.parse(str(found))) == str(found)

    run.subject = source  # type: ignore[attr-defined]
    return run


def setting(rng: random.Random) -> Callable[[], None]:
    """Mutated settings, from the environment and from a program."""
    words = ("0", "1", "true", "off", "auto", "cpu", "metal:sim", "forward", "2**63", *NUMBERS, *ODD)
    values = {name: mutated_text(rng.choice(words), words, words, rng) for name in RULES}

    def run() -> None:
        found = Settings({variable(name): value for name, value in values.items()})
        for name, value in values.items():
            for attempt in (lambda name=name: getattr(found, name), lambda n=name, v=value: _overridden(n, v)):
                with contextlib.suppress(SmeltError):
                    attempt()

    run.subject = repr(values)  # type: ignore[attr-defined]
    return run


def _overridden(name: str, value: str) -> None:
    for given in (value, value.encode("utf-8", "replace"), [value], len(value), float(len(value))):
        with contextlib.suppress(SmeltError), override(**{name: given}):
            pass


SUBJECTS: dict[str, Callable[[random.Random], Callable[[], None]]] = {
    "mlir": module, "npy": functools.partial(_file, "npy"), "npz": functools.partial(_file, "npz"),
    "safetensors": functools.partial(_file, "safetensors"), "gguf": functools.partial(_file, "gguf"),
    "functions": exported, "metal": kernel, "pipelines": pipeline, "settings": setting, **exchanged.SUBJECTS,
    **commands.SUBJECTS,
}  # fmt: skip
