"""What emitted text looks like: names, folding, control flow, constants; and the manifest beside it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from smelt.backends.cuda.compiler import compile_cubin
from smelt.backends.cuda.source import cuda_source
from smelt.backends.gpu.manifest import ArrayInfo, BufferSlot, KernelBuffer, Launch, Manifest
from smelt.backends.metal.check import check
from smelt.backends.metal.emit import arith, emit
from smelt.backends.metal.emit.types import EmitError
from smelt.backends.metal.simulator import Library
from smelt.ir import mlir
from smelt.ir.dialect import context
from smelt.ir.errors import DeviceError

from .emit_kernels import aligned, emitted, kernel, launch, lines, module

SCALE = """%i = gpu.global_id x
    %v = memref.load %x[%i] : memref<64xf32>
    %c = arith.constant 0.5 : f32
    %w = arith.mulf %v, %c : f32
    memref.store %w, %o[%i] : memref<64xf32>"""


def floats(*values: float) -> np.ndarray:
    return aligned(np.array(values, np.float32))


# Texts


def test_a_whole_text() -> None:
    extra = ', smelt.source = ["smelt.mul at model.py:17"]'
    assert emitted(module(kernel(SCALE, name="fused_mul", extra=extra)))[0] == """\
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_mul: map
//   smelt.mul at model.py:17
[[max_total_threads_per_threadgroup(64)]]
kernel void fused_mul(
    device const float* x [[buffer(0)]],
    device float* o [[buffer(1)]],
    uint gid [[thread_position_in_grid]]
) {
    o[gid] = x[gid] * 0.5f;
}
"""


def test_the_module_is_not_changed_and_the_text_is_the_same_again() -> None:
    text = module(kernel(SCALE.replace("arith.mulf", "arith.maximumf")))
    with mlir.lock, context():
        parsed = mlir.ir.Module.parse(text)
        before = str(parsed)
        assert emit(parsed) == emit(parsed) == emit(mlir.ir.Module.parse(text))
        assert str(parsed) == before


def expression(ops: str, result: str = "%r") -> str:
    """The text of a float computed from floats %a, %b, %c and indices %i, %n."""
    body = f"""%i = gpu.global_id x
        %n = arith.constant 7 : index
        %a = memref.load %x[%i] : memref<64xf32>
        %b = memref.load %y[%i] : memref<64xf32>
        %c = memref.load %z[%i] : memref<64xf32>
        {ops}
        memref.store {result}, %o[%i] : memref<64xf32>"""
    arguments = "%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %o: memref<64xf32>"
    return lines(module(kernel(body, arguments)))[-1].removeprefix("o[gid] = ").removesuffix(";")


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        ("%s = arith.addf %a, %b : f32\n%r = arith.mulf %s, %c : f32", "(x[gid] + y[gid]) * z[gid]"),
        ("%s = arith.mulf %a, %b : f32\n%r = arith.addf %c, %s : f32", "z[gid] + x[gid] * y[gid]"),
        ("%s = arith.addf %a, %b : f32\n%r = arith.addf %c, %s : f32", "z[gid] + (x[gid] + y[gid])"),
        ("%s = arith.addf %a, %b : f32\n%r = arith.addf %s, %c : f32", "x[gid] + y[gid] + z[gid]"),
        ("%s = arith.negf %a : f32\n%r = arith.negf %s : f32", "-(-x[gid])"),
        ("%k = arith.constant -0.5 : f32\n%r = arith.addf %a, %k : f32", "x[gid] - 0.5f"),
        ("%k = arith.constant -0.5 : f32\n%r = arith.subf %a, %k : f32", "x[gid] + 0.5f"),
        ("%k = arith.constant -0.5 : f32\n%r = arith.divf %k, %a : f32", "-0.5f / x[gid]"),
        (
            "%s = arith.cmpf olt, %a, %b : f32\n%t = arith.cmpf ogt, %a, %c : f32\n%u = arith.andi %s, %t : i1\n"
            "%r = arith.select %u, %b, %c : f32",
            "x_value < y_value && x_value > z_value ? y_value : z_value",
        ),
        ("%s = math.fma %a, %b, %c : f32\n%r = math.floor %s : f32",
         "metal::floor(metal::fma(x[gid], y[gid], z[gid]))"),
    ],
)
def test_parentheses(ops: str, text: str) -> None:
    assert expression(ops) == text


def integer_expression(ops: str) -> str:
    body = f"""%i = gpu.global_id x
        %a = memref.load %x[%i] : memref<64xi32>
        %b = memref.load %y[%i] : memref<64xi32>
        {ops}
        memref.store %r, %o[%i] : memref<64xi32>"""
    arguments = "%x: memref<64xi32>, %y: memref<64xi32>, %o: memref<64xi32>"
    return lines(module(kernel(body, arguments)))[-1].removeprefix("o[gid] = ").removesuffix(";")


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        ("%s = arith.addi %a, %b : i32\n%r = arith.shli %s, %b : i32", "(x[gid] + y_value) << y_value"),
        ("%s = arith.andi %a, %b : i32\n%r = arith.ori %s, %a : i32", "(x_value & y[gid]) | x_value"),
        ("%s = arith.xori %a, %b : i32\n%r = arith.xori %a, %s : i32", "x_value ^ x_value ^ y[gid]"),
        ("%s = arith.addi %a, %b : i32\n%r = arith.addi %b, %s : i32", "y_value + x[gid] + y_value"),
        ("%k = arith.constant -1 : i32\n%r = arith.addi %a, %k : i32", "x[gid] - 1u"),
        ("%k = arith.constant -1 : i32\n%r = arith.xori %a, %k : i32", "~x[gid]"),
        ("%k = arith.constant 4080 : i32\n%r = arith.andi %a, %k : i32", "x[gid] & 0xff0u"),
        ("%k = arith.constant 16 : i32\n%r = arith.shrui %a, %k : i32", "x[gid] >> 16"),
        ("%k = arith.constant -3 : i32\n%r = arith.divsi %a, %k : i32", "uint(int(x[gid]) / -3)"),
        ("%s = arith.maxsi %a, %b : i32\n%r = arith.shrsi %s, %b : i32",
         "uint(metal::max(int(x[gid]), int(y_value)) >> y_value)"),
        ("%w = arith.extui %a : i32 to i64\n%r = arith.trunci %w : i64 to i32", "x[gid]"),
    ],
)  # fmt: skip
def test_integers(ops: str, text: str) -> None:
    assert integer_expression(ops) == text


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("0.1 : f32", "0.1f"), ("1.0 : f32", "1.0f"), ("-0.0 : f32", "-0.0f"), ("0x7F800000 : f32", "INFINITY"),
        ("0xFF800000 : f32", "-INFINITY"), ("0x7FC00000 : f32", "NAN"), ("1.0e-45 : f32", "1e-45f"),
        ("0xFFC00001 : f32", "as_type<float>(0xffc00001u)"), ("3.4028235e38 : f32", "3.4028235e+38f"),
        ("16777216.0 : f32", "16777216.0f"), ("0.33333334 : f32", "0.33333334f"),
    ],
)  # fmt: skip
def test_float_constants(literal: str, text: str) -> None:
    found = expression(f"%k = arith.constant {literal}\n%r = math.copysign %k, %a : f32")
    assert found == f"metal::copysign({text}, x[gid])"


def test_constants_keep_their_bits() -> None:
    """All kinds of constants, through the simulator."""
    bits = [0x00000001, 0x80000000, 0x7F7FFFFF, 0xFFC00001, 0x7FC00000, 0x3DCCCCCD, 0x4B800001, 0xFF800000]
    body = "%i = gpu.thread_id x\n" + "\n".join(
        f"%c{i} = arith.constant 0x{b:08X} : f32\n%i{i} = arith.constant {i} : index\n"
        f"%b{i} = arith.bitcast %c{i} : f32 to i32\nmemref.store %b{i}, %o[%i{i}] : memref<8xi32>"
        for i, b in enumerate(bits)
    )
    metal, manifest = emitted(module(kernel(body, "%o: memref<8xi32>", threads="1, 1, 1")))
    out = aligned(np.zeros(8, np.uint32))
    launch(Library(metal), manifest, "k", [out])
    np.testing.assert_array_equal(out, np.array(bits, np.uint32))


def test_half_and_vector_constants() -> None:
    body = """%i = gpu.thread_id x
        %h = arith.constant 0.1 : f16
        %hi = arith.constant 0x7C00 : f16
        %v = vector.load %x[%i] : memref<64xf16>, vector<4xf16>
        %k = arith.constant dense<[1.0, -2.0, 0.5, 65504.0]> : vector<4xf16>
        %s = arith.constant dense<3.0> : vector<4xf16>
        %a = arith.addf %v, %k : vector<4xf16>
        %b = arith.mulf %a, %s : vector<4xf16>
        %f = vector.broadcast %h : f16 to vector<4xf16>
        %c = arith.divf %b, %f : vector<4xf16>
        %g = vector.insert %hi, %c[2] : f16 into vector<4xf16>
        vector.store %g, %x[%i] : memref<64xf16>, vector<4xf16>"""
    assert lines(module(kernel(body, "%x: memref<64xf16>"))) == [
        "half4 sum = *(device const half4*)(x + tid) + half4(1.0h, -2.0h, 0.5h, 65500.0h);",
        "half4 quotient = sum * half4(3.0h) / half4(0.1h);",
        "quotient.z = half(INFINITY);",
        "*(device half4*)(x + tid) = quotient;",
    ]


# Names


def test_names_come_from_locations() -> None:
    body = """%i = gpu.global_id x
        %v = memref.load %x[%i] : memref<64xf32>
        %a = math.floor %v : f32 loc("exp")
        %b = arith.mulf %a, %a : f32 loc("exp")
        %c = arith.mulf %b, %b : f32 loc("float")
        %d = arith.mulf %c, %c : f32 loc("layer 1/out!")
        %e = arith.addf %d, %d : f32 loc("x")
        %f = arith.addf %e, %e : f32 loc("simd_sum")
        %g = arith.addf %f, %f : f32 loc("2d")
        %h = arith.addf %g, %g : f32
        memref.store %h, %o[%i] : memref<64xf32>"""
    assert lines(module(kernel(body))) == [
        "float exp = metal::floor(x[gid]);",
        "float exp_1 = exp * exp;",
        "float float_1 = exp_1 * exp_1;",
        "float layer_1_out = float_1 * float_1;",
        "float x_1 = layer_1_out + layer_1_out;",
        "float simd_sum_1 = x_1 + x_1;",
        "float value_2d = simd_sum_1 + simd_sum_1;",
        "o[gid] = value_2d + value_2d;",
    ]


def test_names_at_program_scope_hide_nothing() -> None:
    function = """func.func private @exp(%x: f32 loc("x")) -> f32 {
        %0 = math.exp %x : f32
        return %0 : f32 }"""
    body = SCALE.replace("arith.mulf %v, %c", "func.call @exp(%v)").replace(") : f32", ") : (f32) -> f32")
    metal = emitted(module(function + kernel(body, name="floor")))[0]
    assert "static inline float exp_1(float x) {\n    return metal::precise::exp(x);\n}" in metal
    assert "kernel void floor_1(" in metal and "o[gid] = exp_1(x[gid]);" in metal


def test_names_are_free_again_after_their_block() -> None:
    loop = """scf.for %j = %c0 to %c4 step %c1 {
        %v = memref.load %x[%j] : memref<64xf32>
        memref.store %v, %o[%j] : memref<64xf32>
    }"""
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 4))
    one = ["for (uint i = 0u; i < 4u; i++) {", "    o[i] = x[i];", "}"]
    assert lines(module(kernel(constants + loop + loop.replace("%j", "%l").replace("%v", "%w")))) == one + one


# Folding


def test_loads_do_not_move_across_stores_and_barriers() -> None:
    body = """%i = gpu.global_id x
        %a = memref.load %x[%i] : memref<64xf32>
        %b = arith.addf %a, %a : f32
        %c = memref.load %o[%i] : memref<64xf32>
        memref.store %b, %o[%i] : memref<64xf32>
        memref.store %c, %o[%i] : memref<64xf32>
        %d = memref.load %x[%i] : memref<64xf32>
        gpu.barrier
        %e = arith.negf %d : f32
        memref.store %e, %o[%i] : memref<64xf32>"""
    assert lines(module(kernel(body))) == [
        "float x_value = x[gid];",
        "float o_value = o[gid];",
        "o[gid] = x_value + x_value;",
        "o[gid] = o_value;",
        "float x_value_1 = x[gid];",
        "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
        "o[gid] = -x_value_1;",
    ]


def test_work_outside_of_a_loop_stays_there() -> None:
    body = """%i = gpu.global_id x
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %a = memref.load %x[%i] : memref<64xf32>
        %b = math.sqrt %a : f32
        %p = memref.load %n[%i] : memref<64xi32>
        %m = arith.index_castui %p : i32 to index
        scf.for %j = %c0 to %m step %c1 {
          memref.store %b, %o[%j] : memref<64xf32>
        }"""
    assert lines(module(kernel(body, "%x: memref<64xf32>, %n: memref<64xi32>, %o: memref<64xf32>"))) == [
        "float sqrt = metal::precise::sqrt(x[gid]);",
        "uint n_value = n[gid];",
        "for (uint i = 0u; i < n_value; i++) {",
        "    o[i] = sqrt;",
        "}",
    ]


def test_lines_stay_short() -> None:
    ops, last = [], "%v"
    for j in range(40):
        ops.append(f"%v{j} = arith.divf {last}, %c : f32\n%w{j} = math.fma %v{j}, %c, %c : f32")
        last = f"%w{j}"
    body = SCALE.replace("%w = arith.mulf %v, %c : f32", "\n".join(ops)).replace("store %w,", f"store {last},")
    metal, manifest = emitted(module(kernel(body)))
    assert max(map(len, metal.splitlines())) <= 104
    x, out = floats(*range(64)), floats(*range(64))
    launch(Library(metal), manifest, "k", [x, out])
    want = x.astype(np.float64)
    for _ in range(40):
        want = (want / 0.5).astype(np.float32).astype(np.float64) * 0.5 + 0.5
    np.testing.assert_allclose(out, want, rtol=1e-6)


def test_unused_work_is_left_out() -> None:
    body = SCALE + "\n%u = memref.load %x[%i] : memref<64xf32>\n%u2 = arith.mulf %u, %c : f32"
    assert lines(module(kernel(body))) == ["o[gid] = x[gid] * 0.5f;"]


# Manifest


MAIN = """func.func @main(%x: memref<64xf32>, %r: memref<64xf32>, %arena: memref<1024xi8>)
    attributes {smelt.results = 1 : i64, smelt.arena_bytes = 1024 : i64,
                smelt.arguments = [["x", "float32", array<i64: 8, 8>]],
                smelt.array_results = [["out", "float32", array<i64: 64>]]} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %t = memref.view %arena[%c256][] : memref<1024xi8> to memref<64xf32>
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<64xf32>, %t : memref<64xf32>)
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%t : memref<64xf32>, %r : memref<64xf32>)
    return
}"""


def test_manifest() -> None:
    extra = ", smelt.bytes_read = 256 : i64, smelt.bytes_written = 128 : i64, smelt.flops = 64 : i64"
    _, manifest = emitted(module(kernel(SCALE, name="twice", extra=extra), MAIN))
    assert manifest.arguments == (ArrayInfo("x", "float32", (8, 8)),)
    assert manifest.results == (ArrayInfo("out", "float32", (64,)),)
    assert manifest.arena_bytes == 1024
    assert manifest.steps == (
        Launch("twice", (BufferSlot("argument", 0), BufferSlot("arena", 0, 256))),
        Launch("twice", (BufferSlot("arena", 0, 256), BufferSlot("result", 0))),
    )
    (info,) = manifest.kernels
    assert info.buffers == (KernelBuffer("x", "float", 64, "read", 0), KernelBuffer("o", "float", 64, "write", 1))
    assert (info.schedule, info.threadgroups, info.threads) == ("map", (1, 1, 1), (64, 1, 1))
    assert (info.bytes_read, info.bytes_written, info.flops, info.threadgroup_bytes) == (256, 128, 64, 0)
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_a_buffer_that_is_read_and_written() -> None:
    metal, manifest = emitted(module(kernel(SCALE.replace("%w, %o", "%w, %x"))))
    assert "device float* x [[buffer(0)]]" in metal and "device const float* o [[buffer(1)]]" in metal
    assert [b.access for b in manifest.kernels[0].buffers] == ["read_write", "read"]


# What is refused


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%c = arith.constant 0 : index\n%v = memref.load %x[%c] : memref<64xf32>\n%w = math.erf %v : f32\n"
         "memref.store %w, %o[%c] : memref<64xf32>", "math.erf is not in the vocabulary"),
        ("%c = arith.constant 0 : index\n%v = arith.constant 0.0 : f64\n%w = arith.truncf %v : f64 to f32\n"
         "memref.store %w, %o[%c] : memref<64xf32>", "no type for f64"),
        ('%c = arith.constant 0 : index\n%v = memref.load %x[%c] : memref<64xf32>\n'
         '%w = arith.constant 8 : i32\n%s, %p = gpu.shuffle xor %v, %w, %w : f32\n'
         "memref.store %s, %o[%c] : memref<64xf32>", "part of a simdgroup"),
    ],
)  # fmt: skip
def test_what_lies_outside_the_vocabulary(body: str, message: str) -> None:
    with pytest.raises(EmitError, match=message):
        emitted(module(kernel(body)))


def test_too_many_buffers() -> None:
    arguments = ", ".join(f"%b{i}: memref<4xf32>" for i in range(32))
    with pytest.raises(EmitError, match="32 buffers; Metal binds 31"):
        emitted(module(kernel("", arguments)))


def test_the_work_of_emission_grows_with_the_text() -> None:
    calls: list[int] = []

    def count(frame: object, event: str, argument: object) -> None:
        calls[-1] += event == "call"

    for n in (200, 400):
        ops = "\n".join(f"%v{i + 1} = arith.mulf %v{i}, %v{i} : f32" for i in range(n))
        body = SCALE.replace("%v =", "%v0 =").replace("%w = arith.mulf %v, %c : f32", ops).replace("%w,", f"%v{n},")
        with mlir.lock, context():
            parsed = mlir.ir.Module.parse(module(kernel(body)))
            emit(parsed)
            calls.append(0)
            sys.setprofile(count)
            try:
                emit(parsed)
            finally:
                sys.setprofile(None)
    assert calls[1] < 2.2 * calls[0] and calls[0] < 30_000, calls


def test_every_reader_knows_the_precise_functions() -> None:
    """The strict check, the simulator and, where it is installed, NVIDIA's compiler."""
    names = sorted(name for name in arith._CALLS.values() if name.startswith("precise::"))
    assert len(names) > 20
    two = ("precise::atan2", "precise::pow")
    calls = [f"y[{i}] = metal::{n}(x[{i}]{', x[0]' * (n in two)});" for i, n in enumerate(names)]
    arguments = "device const float* x [[buffer(0)]], device float* y [[buffer(1)]]"
    text = f"#include <metal_stdlib>\nusing namespace metal;\nkernel void f({arguments}) {{ {' '.join(calls)} }}\n"
    assert check(text) == []
    x = np.linspace(0.1, 0.9, 32, dtype=np.float32)
    y = np.zeros_like(x)
    buffers = {i: (a.ctypes.data, a.nbytes) for i, a in enumerate((x, y))}
    Library(text).launch("f", buffers, (1, 1, 1), (1, 1, 1))
    at = names.index("precise::sqrt")
    assert y[at] == np.sqrt(x[at]) and np.count_nonzero(y) >= len(names) - 1
    source, _ = cuda_source(text)
    try:
        assert compile_cubin(source)
    except DeviceError as error:
        if "not found" not in str(error):
            raise
