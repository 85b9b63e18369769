"""What lanes and threads do together: exchanges, reductions, barriers, atomics, matrices. Checked and run."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.backends.metal.emit.types import EmitError
from smelt.backends.metal.simulator import Library

from .emit_kernels import STORED, aligned, emitted, kernel, launch, lines, module

INTEGERS = ("i8", "i16", "i32", "i64")


def _values(element: str, n: int = 64) -> np.ndarray:
    rng = np.random.default_rng(7)
    if element in ("f32", "f16"):
        return (rng.integers(-8, 9, n) / 4).astype(STORED[element])
    return rng.integers(0, 2 if element == "i1" else 256, n).astype(STORED[element])


def _exchange(name: str, element: str, op: str) -> str:
    """A kernel of 64 threads: out[i] = op(x[i]), where op makes %r of %x."""
    held = element
    stored = "i8" if element == "i1" else element
    body = [f"%i = gpu.thread_id x\n%w = arith.constant 32 : i32\n%raw = memref.load %in[%i] : memref<64x{stored}>"]
    if element == "i1":
        body.append("%zero = arith.constant 0 : i8\n%x = arith.cmpi ne, %raw, %zero : i8")
        op += "\n%s = arith.extui %r : i1 to i8"
    else:
        op = op.replace("%x", "%raw").replace("%r ", "%s ").replace("%r,", "%s,")
    body.append(op.replace("TYPE", held))
    body.append(f"memref.store %s, %out[%i] : memref<64x{stored}>")
    return kernel("\n".join(body), f"%in: memref<64x{stored}>, %out: memref<64x{stored}>", name)


def _run(cases: dict[str, tuple[str, str]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Operand and result of each kernel, by name."""
    metal, manifest = emitted(module("\n".join(_exchange(n, t, op) for n, (t, op) in cases.items())))
    library = Library(metal)
    found = {}
    for name, (element, _) in cases.items():
        x = aligned(_values(element))
        out = aligned(np.zeros(64, STORED[element]))
        launch(library, manifest, name, [x, out])
        found[name] = x, out
    return found


