"""Loops, conditions, calls, vectors, complex numbers, wide indices: text and values."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.backends.metal.simulator import Library

from .emit_kernels import aligned, emitted, kernel, launch, lines, module

CONSTANTS = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 4, 8, 64))
START = CONSTANTS + "%i = gpu.global_id x\n%zero = arith.constant 0.0 : f32\n%one = arith.constant 1.0 : f32\n"


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays after a launch of @k."""
    metal, manifest = emitted(text)
    found = [aligned(a) for a in arrays]
    launch(Library(metal), manifest, "k", found)
    return found


def test_sums_in_nested_loops_share_a_variable() -> None:
    body = START + """%s = scf.for %j = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
          %t = scf.for %l = %c0 to %c8 step %c1 iter_args(%b = %a) -> (f32) {
            %m = arith.muli %j, %c8 : index
            %n = arith.addi %m, %l : index
            %v = memref.load %x[%n] : memref<64xf32>
            %w = arith.addf %b, %v : f32
            scf.yield %w : f32
          } {smelt.unroll}
          scf.yield %t : f32
        }
        memref.store %s, %o[%i] : memref<64xf32>"""
    text = module(kernel(body))
    assert lines(text) == [
        "float sum = 0.0f;",
        "for (uint i = 0u; i < 8u; i++) {",
        "    #pragma unroll",
        "    for (uint j = 0u; j < 8u; j++) {",
        "        sum += x[i * 8u + j];",
        "    }",
        "}",
        "o[gid] = sum;",
    ]
    x = np.arange(64, dtype=np.float32)
    assert (run(text, x, x)[1] == x.sum()).all()


def test_carried_values_change_at_once() -> None:
    """Fibonacci numbers, and a rotation of three."""
    body = START + """%n = arith.constant 1 : i32
        %z = arith.constant 0 : i32
        %f:2 = scf.for %j = %c0 to %i step %c1 iter_args(%a = %z, %b = %n) -> (i32, i32) {
          %c = arith.addi %a, %b : i32
          scf.yield %b, %c : i32, i32
        }
        %t = arith.constant 2 : i32
        %r:3 = scf.for %j = %c0 to %i step %c1 iter_args(%a = %z, %b = %n, %c = %t) -> (i32, i32, i32) {
          scf.yield %b, %c, %a : i32, i32, i32
        }
        %h = arith.constant 100 : i32
        %ten = arith.constant 10 : i32
        %u = arith.muli %r#0, %h : i32
        %v = arith.muli %r#1, %ten : i32
        %w = arith.addi %u, %v : i32
        %s = arith.addi %w, %r#2 : i32
        memref.store %f#0, %o[%i] : memref<20xi32>
        memref.store %s, %p[%i] : memref<20xi32>"""
    text = module(kernel(body, "%o: memref<20xi32>, %p: memref<20xi32>", threads="20, 1, 1"))
    zeros = np.zeros(20, np.uint32)
    fibonacci, rotated = run(text, zeros, zeros)
    a, b = 0, 1
    for i in range(20):
        assert fibonacci[i] == a
        a, b = b, a + b
        assert f"{rotated[i]:03}" == ("012" * 2)[i % 3 : i % 3 + 3]


def test_a_carried_value_that_is_still_read_is_copied() -> None:
    body = START + """%s = scf.for %j = %c0 to %c8 step %c1 iter_args(%a = %one) -> (f32) {
          %t = scf.for %l = %c0 to %c2 step %c1 iter_args(%b = %a) -> (f32) {
            %w = arith.addf %b, %b : f32
            scf.yield %w : f32
          }
          %d = arith.subf %t, %a : f32
          scf.yield %d : f32
        }
        memref.store %s, %o[%i] : memref<64xf32>"""
    x = np.zeros(64, np.float32)
    assert (run(module(kernel(body)), x, x)[1] == 3.0**8).all()


