"""Programs that once went wrong on Metal, and the class of mistakes that each stands for."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.manifest import Alias, Manifest
from smelt.backends.metal import program as metal
from smelt.backends.metal.check import check as check_text
from smelt.backends.metal.names import RESERVED
from smelt.backends.metal.simulator import Library
from smelt.ir.settings import override

from .harness import graph_of, metal_text, program_of

HEADERS = pathlib.Path(metal.__file__).parent / "headers"
LARGE = 70_000, 70_001  # more elements than 32 bits count


def spec(*shape: int, dtype: smelt.Dtype = smelt.float32) -> smelt.ShapeDtype:
    return smelt.ShapeDtype(shape, dtype)


# Indices of more than 32 bits


def outer(x, y):
    return x[:, None] * y


@pytest.mark.parametrize(
    ("kernel", "function", "arguments"),
    [
        ("sum_chunks", lambda x, y: outer(x, y).sum(), (spec(LARGE[0]), spec(LARGE[1]))),
        ("argmax_chunks", lambda x, y: smelt.argmax(outer(x, y)), (spec(60_000), spec(60_000))),
        ("sum_chunks", lambda x, y: outer(x, y).sum(), (spec(2**18), spec(2**18))),
        ("sum_chunks", lambda: smelt.arange(5 * 10**9).astype(smelt.float32).sum(), ()),
        ("mul", lambda x, y: outer(x, y).reshape(-1)[::1000003] * 2, (spec(LARGE[0]), spec(LARGE[1]))),
        (
            "targets",
            lambda i, u: smelt.zeros(LARGE).at[i].add(u),
            (spec(100, dtype=smelt.int32), spec(100, LARGE[1])),
        ),
        ("gather", lambda i, x: smelt.take(x, i, axis=0), (spec(3, dtype=smelt.int32), spec(*LARGE))),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_indices_are_wide_where_no_buffer_is(kernel, function, arguments):
    graph = program_of(graph_of(function, *arguments), "apple8").as_text("gpu")
    bits = re.findall(r"gpu\.func @(\w+)\(.*smelt\.index_bits = (\d+)", graph)
    assert [b for name, b in bits if name.endswith(kernel)] == ["64"], bits


def test_elements_far_out_of_an_array_that_is_never_stored():
    x, y = np.arange(LARGE[0], dtype=np.float32), np.arange(LARGE[1], dtype=np.float32) % 7
    at = np.arange(0, LARGE[0] * LARGE[1], 1000003)
    with override(device="metal:sim"):
        found = smelt.compile(lambda x, y: outer(x, y).reshape(-1)[::1000003] * 2)(smelt.array(x), smelt.array(y))
    np.testing.assert_array_equal(np.array(found), x[at // LARGE[1]] * y[at % LARGE[1]] * 2)


# Export


def test_manifest_tells_results_that_no_launch_writes():
    def function(x, y):
        twice = x * 2
        return x, twice, twice.reshape(3, 2), y, twice

    (segment,) = program_of(graph_of(function, spec(2, 3), spec(4)), "apple8").segments
    manifest = Manifest.from_json(segment.manifest.to_json())
    assert manifest == segment.manifest
    assert manifest.aliases == (
        Alias(0, "argument", 0), Alias(2, "result", 1), Alias(3, "argument", 1), Alias(4, "result", 1),
    )  # fmt: skip
    written = {place.index for launch in manifest.launches for place in launch.buffers if place.kind == "result"}
    assert written | {alias.result for alias in manifest.aliases} == set(range(len(manifest.results)))


# Names


def macros() -> list[str]:
    """What the headers define, but for smelt's own and those that only give another name to an identifier."""
    found = set()
    for path in filter(pathlib.Path.is_file, HEADERS.rglob("*")):
        found |= set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\b(?![ \t]+__msl_name_)", path.read_text(), re.M))
    return sorted(name for name in found if not name.startswith(("_", "SMELT_")))


def test_macros_are_no_names():
    assert len(macros()) > 50
    assert not [name for name in macros() if name not in RESERVED]


NAMES = ["M_PI_F", "HALF_MAX", "template", "template_", "kernel", "typeof", "matrix", "virtual"]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_may_have_any_name(name):
    scope = {"smelt": smelt}
    exec(f"def f({name}, y):\n    return smelt.softmax({name}, axis=-1) + y * ({name} < y)", scope)
    text = metal_text(scope["f"], spec(3, 40), spec(3, 40))
    assert not [d for d in check_text(text) if d.severity != "note"]
    Library(text)