def test_shuffles() -> None:
    lane = np.arange(64)
    sources = {
        "xor": ("5", lane ^ 5), "up": ("3", np.where(lane % 32 >= 3, lane - 3, lane)),
        "down": ("4", np.where(lane % 32 < 28, lane + 4, lane)), "idx": ("9", lane // 32 * 32 + 9),
    }  # fmt: skip
    cases = {
        f"{mode}_{t}": (t, f"%d = arith.constant {distance} : i32\n%r, %ok = gpu.shuffle {mode} %x, %d, %w : TYPE")
        for mode, (distance, _) in sources.items()
        for t in ("f32", "f16", "bf16", "i1", *INTEGERS)
    }
    for name, (x, out) in _run(cases).items():
        mode = name.split("_")[0]
        valid = slice(None) if mode in ("xor", "idx") else sources[mode][1] != lane
        np.testing.assert_array_equal(out[valid], x[sources[mode][1]][valid], name)


def test_shuffle_says_what_is_valid() -> None:
    body = """%i = gpu.thread_id x
        %w = arith.constant 32 : i32
        %d = arith.constant 3 : i32
        %x = arith.index_cast %i : index to i32
        %v, %ok = gpu.shuffle up %x, %d, %w : i32
        %zero = arith.constant 0 : i32
        %r = arith.select %ok, %v, %zero : i32
        memref.store %r, %o[%i] : memref<64xi32>"""
    metal, manifest = emitted(module(kernel(body, "%o: memref<64xi32>")))
    out = aligned(np.zeros(64, np.uint32))
    launch(Library(metal), manifest, "k", [out])
    lane = np.arange(64)
    np.testing.assert_array_equal(out, np.where(lane % 32 >= 3, lane - 3, 0))


def test_reductions() -> None:
    signed = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
    cases, oracles = {}, {}

    def add(element: str, op: str, oracle) -> None:
        name = f"{op}_{element}"
        cases[name] = element, f"%r = gpu.subgroup_reduce {op} %x : (TYPE) -> TYPE"
        oracles[name] = oracle

    for t in INTEGERS:
        u, s = STORED[t], signed[t]
        add(t, "add", lambda x, u=u: x.sum(dtype=u))
        add(t, "mul", lambda x, u=u: x.prod(dtype=u))
        add(t, "maxui", np.max)
        add(t, "minui", np.min)
        add(t, "maxsi", lambda x, u=u, s=s: x.view(s).max().astype(u))
        add(t, "minsi", lambda x, u=u, s=s: x.view(s).min().astype(u))
        add(t, "and", np.bitwise_and.reduce)
        add(t, "or", np.bitwise_or.reduce)
        add(t, "xor", np.bitwise_xor.reduce)
    for t in ("f32", "f16"):
        add(t, "add", lambda x: x.sum(dtype=x.dtype))
        add(t, "maxnumf", np.max)
        add(t, "minnumf", np.min)
        add(t, "maximumf", np.max)
        add(t, "minimumf", np.min)
    add("i1", "and", np.min)
    add("i1", "or", np.max)
    add("i1", "xor", np.bitwise_xor.reduce)
    for name, (x, out) in _run(cases).items():
        want = np.repeat([oracles[name](x[:32]), oracles[name](x[32:])], 32)
        np.testing.assert_array_equal(out, want, name)


def test_reductions_see_nan() -> None:
    metal, manifest = emitted(module("\n".join(
        _exchange(op, "f32", f"%r = gpu.subgroup_reduce {op} %x : (f32) -> f32")
        for op in ("maximumf", "minimumf")
    )))  # fmt: skip
    x, out = aligned(np.ones(64, np.float32)), aligned(np.zeros(64, np.float32))
    x[40] = np.nan
    for name in ("maximumf", "minimumf"):
        launch(Library(metal), manifest, name, [x, out])
        assert (out[:32] == 1).all() and np.isnan(out[32:]).all()


def test_threadgroup_memory_and_barriers() -> None:
    body = """%i = gpu.thread_id x
        %g = gpu.block_id x
        %n = arith.constant 64 : index
        %at = arith.muli %g, %n : index
        %there = arith.addi %at, %i : index
        %v = memref.load %x[%there] : memref<128xf32>
        memref.store %v, %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
        gpu.barrier memfence [#gpu.address_space<workgroup>]
        %last = arith.constant 63 : index
        %j = arith.subi %last, %i : index
        %w = memref.load %s[%j] : memref<64xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        memref.store %w, %o[%there] : memref<128xf32>"""
    local = 'workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>> loc("tile"))'
    text = module(kernel(body, "%x: memref<128xf32>, %o: memref<128xf32>", groups="2, 1, 1", local=local))
    metal, manifest = emitted(text)
    assert manifest.kernels[0].threadgroup_bytes == 256
    x, out = aligned(np.arange(128, dtype=np.float32)), aligned(np.zeros(128, np.float32))
    launch(Library(metal), manifest, "k", [x, out])
    np.testing.assert_array_equal(out, x.reshape(2, 64)[:, ::-1].reshape(-1))
    assert lines(text) == [
        "threadgroup float tile[64];",
        "uint at = group * 64u + tid;",
        "tile[tid] = x[at];",
        "threadgroup_barrier(mem_flags::mem_threadgroup);",
        "float tile_value = tile[63u - tid];",
        "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
        "o[at] = tile_value;",
    ]


def test_atomics() -> None:
    ops = {
        "addi": np.add, "maxs": np.maximum, "mins": np.minimum, "maxu": np.maximum, "minu": np.minimum,
        "ori": np.bitwise_or, "andi": np.bitwise_and,
    }  # fmt: skip
    kernels = []
    for op in (*ops, "addf"):
        t = "f32" if op == "addf" else "i32"
        body = f"""%i = gpu.thread_id x
            %eight = arith.constant 8 : index
            %at = arith.remui %i, %eight : index
            %v = memref.load %x[%i] : memref<64x{t}>
            %old = memref.atomic_rmw {op} %v, %o[%at] : ({t}, memref<8x{t}>) -> {t}"""
        kernels.append(kernel(body, f"%x: memref<64x{t}>, %o: memref<8x{t}>", op))
    metal, manifest = emitted(module("\n".join(kernels)))
    library = Library(metal)
    assert manifest.kernel("addi").buffers[1].access == "read_write"
    x = np.random.default_rng(3).integers(-1000, 1000, 64).astype(np.int32)
    for op, oracle in ops.items():
        out = aligned(np.full(8, 17, np.int32))
        launch(library, manifest, op, [aligned(x), out])
        kind = np.uint32 if op.endswith("u") else np.int32
        want = oracle(oracle.reduce(x.view(kind).reshape(8, 8), axis=0), np.array(17, kind))
        np.testing.assert_array_equal(out.view(kind), want, op)
    out = aligned(np.ones(8, np.float32))
    launch(library, manifest, "addf", [aligned(x.astype(np.float32)), out])
    np.testing.assert_array_equal(out, x.reshape(8, 8).sum(0) + 1)


def test_an_atomic_gives_the_old_value() -> None:
    body = """%i = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %old = memref.atomic_rmw addi %one, %n[%c0] : (i32, memref<1xi32>) -> i32 loc("ticket")
        %at = arith.index_castui %old : i32 to index
        %v = arith.index_castui %i : index to i32
        memref.store %v, %o[%at] : memref<64xi32>"""
    text = module(kernel(body, "%n: memref<1xi32>, %o: memref<64xi32>"))
    assert lines(text) == [
        "uint ticket = metal::atomic_fetch_add_explicit((device atomic_uint*)n, 1u, memory_order_relaxed);",
        "o[ticket] = tid;",
    ]
    metal, manifest = emitted(text)
    count, out = aligned(np.zeros(1, np.uint32)), aligned(np.zeros(64, np.uint32))
    launch(Library(metal), manifest, "k", [count, out])
    assert count[0] == 64
    np.testing.assert_array_equal(np.sort(out), np.arange(64))


def test_atomics_that_metal_lacks_are_refused() -> None:
    shared = 'workgroup(%s : memref<8xf32, #gpu.address_space<workgroup>>)'
    body = """%c0 = arith.constant 0 : index
        %v = memref.load %x[%c0] : memref<64xf32>
        %old = memref.atomic_rmw addf %v, %s[%c0] : (f32, memref<8xf32, #gpu.address_space<workgroup>>) -> f32"""
    with pytest.raises(EmitError, match="device memory only"):
        emitted(module(kernel(body, local=shared)))
    body = """%c0 = arith.constant 0 : index
        %v = memref.load %x[%c0] : memref<64xf32>
        %old = memref.atomic_rmw maximumf %v, %o[%c0] : (f32, memref<64xf32>) -> f32"""
    with pytest.raises(EmitError, match="atomic maximumf on float"):
        emitted(module(kernel(body)))


MATRIX = '!gpu.mma_matrix<8x8xf32, "{}Op">'
A, B, C = (MATRIX.format(x) for x in "ABC")


def test_matrices() -> None:
    """c = a b of 8×24 and 24×8, the right one transposed in memory; the sum stays in one variable."""
    body = f"""%c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c24 = arith.constant 24 : index
        %zero = arith.constant 0.0 : f32
        %start = gpu.subgroup_mma_constant_matrix %zero : {C}
        %sum = scf.for %k = %c0 to %c24 step %c8 iter_args(%acc = %start) -> ({C}) {{
          %a = gpu.subgroup_mma_load_matrix %x[%k] {{leadDimension = 24 : index}} : memref<192xf32> -> {A} loc("left")
          %b = gpu.subgroup_mma_load_matrix %y[%k] {{leadDimension = 24 : index, transpose}}
              : memref<192xf32> -> {B} loc("right")
          %d = gpu.subgroup_mma_compute %a, %b, %acc : {A}, {B} -> {C}
          scf.yield %d : {C}
        }}
        gpu.subgroup_mma_store_matrix %sum, %o[%c0] {{leadDimension = 8 : index}} : {C}, memref<64xf32>"""
    text = module(kernel(body, "%x: memref<192xf32>, %y: memref<192xf32>, %o: memref<64xf32>", threads="32, 1, 1"))
    assert lines(text) == [
        "simdgroup_float8x8 acc = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);",
        "for (uint i = 0u; i < 24u; i += 8u) {",
        "    simdgroup_float8x8 left;",
        "    simdgroup_load(left, x + i, 24);",
        "    simdgroup_float8x8 right;",
        "    simdgroup_load(right, y + i, 24, ulong2(0), true);",
        "    simdgroup_multiply_accumulate(acc, left, right, acc);",
        "}",
        "simdgroup_store(acc, o, 8);",
    ]
    metal, manifest = emitted(text)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (8, 24)).astype(np.float32) for _ in range(2))
    out = aligned(np.zeros((8, 8), np.float32))
    launch(Library(metal), manifest, "k", [aligned(a), aligned(b), out])
    np.testing.assert_array_equal(out, a @ b.T)


