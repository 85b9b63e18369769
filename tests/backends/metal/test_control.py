"""Loops and branches around kernels, against the interpreter: on the simulator, and on the fake of Apple's runtime."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import smelt
from smelt.backends.gpu.manifest import Branch, Launch, Loop, Manifest
from smelt.backends.gpu.program import DeviceSegment, HostSegment, Program
from smelt.backends.metal.apple import AppleDevice, MetalRunError
from smelt.backends.metal.apple.program import LAUNCHES, AppleProgram
from smelt.backends.metal.simulator import Library, Options
from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.interpreter import Interpreter
from smelt.ir.settings import override
from smelt.runtime.compile import compile_text
from smelt.runtime.device import metal_sim

from ..control_modules import Made
from ..modules import f32, random_array
from ..test_control_random import Nest
from .fake_metal import FakeMetal
from .harness import program_of, run

i32 = dtypes.int32
VECTOR, SCALAR, COUNT, TRUTH = Aval((6,), f32), Aval((), f32), Aval((), i32), Aval((), dtypes.bool_)
METAL = [d for d in dtypes.ALL if d.real is not dtypes.float64]


def run_on_apple(program: Program, arrays: Sequence[np.ndarray], fake: FakeMetal) -> list[np.ndarray]:
    """The same program through Apple's runtime."""
    device = AppleDevice(fake)

    def block(nbytes: int) -> Any:
        found = device.allocate(max(nbytes, 1))
        found.array[:] = 0xFF
        return found

    arguments = [block(a.nbytes) for a in arrays]
    for target, a in zip(arguments, arrays):
        target.array[: a.nbytes] = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
    results = [block(a.nbytes) for a in program.results]
    arena = block(program.arena_bytes) if program.arena_bytes else None
    for segment in program.segments:
        assert isinstance(segment, DeviceSegment)
        device.load(segment.text, segment.manifest).run(arguments, results, arena)
    for i, source in program.aliases.items():
        results[i] = arguments[source] if isinstance(source, int) else results[source[1]]
    return [b.array[: a.nbytes].view(a.dtype.numpy).reshape(a.shape) for b, a in zip(results, program.results)]