def test_a_loop_goes_on_with_the_result_of_another() -> None:
    body = START + """%s = scf.for %j = %c0 to %c4 step %c1 iter_args(%a = %zero) -> (f32) {
          %v = memref.load %x[%j] : memref<64xf32>
          %w = arith.addf %a, %v : f32
          scf.yield %w : f32
        }
        %t = scf.for %j = %c4 to %c64 step %c2 iter_args(%a = %s) -> (f32) {
          %v = memref.load %x[%j] : memref<64xf32>
          %w = arith.addf %v, %a : f32
          scf.yield %w : f32
        }
        memref.store %t, %o[%i] : memref<64xf32>"""
    text = module(kernel(body))
    assert lines(text).count("    sum += x[i];") == 2 and lines(text)[-1] == "o[gid] = sum;"
    x = np.arange(64, dtype=np.float32)
    assert (run(text, x, x)[1] == x[:4].sum() + x[4::2].sum()).all()


def test_conditions() -> None:
    body = START + """%v = memref.load %x[%i] : memref<64xf32>
        %p = arith.cmpf olt, %v, %zero : f32
        %r:2 = scf.if %p -> (f32, f32) {
          %n = arith.negf %v : f32
          scf.yield %n, %one : f32, f32
        } else {
          %q = arith.cmpf ogt, %v, %one : f32
          %u:2 = scf.if %q -> (f32, f32) {
            %w = math.sqrt %v : f32
            scf.yield %w, %v : f32, f32
          } else {
            scf.yield %v, %zero : f32, f32
          }
          scf.yield %u#0, %u#1 : f32, f32
        }
        %s = arith.addf %r#0, %r#1 : f32
        memref.store %s, %o[%i] : memref<64xf32>"""
    text = module(kernel(body))
    assert lines(text) == [
        "float x_value = x[gid];",
        "float chosen;",
        "float chosen_1;",
        "if (x_value < 0.0f) {",
        "    chosen = -x_value;",
        "    chosen_1 = 1.0f;",
        "} else if (x_value > 1.0f) {",
        "    chosen = metal::precise::sqrt(x_value);",
        "    chosen_1 = x_value;",
        "} else {",
        "    chosen = x_value;",
        "    chosen_1 = 0.0f;",
        "}",
        "o[gid] = chosen + chosen_1;",
    ]


def test_a_condition_changes_what_a_loop_carries() -> None:
    body = START + """%s = scf.for %j = %c0 to %c64 step %c1 iter_args(%a = %zero) -> (f32) {
          %v = memref.load %x[%j] : memref<64xf32>
          %p = arith.cmpf ogt, %v, %zero : f32
          %t = scf.if %p -> (f32) {
            %w = arith.addf %a, %v : f32
            scf.yield %w : f32
          } else {
            scf.yield %a : f32
          }
          scf.yield %t : f32
        }
        memref.store %s, %o[%i] : memref<64xf32>"""
    text = module(kernel(body))
    assert lines(text)[1:-1] == [
        "for (uint i = 0u; i < 64u; i++) {",
        "    float x_value = x[i];",
        "    if (x_value > 0.0f) {",
        "        sum += x_value;",
        "    }",
        "}",
    ]
    x = np.arange(-32, 32).astype(np.float32)
    assert (run(text, x, x)[1] == np.maximum(x, 0).sum()).all()


def test_inner_conditions_do_not_assign_what_is_read_after_them() -> None:
    """The inner result goes to the variable of the outer condition, unless that is still read."""
    body = START + """%s = scf.for %j = %c0 to %c4 step %c1 iter_args(%a = %one) -> (f32) {
          %v = memref.load %x[%i] : memref<64xf32>
          %p = arith.cmpf ogt, %v, %zero : f32
          %t = scf.if %p -> (f32) {
            %q = arith.cmpf ogt, %v, %one : f32
            %u = scf.if %q -> (f32) {
              %k = arith.addf %a, %v : f32
              scf.yield %k : f32
            } else {
              scf.yield %v : f32
            }
            memref.store %a, %o[%i] : memref<64xf32>
            scf.yield %u : f32
          } else {
            scf.yield %a : f32
          }
          scf.yield %t : f32
        }
        %old = memref.load %o[%i] : memref<64xf32>
        %both = arith.addf %old, %s : f32
        memref.store %both, %o[%i] : memref<64xf32>"""
    x = np.linspace(-2, 4, 64).astype(np.float32)
    found = run(module(kernel(body)), x, np.zeros(64, np.float32))[1]
    want = []
    for v in x:
        a, stored = np.float32(1), np.float32(0)
        for _ in range(4):
            stored = a if v > 0 else stored
            a = (a + v if v > 1 else v) if v > 0 else a
        want.append(stored + a)
    np.testing.assert_array_equal(found, np.array(want, np.float32))