def test_a_matrix_that_is_needed_later_is_not_overwritten() -> None:
    body = f"""%c0 = arith.constant 0 : index
        %a = gpu.subgroup_mma_load_matrix %x[%c0] {{leadDimension = 8 : index}} : memref<64xf32> -> {A}
        %b = gpu.subgroup_mma_load_matrix %x[%c0] {{leadDimension = 8 : index}} : memref<64xf32> -> {B}
        %c = gpu.subgroup_mma_load_matrix %x[%c0] {{leadDimension = 8 : index}} : memref<64xf32> -> {C}
        %d = gpu.subgroup_mma_compute %a, %b, %c : {A}, {B} -> {C}
        %e = gpu.subgroup_mma_compute %a, %b, %c : {A}, {B} -> {C}
        gpu.subgroup_mma_store_matrix %d, %o[%c0] {{leadDimension = 8 : index}} : {C}, memref<64xf32>
        gpu.subgroup_mma_store_matrix %e, %p[%c0] {{leadDimension = 8 : index}} : {C}, memref<64xf32>"""
    text = module(kernel(body, "%x: memref<64xf32>, %o: memref<64xf32>, %p: memref<64xf32>", threads="32, 1, 1"))
    metal, manifest = emitted(text)
    a = np.random.default_rng(0).integers(-4, 5, (8, 8)).astype(np.float32)
    o, p = aligned(np.zeros((8, 8), np.float32)), aligned(np.zeros((8, 8), np.float32))
    launch(Library(metal), manifest, "k", [aligned(a), o, p])
    np.testing.assert_array_equal(o, a @ a + a)
    np.testing.assert_array_equal(p, a @ a + a)