def check(m: Made, arrays: Sequence[np.ndarray], tolerance: float = 2e-5, strict: bool = False) -> Program:
    """Compile a module for Metal and compare with the interpreter, wherever it runs; the program with all its loops.

    `strict`: also in another order of threads, with fences around buffers.
    """
    text.verify(m.module)
    want = Interpreter(m.module)("main", arrays)
    graph = text.to_text(m.module)
    program, kernels = program_of(graph, loops=False), program_of(graph)
    found = [run(program, arrays), run_on_apple(program, arrays, FakeMetal(Library))]
    if "loop" in [k.schedule for k in kernels.kernels]:
        found.append(run(kernels, arrays))
    if strict:
        found.append(run(program, arrays, Options(order="shuffled", poison=True, guard=True)))
    for results in found:
        for have, expected in zip(results, want):
            assert have.shape == expected.shape and have.dtype == expected.dtype
            if expected.dtype.kind in "biu":
                np.testing.assert_array_equal(have, expected)
            else:
                wide = np.complex128 if expected.dtype.kind == "c" else np.float64
                np.testing.assert_allclose(have.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    assert Manifest.from_json(segment.manifest.to_json()) == segment.manifest
    return program


def samples(*avals: Aval) -> list[np.ndarray]:
    return [random_array(a, i) for i, a in enumerate(avals)]


def steps_of(program: Program) -> Sequence[Any]:
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    return segment.manifest.steps


@pytest.mark.parametrize("size", [1, 6, 300])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(size: int, reverse: bool) -> None:
    """Of all lengths in one program: none, odd, even; elements of 6 floats do not lie where vectors may."""
    m, aval, lengths = Made(), Aval((size,), f32), (0, 1, 2, 5)
    m.define("body", [aval, aval, aval], lambda b, c, s, x: [s + x * c, b.sin(s) + x])
    avals = [aval, aval, *(Aval((n, size), f32) for n in lengths)]

    def main(b: Any, c: Any, s: Any, *xs: Any) -> list[Any]:
        found: list[Any] = []
        for n, x in zip(lengths, xs):
            found += m.scan(b, "body", [c, s, x], n, 1, 1, reverse)
        return found

    m.define("main", avals, main)
    program = check(m, samples(*avals), strict=True)
    assert [s.length for s in steps_of(program) if isinstance(s, Loop)] == [1, 2, 5]


def test_vectors_that_begin_between_elements() -> None:
    """Four of six floats are one vector, which the second element of the array does not lie right for."""
    m, four = Made(), Aval((4,), f32)

    def body(b: Any, c: Any, x: Any) -> list[Any]:
        part = b.slice(x, start=(0,), stop=(4,), stride=(1,))
        return [c * 0.5 + part, b.concatenate(part * c, b.slice(x, start=(4,), stop=(6,), stride=(1,)), axis=0)]

    m.define("body", [four, VECTOR], body)
    avals = [four, Aval((5, 6), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, 5, 0, 1))
    program = check(m, samples(*avals), strict=True)
    assert [k.schedule for k in program.kernels].count("copy") == 1


def test_while() -> None:
    m = Made()
    m.define("go", [COUNT, COUNT, VECTOR], lambda b, stop, i, x: [b.less(i, stop)])
    m.define("step", [COUNT, COUNT, VECTOR], lambda b, stop, i, x: [i + 1, x * 0.5 + b.reverse(x, axes=(0,))])
    m.define("main", [COUNT, COUNT, VECTOR], lambda b, *v: [*m.loop(b, "go", "step", v, 1), v[2] * 2])
    for stop in (-3, 0, 1, 4, 7):
        program = check(m, [np.array(stop, np.int32), np.array(0, np.int32), random_array(VECTOR)])
    (loop,) = [s for s in steps_of(program) if isinstance(s, Loop)]
    assert loop.length is None and loop.flag is not None and loop.condition


def test_a_condition_may_be_a_carry_or_reduce_an_array() -> None:
    m = Made()
    m.define("flag", [TRUTH, VECTOR], lambda b, p, x: [p])
    m.define("clear", [TRUTH, VECTOR], lambda b, p, x: [b.full((), False, dtypes.bool_), x + 1])
    m.define("small", [VECTOR], lambda b, x: [b.less(b.reduce_sum(x * x, axes=(0,)), b.full((), 100, f32))])
    m.define("grow", [VECTOR], lambda b, x: [x * 1.5])
    m.define(
        "main", [TRUTH, VECTOR], lambda b, p, x: [*m.loop(b, "flag", "clear", [p, x]), *m.loop(b, "small", "grow", [x])]
    )  # fmt: skip
    for truth in (True, False):
        check(m, [np.array(truth), random_array(VECTOR)])


@pytest.mark.parametrize("dtype", [dtypes.bool_, dtypes.int8, dtypes.uint8, i32, dtypes.int64], ids=str)
def test_branches(dtype: Any) -> None:
    m = Made()
    for i in range(3):
        m.define(f"f{i}", [VECTOR], lambda b, x, i=i: [x * (i + 1.0), x] if i else [x, x])
    names = ["f0", "f1"] if dtype.kind == "b" else ["f0", "f1", "f2"]
    m.define("main", [Aval((), dtype), VECTOR], lambda b, i, x: m.cond(b, i, [x], *names))
    for n in (0, 1) if dtype.kind == "b" else (0, 1, 2, 3, 100, *([-1] if dtype.kind == "i" else [])):
        program = check(m, [np.array(n, dtype.numpy), random_array(VECTOR)])
    assert any(isinstance(s, Branch) for s in steps_of(program))


@pytest.mark.parametrize("length", [0, 1, 4, 5])
def test_carries_that_are_permuted_repeated_or_unchanged(length: int) -> None:
    m = Made()

    def body(b: Any, c: Any, p: Any, q: Any, kept: Any, fresh: Any, x: Any) -> list[Any]:
        new = p + x * c
        return [q, new, kept, new, p, x, c, new, b.reshape(new, shape=(1, 6)), kept]

    m.define("body", [VECTOR] * 6, body)
    avals = [VECTOR] * 5 + [Aval((length, 6), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, length, 1, 4))
    check(m, samples(*avals))


@pytest.mark.parametrize("stop", [0, 1, 2, 5])
def test_while_with_permuted_and_unchanged_carries(stop: int) -> None:
    m = Made()
    m.define("go", [COUNT, COUNT, VECTOR, VECTOR, VECTOR], lambda b, s, i, x, y, z: [b.less(i, s)])
    m.define("step", [COUNT, COUNT, VECTOR, VECTOR, VECTOR], lambda b, s, i, x, y, z: [i + 1, y, x, z])
    m.define("main", [COUNT, COUNT, VECTOR, VECTOR, VECTOR], lambda b, *v: m.loop(b, "go", "step", v, 1))
    check(m, [np.array(stop, np.int32), np.array(0, np.int32), *samples(VECTOR, VECTOR, VECTOR)])


@pytest.mark.parametrize("dtype", METAL, ids=lambda d: d.name)
def test_every_dtype(dtype: Any) -> None:
    """Elements of one, three and eight: where they lie in a stacked array, vectors may not reach them."""
    m = Made()

    def body(b: Any, c: Any, s: Any, x: Any) -> list[Any]:
        return [b.logical_or(s, x), b.logical_not(s)] if dtype.kind == "b" else [s + c * x, s * x]

    shapes: list[tuple[int, ...]] = [(), (3,), (8,), (4, 5)]
    avals: list[Aval] = []
    for i, shape in enumerate(shapes):
        aval = Aval(shape, dtype)
        m.define(f"body{i}", [aval] * 3, body)
        avals += [aval, aval, aval.with_shape((4, *shape))]

    def main(b: Any, *values: Any) -> list[Any]:
        found: list[Any] = []
        for i in range(len(shapes)):
            found += m.scan(b, f"body{i}", values[3 * i : 3 * i + 3], 4, 1, 1, i % 2 == 1)
        return found

    m.define("main", avals, main)
    half = dtype.name in ("float16", "bfloat16")  # halves are rounded at other places
    check(m, [np.ones(a.shape, dtype.numpy) for a in avals] if half else samples(*avals), 1e-4, strict=True)


def test_matrices_sums_sorts_and_scatters_in_a_loop() -> None:
    m, square, rows = Made(), Aval((20, 20), f32), Aval((5, 20, 7), f32)

    def body(b: Any, w: Any, h: Any, x: Any, i: Any) -> list[Any]:
        h = b.tanh(b.dot_general(w, h, lhs_contracting=(1,), rhs_contracting=(0,)) * 0.1 + x)
        total = b.reduce_sum(h, axes=(0, 1))
        at = b.reshape(i, shape=(1,))
        put = b.scatter(h, b.reshape(b.reduce_sum(x, axes=(0,)), shape=(1, 1, 7)), at, axes=(0,), mode="set")
        return [put, b.transpose(h, permutation=(1, 0)), total, b.sort(x, axis=0), b.cumsum(h, axis=1)]

    m.define("body", [square, Aval((20, 7), f32), Aval((20, 7), f32), COUNT], body)
    avals = [square, Aval((20, 7), f32), rows, Aval((5,), i32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, 5, 1, 1))
    check(m, [*samples(*avals[:3]), np.arange(5, dtype=np.int32)], 1e-4)


def test_split_sums_in_a_loop() -> None:
    m, aval = Made(), Aval((200_001,), f32)
    m.define("body", [aval, SCALAR], lambda b, x, s: [x * 0.5, b.reduce_sum(x, axes=(0,)) + s])
    m.define("main", [aval, Aval((3,), f32)], lambda b, x, s: m.scan(b, "body", [x, s], 3, 0, 1))
    check(m, samples(aval, Aval((3,), f32)), 1e-3)


def test_nested_loops_over_elements_of_elements() -> None:
    m, element, rows = Made(), Aval((3,), f32), Aval((4, 3), f32)
    m.define("inner", [element, element], lambda b, s, x: [s * 0.5 + x, s + x])

    def outer(b: Any, s: Any, x: Any) -> list[Any]:
        last, ys = m.scan(b, "inner", [s, x], 4, 0, 1, True)
        return [*m.cond(b, b.less(b.reduce_sum(last, axes=(0,)), b.full((), 0, f32)), [last], "flip", "same"), ys]

    m.define("flip", [element], lambda b, x: [b.reverse(x, axes=(0,))])
    m.define("same", [element], lambda b, x: [x])
    m.define("outer", [element, rows], outer)
    avals = [element, Aval((5, 4, 3), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "outer", v, 5, 0, 1))
    program = check(m, samples(*avals), strict=True)
    copies = [k for k in program.kernels if k.schedule == "copy"]
    assert copies, "a branch that returns its argument is a copy"


@pytest.mark.parametrize("seed", range(10))
def test_random_nests(seed: int) -> None:
    nest = Nest(seed, f32, sizes=(1, 6, 40))
    nest.main(2)
    for n in (0, 3):
        arrays = [random_array(nest.aval, seed), random_array(nest.aval, seed + 1), np.array(n, np.int32)]
        check(nest.made, arrays, 2e-4)


@pytest.mark.parametrize("dtype", [dtypes.float64, f32], ids=str)
def test_what_metal_lacks_takes_its_loop_to_the_cpu(dtype: Any) -> None:
    """A function that another loop runs too is on both."""
    m = Made()
    m.define("shared", [VECTOR], lambda b, x: [b.sin(x)])
    m.define("wide", [VECTOR], lambda b, x: [b.convert(b.exp(b.convert(x, dtype=dtype)), dtype=f32)])
    m.define("body", [VECTOR, TRUTH], lambda b, x, p: [*m.cond(b, p, [x * 0.5], "wide", "shared"), x])
    m.define("plain", [VECTOR, TRUTH], lambda b, x, p: [*m.cond(b, p, [x], "shared", "shared"), x])

    def main(b: Any, x: Any, p: Any) -> list[Any]:
        found = m.scan(b, "body", [b.exp(x), p], 3, 0, 1)
        return [*found, *m.scan(b, "plain", [found[0], p], 3, 0, 1)]

    m.define("main", [VECTOR, Aval((3,), dtypes.bool_)], main)
    arrays = [random_array(VECTOR), np.array([True, False, True])]
    want = Interpreter(m.module)("main", arrays)
    for have, expected in zip(compile_text(text.to_text(m.module), metal_sim)(arrays), want):
        np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-6)
    kinds = [type(s) for s in program_of(text.to_text(m.module)).segments]
    if dtype is f32:
        assert kinds == [DeviceSegment]
    else:
        assert kinds == [DeviceSegment, HostSegment, DeviceSegment]