# Barriers that not all threads reach

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.mark.parametrize(
    ("body", "is_divergent"),
    [
        (f"while (true) {{ if (out[i] > 0) break; {BARRIER} }}", True),
        (f"for (uint j = 0; j < 8; j++) {{ {BARRIER} if (j > i) break; }}", True),
        (f"for (uint j = 0; j < 8; j++) {{ {BARRIER} if (j > i) return; }}", True),
        (f"for (uint j = 0; j < 8; j++) {{ if (j > i) continue; {BARRIER} }}", True),
        ("i < 3 ? sync() : (void)0;", True),
        (f"for (uint j = 0; j < 8; j++) {{ {BARRIER} if (j > i) continue; out[i] = 0; }}", False),
        (f"for (uint j = 0; j < 8; j++) {{ {BARRIER} if (j > 3) break; }}", False),
        (f"for (uint j = 0; j < 8; j++) {{ {BARRIER} switch (i) {{ case 1: out[i] = 0; break; }} }}", False),
        (f"for (uint j = 0; j < 8; j++) {{ for (uint k = 0; k < 8; k++) {{ if (k == i) break; }} {BARRIER} }}", False),
        ("out[0] > 3 ? sync() : (void)0;", False),
    ],
)  # fmt: skip
def test_barriers_in_loops_that_threads_leave_at_different_times(body, is_divergent):
    text = (
        f"#include <metal_stdlib>\nusing namespace metal;\nvoid sync() {{ {BARRIER} }}\n"
        f"kernel void k(device float* out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {{ {body} }}\n"
    )
    found = check_text(text)
    assert not [d for d in found if d.severity == "error"]
    assert any("divergent barrier" in d.message for d in found) == is_divergent


# Texts that people read


def test_conditions_have_no_part_that_says_nothing():
    def function(x, i, u):
        return x.at[i].maximum(u), smelt.any(x > 0, axis=1)

    text = metal_text(function, spec(16, 33), spec(40, dtype=smelt.int32), spec(40, 33))
    assert "true &&" not in text and "&& true" not in text and "false ||" not in text


@pytest.mark.parametrize("dtype", [smelt.int32, smelt.uint8, smelt.int64, smelt.bool_], ids=str)
def test_values_compared_with_themselves(dtype):
    def function(x):
        y = x | x.astype(smelt.bool_) & False  # x, which only the emitter can know
        return x == x, x != x, x < x, x >= x, x ^ x, y != x, y <= x

    assert not [d for d in check_text(metal_text(function, spec(5, dtype=dtype))) if d.severity != "note"]
    x = np.arange(5).astype(dtype.numpy)
    with override(device="metal:sim"):
        found = smelt.compile(function)(smelt.array(x))
    for array, want in zip(found, (x == x, x != x, x < x, x >= x, x ^ x, x != x, x <= x)):
        np.testing.assert_array_equal(np.array(array), want)


@pytest.mark.parametrize("dtype", [smelt.uint8, smelt.int8, smelt.int32, smelt.int64], ids=str)
def test_what_was_an_integer_has_no_negative_zero(dtype):
    """A compiler may take float(int(x)) for the truncation of x only where signs of zeros do not count."""
    with override(device="metal:sim"):
        found = smelt.compile(lambda x: x.astype(dtype).astype(smelt.float32))(smelt.array([-0.5, -0.0, 0.5, 2.5]))
    assert not np.signbit(np.asarray(found)).any()


def rows_in_eight_bytes(x):
    wide = x.astype(smelt.int64)
    return wide, wide.max()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x, y: x @ y + y[0], (spec(4, 1, dtype=smelt.int64), spec(1, 8, dtype=smelt.int64))),
        (lambda x, y: x @ y, (spec(4, 1, dtype=smelt.uint64), spec(1, 8, dtype=smelt.uint64))),
        (rows_in_eight_bytes, (spec(540, dtype=smelt.bfloat16),)),
    ],
)
def test_vectors_are_no_longer_than_arrays_are_aligned_to(function, arguments):
    text = metal_text(function, *arguments)
    assert "long2*" in text and "long4*" not in text
