"""Programs of open sizes, as of JAX's symbolic shapes, are bound to the sizes of arrays they are called with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import IRError, ShapeError

#: The mean of a layer's rows; rows must be of an even number.
MEAN = """
func.func private @layer(%n: tensor<i32>, %x: tensor<?x3xf32>, %w: tensor<3x2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = stablehlo.tanh %0 : tensor<?x2xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %5 = stablehlo.divide %2, %4 : tensor<2xf32>
  return %5 : tensor<2xf32>
}
func.func public @main(%x: tensor<?x3xf32>, %w: tensor<3x2xf32>) -> tensor<2xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %rest = stablehlo.remainder %n, %two : tensor<i32>
  %even = stablehlo.compare EQ, %rest, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%even, %n) {error_message = "rows must be even, are {0}",
    has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %0 = call @layer(%n, %x, %w) : (tensor<i32>, tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""

#: Results of open sizes: twice the rows, one long row, positions.
SHAPES = """
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xi32>) {
  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %mn = stablehlo.multiply %m, %n : tensor<i32>
  %size = stablehlo.reshape %mn : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.dynamic_reshape %x, %size : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %rows = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_iota %rows, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %0, %1, %2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xi32>
}
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_each_size_has_its_program(compiled: bool) -> None:
    f: Any = smelt.from_stablehlo(MEAN)
    assert str(f).endswith("main(f32[?,3], f32[3,2]) -> (f32[2])>")
    run = smelt.compile(f) if compiled else f
    w = np.arange(6, dtype=np.float32).reshape(3, 2) / 7
    for rows in (2, 6, 2):
        x = np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_allclose(np.array(run(smelt.array(x), smelt.array(w))), np.tanh(x @ w).mean(0), rtol=1e-5)


def test_open_results() -> None:
    f = smelt.from_stablehlo(SHAPES)
    assert str(f).endswith("main(f32[?,?]) -> (f32[?,?], f32[?], i32[?])>")
    for shape in ((2, 3), (1, 1), (0, 4)):
        x = smelt.arange(shape[0] * shape[1], dtype=smelt.float32).reshape(shape)
        twice, flat, places = f(x)
        assert twice.tolist() == [*x.tolist(), *x.tolist()]
        assert flat.tolist() == x.reshape(-1).tolist()
        assert places.tolist() == list(range(shape[0]))


def test_it_transforms_like_any_function() -> None:
    f: Any = smelt.from_stablehlo(MEAN)
    x, w = smelt.ones((4, 2, 3)), smelt.ones((3, 2)) * 0.1
    batched = smelt.vmap(f, in_axes=(0, None))(x, w)
    assert batched.tolist() == smelt.stack([f(row, w) for row in x]).tolist()
    gradient = smelt.grad(lambda w: f(x[0], w).sum())(w)
    np.testing.assert_allclose(np.array(gradient), np.full((3, 2), 1 - np.tanh(0.3) ** 2), rtol=1e-5)


def test_sizes_that_it_is_not_for() -> None:
    f: Any = smelt.from_stablehlo(MEAN)
    w = smelt.ones((3, 2))
    with pytest.raises(ShapeError, match=r"rows must be even, are 3; at .*test_sizes"):
        f(smelt.ones((3, 3)), w)
    for wrong in (smelt.ones((2, 4)), smelt.ones(3), smelt.ones((2, 2, 3))):
        with pytest.raises(ShapeError, match=r"argument 0 of main must be f32\[\?,3\], is f32"):
            f(wrong, w)


def test_what_sizes_of_arguments_do_not_say() -> None:
    body = "stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>"
    text = f"func.func @main(%n: tensor<1xi32>) -> tensor<?xi32> {{\n%0 = {body}\nreturn %0 : tensor<?xi32>\n}}"
    with pytest.raises(IRError, match=r"f: the sizes of arguments do not say which stablehlo.dynamic_iota has"):
        smelt.from_stablehlo(text, name="f")
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.custom_call @mine(%x) : (tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    with pytest.raises(IRError, match=r"do not say which stablehlo.custom_call @mine has; lower it for given sizes"):
        smelt.from_stablehlo(text)(smelt.ones(3))


#: What JAX writes of running sums, and of the k largest: custom calls whose sizes are values, and composites of them.
WINDOWS = """
func.func @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @running(%x: tensor<?xf32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %none = stablehlo.constant dense<0> : tensor<1xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %size = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %low = stablehlo.subtract %size, %one : tensor<1xi32>
  %both = stablehlo.concatenate %low, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %padding = stablehlo.reshape %both : (tensor<2xi32>) -> tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %size, %one, %one, %one, %padding)
    {called_computations = [@sum]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
    tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.composite "acme.running" %x {decomposition = @running} : (tensor<?xf32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %half = stablehlo.divide %n, %two : tensor<i32>
  %1:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%0, %half) : (tensor<?xf32>, tensor<i32>) ->
    (tensor<?xf32>, tensor<?xi32>)
  return %0, %1#0 : tensor<?xf32>, tensor<?xf32>
}
"""


def test_windows_whose_sizes_are_values() -> None:
    f = smelt.from_stablehlo(WINDOWS)
    for n in (2, 5, 1):
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        running = np.cumsum(x)
        for run in (f, smelt.compile(f)):
            found, largest = run(smelt.array(x))
            np.testing.assert_allclose(np.array(found), running, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(np.array(largest), np.sort(running)[::-1][: n // 2], rtol=1e-5, atol=1e-6)
    slope = smelt.grad(lambda x: f(x)[0].sum())(smelt.ones(4))
    assert slope.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_windows_whose_sizes_are_results() -> None:
    text = WINDOWS.replace("get_dimension_size %x, dim = 0 : (tensor<?xf32>)", "convert %zero : (tensor<f32>)", 1)
    with pytest.raises(IRError, match=r"do not say which stablehlo.custom_call @stablehlo.dynamic_reduce_window has"):
        smelt.from_stablehlo(text.replace("convert %zero", "custom_call @acme(%zero)"))(smelt.ones(3))