# As users see it


def rnn(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = smelt.tanh(w @ h + x)
        return h, h.sum()

    last, sums = smelt.scan(step, smelt.zeros(4), xs)
    return (last * last).sum() + sums[::2].sum()


def newton(w: Any, xs: Any) -> Any:
    def unfinished(state: Any) -> Any:
        x, i = state
        return smelt.logical_and(smelt.abs(x * x - a) > 1e-4, i < 30)

    a = smelt.abs(w.sum()) + smelt.abs(xs).sum()
    return smelt.while_loop(unfinished, lambda s: ((s[0] + a / s[0]) / 2, s[1] + 1), (a, smelt.array(0)))[0]


TRANSFORMED: dict[str, Callable[..., Any]] = {
    "grad": smelt.grad(rnn, argnums=(0, 1)),
    "vmap": smelt.vmap(rnn, in_axes=(None, 1)),
    "vmap(grad)": smelt.vmap(smelt.grad(rnn), in_axes=(None, 1)),
    "jvp of while": lambda w, xs: smelt.jvp(newton, [w, xs], [w, xs]),
    "vmap of while": smelt.vmap(newton, in_axes=(None, 1)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_functions(name: str) -> None:
    rng = np.random.default_rng(0)
    w, xs = (smelt.array(rng.standard_normal(s).astype(np.float32)) for s in ((4, 4), (6, 5, 4)))
    if name == "grad":
        xs = xs[:, 0]
    found = {}
    for device in ("metal:sim", "reference"):
        with override(device=device):
            found[device] = [np.array(x) for x in optree.tree_leaves(smelt.compile(TRANSFORMED[name])(w, xs))]
    for a, b in zip(found["metal:sim"], found["reference"]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_long_loop_is_a_few_kernels_and_many_command_buffers() -> None:
    graph = {}
    for length in (10, 1000):
        function = smelt.compile(lambda x, n=length: smelt.fori_loop(0, n, lambda i, x: x + 0.5 * i, x))
        graph[length] = text.to_text(function.trace(smelt.ShapeDtype((4,), smelt.float32)).lower().module)
    short, long = (program_of(graph[n], loops=False) for n in (10, 1000))
    assert [k.entry for k in short.kernels] == [k.entry for k in long.kernels]
    assert len(short.as_text("msl")) == len(long.as_text("msl"))
    fake = FakeMetal(Library)
    (found,) = run_on_apple(long, [np.zeros(4, np.float32)], fake)
    assert (found == 0.5 * 999 * 1000 / 2).all()
    launched = fake.counts["dispatchThreadgroups_threadsPerThreadgroup_"]
    assert fake.counts["commandBuffer"] == -(-launched // LAUNCHES)


def test_a_host_can_run_a_saved_loop(tmp_path: Path) -> None:
    function = smelt.compile(lambda x: smelt.scan(lambda c, x: (c * 0.5 + x + c.sum(), c), smelt.zeros(3), x))
    program = function.trace(smelt.ShapeDtype((5,), smelt.float32)).lower().to_metal()
    paths = program.save(str(tmp_path), "scan")
    (loop,) = [s for s in json.loads(Path(paths[1]).read_text())["steps"] if "loop" in s]
    assert loop["length"] == 5 and loop["flag"] is None and loop["condition"] == []
    assert any(place.get("strides") == [[loop["loop"], 4]] for place in loop["steps"][0]["buffers"])
    assert any(place["kind"] == "local" for place in loop["steps"][0]["buffers"])
    assert isinstance(program.segments[0].manifest.steps[-1], (Loop, Launch))


@pytest.mark.parametrize("fails", ["the GPU", "encoding"])
def test_an_error_in_a_loop_leaves_nothing_on_the_gpu(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of command buffers that still run would go to other programs."""
    function = smelt.compile(lambda x: smelt.fori_loop(0, 1000, lambda i, x: x + 0.5 * i, x))
    graph = text.to_text(function.trace(smelt.ShapeDtype((4,), smelt.float32)).lower().module)
    fake = FakeMetal(Library)
    if fails == "the GPU":
        fake.failure = (2, "timeout")
        error: type[BaseException] = MetalRunError
    else:
        encode = AppleProgram._encode

        def interrupted(*arguments: Any) -> None:
            if fake.counts["commit"] == 2:
                raise KeyboardInterrupt
            encode(*arguments)

        monkeypatch.setattr(AppleProgram, "_encode", interrupted)
        error = KeyboardInterrupt
    with pytest.raises(error):
        run_on_apple(program_of(graph, loops=False), [np.zeros(4, np.float32)], fake)
    assert fake.counts["commit"] == fake.counts["waitUntilCompleted"] > 1
    assert fake.counts["endEncoding"] == fake.counts["computeCommandEncoderWithDispatchType_"]