def test_an_empty_branch() -> None:
    body = START + """%p = arith.cmpi ult, %i, %c8 : index
        scf.if %p {
        } else {
          memref.store %one, %o[%i] : memref<64xf32>
        }"""
    assert lines(module(kernel(body))) == ["if (!(gid < 8u)) {", "    o[gid] = 1.0f;", "}"]


def test_while() -> None:
    """A binary search: the condition is an expression; and a loop whose condition needs statements."""
    search = START + """%v = arith.muli %i, %c2 : index
        %r:2 = scf.while (%lo = %c0, %hi = %c64) : (index, index) -> (index, index) {
          %more = arith.cmpi ult, %lo, %hi : index
          scf.condition(%more) %lo, %hi : index, index
        } do {
        ^bb0(%lo: index loc("low"), %hi: index loc("high")):
          %sum = arith.addi %lo, %hi : index
          %mid = arith.divui %sum, %c2 : index
          %w = memref.load %x[%mid] : memref<64xi32>
          %at = arith.index_castui %w : i32 to index
          %less = arith.cmpi ult, %at, %v : index
          %next = arith.addi %mid, %c1 : index
          %a = arith.select %less, %next, %lo : index
          %b = arith.select %less, %hi, %mid : index
          scf.yield %a, %b : index, index
        }
        %f = arith.index_castui %r#0 : index to i32
        memref.store %f, %o[%i] : memref<64xi32>"""
    text = module(kernel(search, "%x: memref<64xi32>, %o: memref<64xi32>"))
    assert "while (low < high) {" in lines(text)
    x = np.sort(np.random.default_rng(0).integers(0, 128, 64)).astype(np.uint32)
    np.testing.assert_array_equal(run(text, x, x)[1], np.searchsorted(x, 2 * np.arange(64)))

    collatz = START + """%n = arith.index_cast %i : index to i32
        %k1 = arith.constant 1 : i32
        %k3 = arith.constant 3 : i32
        %k0 = arith.constant 0 : i32
        %start = arith.addi %n, %k1 : i32
        %r:2 = scf.while (%a = %start, %steps = %k0) : (i32, i32) -> (i32, i32) {
          %more = arith.cmpi ne, %a, %k1 : i32
          %next = arith.addi %steps, %k1 : i32
          scf.condition(%more) %a, %next : i32, i32
        } do {
        ^bb0(%a: i32, %steps: i32):
          %bit = arith.andi %a, %k1 : i32
          %odd = arith.cmpi ne, %bit, %k0 : i32
          %half = arith.shrui %a, %k1 : i32
          %three = arith.muli %a, %k3 : i32
          %up = arith.addi %three, %k1 : i32
          %to = arith.select %odd, %up, %half : i32
          scf.yield %to, %steps : i32, i32
        }
        memref.store %r#1, %o[%i] : memref<64xi32>"""
    found = run(module(kernel(collatz, "%o: memref<64xi32>")), np.zeros(64, np.uint32))[0]
    for i, steps in enumerate(found):
        n, count = i + 1, 1
        while n != 1:
            n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
        assert steps == count