def test_positions() -> None:
    body = """%t = gpu.thread_id x
        %u = gpu.thread_id y
        %g = gpu.block_id z
        %one = gpu.block_id y
        %n = gpu.block_dim x
        %a = arith.muli %u, %n : index
        %b = arith.addi %a, %t : index
        %size = arith.constant 64 : index
        %c = arith.muli %g, %size : index
        %d = arith.addi %b, %c : index
        %e = arith.addi %d, %one : index
        %v = arith.index_cast %e : index to i32
        memref.store %v, %o[%e] : memref<192xi32>"""
    text = module(kernel(body, "%o: memref<192xi32>", threads="16, 4, 1", groups="1, 1, 3"))
    metal, manifest = emitted(text)
    assert "uint3 tid [[thread_position_in_threadgroup]]" in metal
    assert lines(text) == ["uint at = tid.y * 16u + tid.x + group.z * 64u;", "o[at] = at;"]
    out = aligned(np.zeros(192, np.uint32))
    launch(Library(metal), manifest, "k", [out])
    np.testing.assert_array_equal(out, np.arange(192))


def test_lanes_and_simdgroups() -> None:
    body = """%l = gpu.lane_id
        %s = gpu.subgroup_id : index
        %n = gpu.subgroup_size : index
        %a = arith.muli %s, %n : index
        %b = arith.addi %a, %l : index
        %v = arith.index_cast %b : index to i32
        memref.store %v, %o[%b] : memref<64xi32>"""
    text = module(kernel(body, "%o: memref<64xi32>"))
    assert lines(text) == ["uint at = simdgroup * 32u + lane;", "o[at] = at;"]
    one = module(kernel(body, "%o: memref<64xi32>", threads="32, 1, 1"))
    assert lines(one) == ["o[lane] = lane;"]