def test_functions_stand_before_their_callers() -> None:
    functions = """func.func private @outer(%x: f32 loc("x"), %v: vector<2xf32> loc("v")) -> vector<2xf32> {
          %a = func.call @inner(%x) : (f32) -> f32
          %b = vector.broadcast %a : f32 to vector<2xf32>
          %c = arith.addf %v, %b : vector<2xf32>
          return %c : vector<2xf32> }
        func.func private @unused(%x: f32) -> f32 { return %x : f32 }
        func.func private @inner(%x: f32 loc("x")) -> f32 {
          %a = arith.mulf %x, %x : f32
          return %a : f32 }"""
    body = START + """%at = arith.muli %i, %c2 : index
        %v = vector.load %x[%at] : memref<64xf32>, vector<2xf32>
        %w = func.call @outer(%one, %v) : (f32, vector<2xf32>) -> vector<2xf32>
        vector.store %w, %o[%at] : memref<64xf32>, vector<2xf32>"""
    text = module(functions + kernel(body, threads="32, 1, 1"))
    metal = emitted(text)[0]
    assert metal.index("float inner(") < metal.index("float2 outer(") and "unused" not in metal
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run(text, x, x)[1], x + 1)


def test_components_of_vectors() -> None:
    body = START + """%at = arith.muli %i, %c4 : index
        %v = vector.load %x[%at] : memref<64xf32>, vector<4xf32>
        %a = vector.extract %v[0] : f32 from vector<4xf32>
        %k = arith.remui %i, %c4 : index
        %b = vector.extract %v[%k] : f32 from vector<4xf32>
        %s = arith.addf %a, %b : f32
        %w = vector.insert %s, %v[3] : f32 into vector<4xf32>
        %y = vector.insert %one, %w[%k] : f32 into vector<4xf32>
        %z = vector.from_elements %a, %s : vector<2xf32>
        %zz = vector.extract %z[1] : f32 from vector<2xf32>
        %u = vector.insert %zz, %y[1] : f32 into vector<4xf32>
        vector.store %u, %o[%at] : memref<64xf32>, vector<4xf32>"""
    x = np.arange(64, dtype=np.float32)
    found = run(module(kernel(body, threads="16, 1, 1")), x, x)[1]
    want = x.reshape(16, 4).copy()
    for i, row in enumerate(want):
        s = row[0] + row[i % 4]
        row[3] = s
        row[i % 4] = 1
        row[1] = s
    np.testing.assert_array_equal(found, want.reshape(-1))


def test_three_lanes_and_arrays_of_a_thread() -> None:
    body = START + """%at = arith.constant 3 : index
        %p = memref.alloca() : memref<8xf32, #gpu.address_space<private>>
        %j = arith.muli %i, %at : index
        %v = vector.load %x[%j] : memref<48xf32>, vector<3xf32>
        vector.store %v, %p[%c4] : memref<8xf32, #gpu.address_space<private>>, vector<3xf32>
        %w = vector.load %p[%c4] : memref<8xf32, #gpu.address_space<private>>, vector<3xf32>
        %y = arith.addf %w, %v : vector<3xf32>
        vector.store %y, %o[%j] : memref<48xf32>, vector<3xf32>"""
    text = module(kernel(body, "%x: memref<48xf32>, %o: memref<48xf32>", threads="16, 1, 1"))
    x = np.arange(48, dtype=np.float32)
    np.testing.assert_array_equal(run(text, x, x)[1], 2 * x)


@pytest.mark.parametrize(("element", "width"), [("bf16", 8), ("i8", 16), ("f16", 8), ("i16", 8)])
def test_sixteen_bytes_of_small_elements(element: str, width: int) -> None:
    zero = "0.0" if "f" in element else "0"
    body = START + f"""%w = arith.constant {width} : index
        %at = arith.muli %i, %w : index
        %v = vector.load %x[%at] : memref<64x{element}>, vector<{width}x{element}>
        %empty = arith.constant dense<{zero}> : vector<{width}x{element}>
        %last = arith.constant {width - 1} : index
        %r = scf.for %j = %c0 to %w step %c1 iter_args(%a = %empty) -> (vector<{width}x{element}>) {{
          %k = arith.subi %last, %j : index
          %e = vector.extract %v[%k] : {element} from vector<{width}x{element}>
          %b = vector.insert %e, %a[%j] : {element} into vector<{width}x{element}>
          scf.yield %b : vector<{width}x{element}>
        }} {{smelt.unroll}}
        vector.store %r, %o[%at] : memref<64x{element}>, vector<{width}x{element}>"""
    arguments = f"%x: memref<64x{element}>, %o: memref<64x{element}>"
    text = module(kernel(body, arguments, threads=f"{64 // width}, 1, 1"))
    x = np.arange(64).astype(np.uint8 if width == 16 else np.uint16)
    np.testing.assert_array_equal(run(text, x, x)[1], x.reshape(-1, width)[:, ::-1].reshape(-1))


def test_complex_numbers() -> None:
    ops = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    }  # fmt: skip
    kernels = []
    for name in ops:
        body = START + f"""%a = memref.load %x[%i] : memref<36xcomplex<f32>>
            %b = memref.load %y[%i] : memref<36xcomplex<f32>>
            %c = complex.{name} %a, %b : complex<f32>
            memref.store %c, %o[%i] : memref<36xcomplex<f32>>"""
        arguments = ", ".join(f"%{c}: memref<36xcomplex<f32>>" for c in "xyo")
        kernels.append(kernel(body, arguments, name, "36, 1, 1"))
    metal, manifest = emitted(module("\n".join(kernels)))
    library = Library(metal)
    values = np.array([1 + 2j, -3.5, 2j, 0.25 - 4j, 1e3 + 1e-3j, -1 - 1j], np.complex64)
    x, y = aligned(np.repeat(values, 6)), aligned(np.tile(values, 6))
    for name, oracle in ops.items():
        out = aligned(np.zeros(36, np.complex64))
        launch(library, manifest, name, [x, y, out])
        np.testing.assert_allclose(out, oracle(x, y), rtol=3e-7, err_msg=name)


def test_parts_of_complex_numbers() -> None:
    body = START + """%a = memref.load %x[%i] : memref<64xcomplex<f32>>
        %r = complex.re %a : complex<f32>
        %m = complex.im %a : complex<f32>
        %k = complex.constant [0.5 : f32, -1.0 : f32] : complex<f32>
        %s = complex.create %m, %r : complex<f32>
        %n = complex.neg %s : complex<f32>
        %e = complex.eq %n, %k : complex<f32>
        %t = arith.select %e, %k, %n : complex<f32>
        memref.store %t, %o[%i] : memref<64xcomplex<f32>>"""
    text = module(kernel(body, "%x: memref<64xcomplex<f32>>, %o: memref<64xcomplex<f32>>"))
    assert lines(text) == [
        "float2 x_value = x[gid];",
        "float2 negative = -float2(x_value.y, x_value.x);",
        "o[gid] = negative.x == 0.5f && negative.y == -1.0f ? float2(0.5f, -1.0f) : negative;",
    ]


def test_constant_arrays() -> None:
    constants = """memref.global "private" constant @table : memref<4xi32> = dense<[1, -1, 3, 70000]>
        memref.global "private" constant @same : memref<3xf32> = dense<0.5>
        memref.global "private" constant @brain : memref<2xbf16> = dense<[1.5, -2.0]>
        memref.global "private" constant @turn : memref<2xcomplex<f32>> = dense<[(0.0, 1.0), (1.0, -0.5)]>"""
    body = START + """%j = arith.remui %i, %c2 : index
        %t = memref.get_global @table : memref<4xi32>
        %a = memref.load %t[%j] : memref<4xi32>
        %f = arith.sitofp %a : i32 to f32
        %s = memref.get_global @same : memref<3xf32>
        %b = memref.load %s[%j] : memref<3xf32>
        %h = memref.get_global @brain : memref<2xbf16>
        %c = memref.load %h[%j] : memref<2xbf16>
        %d = arith.extf %c : bf16 to f32
        %z = memref.get_global @turn : memref<2xcomplex<f32>>
        %e = memref.load %z[%j] : memref<2xcomplex<f32>>
        %m = complex.im %e : complex<f32>
        %p = arith.addf %f, %b : f32
        %q = arith.addf %p, %d : f32
        %r = arith.addf %q, %m : f32
        memref.store %r, %o[%i] : memref<64xf32>"""
    text = module(constants + kernel(body, "%o: memref<64xf32>"))
    metal = emitted(text)[0]
    assert "constant uint table[4] = {\n    1u, 4294967295u, 3u, 70000u\n};" in metal
    assert "constant float2 turn[2] = {\n    float2(0.0f, 1.0f), float2(1.0f, -0.5f)\n};" in metal
    np.testing.assert_array_equal(run(text, np.zeros(64, np.float32))[0], np.tile([4.0, -3.0], 32))


def test_indices_of_64_bits() -> None:
    body = START + """%big = arith.constant 4294967296 : index
        %a = arith.addi %i, %big : index
        %b = arith.subi %a, %big : index
        %s = arith.cmpi slt, %b, %c8 : index
        %k = arith.index_cast %a : index to i64
        scf.if %s {
          memref.store %k, %o[%b] : memref<64xi64>
        }"""
    text = module(kernel(body, "%o: memref<64xi64>", extra=", smelt.index_bits = 64 : i64"))
    assert lines(text)[0] == "ulong at = ulong(gid) + 4294967296ul;"
    want = np.where(np.arange(64) < 8, np.arange(64) + 2**32, 0)
    np.testing.assert_array_equal(run(text, np.zeros(64, np.uint64))[0], want)


def test_signed_index_arithmetic() -> None:
    """Where an index may be negative, comparisons, quotients and extrema are signed; elsewhere they are plain."""
    body = START + """%a = arith.subi %i, %c8 : index
        %b = arith.maxsi %a, %c0 : index
        %p = arith.cmpi slt, %a, %c4 : index
        %q = arith.cmpi slt, %i, %c64 : index
        %pq = arith.andi %p, %q : i1
        %v = arith.floordivsi %a, %c4 : index
        %w = arith.index_cast %v : index to i32
        scf.if %pq {
          memref.store %w, %o[%b] : memref<64xi32>
        }"""
    text = module(kernel(body, "%o: memref<64xi32>"))
    assert "if (int(at) < 4 && gid < 64u) {" in lines(text)
    found = run(text, np.zeros(64, np.uint32))[0].view(np.int32)
    # Several threads write element 0; the others are written once, by the thread 8 further on.
    assert found[0] in (-2, -1, 0) and (found[1:4] == 0).all()


def test_vectors_in_threadgroup_memory() -> None:
    local = 'workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>> loc("tile"))'
    body = START + """%at = arith.muli %i, %c4 : index
        %v = vector.load %x[%at] : memref<64xf32>, vector<4xf32>
        vector.store %v, %s[%at] : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
        gpu.barrier memfence [#gpu.address_space<workgroup>]
        %back = arith.constant 60 : index
        %there = arith.subi %back, %at : index
        %w = vector.load %s[%there] : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
        vector.store %w, %o[%at] : memref<64xf32>, vector<4xf32>"""
    text = module(kernel(body, threads="16, 1, 1", local=local))
    assert lines(text)[0] == "alignas(16) threadgroup float tile[64];"
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run(text, x, x)[1], x.reshape(16, 4)[::-1].reshape(-1))


def test_arrays_of_two_dimensions_are_row_major() -> None:
    local = "workgroup(%s : memref<8x9xf32, #gpu.address_space<workgroup>>)"
    body = START + """%r = arith.divui %i, %c8 : index
        %c = arith.remui %i, %c8 : index
        %v = memref.load %x[%i] : memref<64xf32>
        memref.store %v, %s[%r, %c] : memref<8x9xf32, #gpu.address_space<workgroup>>
        gpu.barrier memfence [#gpu.address_space<workgroup>]
        %w = memref.load %s[%c, %r] : memref<8x9xf32, #gpu.address_space<workgroup>>
        memref.store %w, %o[%i] : memref<64xf32>"""
    x = np.arange(64, dtype=np.float32)
    found = run(module(kernel(body, local=local)), x, x)[1]
    np.testing.assert_array_equal(found, x.reshape(8, 8).T.reshape(-1))
