"""Factors, triangular systems and Fourier transforms, which StableHLO has ops for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval

from ..writer import Tensor, Writer, ints
from .table import Call, rule


@rule("cholesky")
def _cholesky(call: Call) -> Tensor:
    """StableHLO leaves what stands above the diagonal open."""
    w, x = call.writer, call.x
    found = w.op("stablehlo.cholesky", [x], call.aval, "lower = true")
    n, shape = x.aval.ndim, x.shape
    rows, columns = w.iota(shape, n - 2, dtypes.int32), w.iota(shape, n - 1, dtypes.int32)
    return w.select(w.compare("GE", rows, columns), found, 0)


@rule("solve_triangular")
def _solve_triangular(call: Call) -> Tensor:
    lower = "false" if call.attrs["upper"] else "true"
    attrs = (
        f"left_side = true, lower = {lower}, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>"
    )
    operands = same_batch(call.writer, call.operands)
    return call.writer.op("stablehlo.triangular_solve", operands, call.aval, attrs)


def same_batch(w: Writer, matrices: Sequence[Tensor]) -> list[Tensor]:
    """Matrices with the same axes in front of them, as StableHLO wants them."""
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in matrices))
    return [w.broadcast(x, (*lead, *x.shape[-2:])) for x in matrices]


def scaled(call: Call, x: Tensor, n: int, inverse: bool) -> Tensor:
    """From StableHLO's scale (1/n of the inverse) to the one that the op says."""
    wanted = {"none": 1.0, "mean": 1 / n, "ortho": n**-0.5}[call.attrs["scale"]]
    factor = wanted * (n if inverse else 1)
    if factor == 1:
        return x
    w = call.writer
    return x * w.full(x, factor)


def _fft(call: Call, x: Tensor, kind: str, n: int, result: Aval) -> Tensor:
    attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ints((n,))}"
    return call.writer.op("stablehlo.fft", [x], result, attrs)


@rule("fft")
def _complex_fft(call: Call) -> Tensor:
    inverse, n = call.attrs["inverse"], call.x.shape[-1]
    return scaled(call, _fft(call, call.x, "IFFT" if inverse else "FFT", n, call.aval), n, inverse)


@rule("rfft")
def _real_fft(call: Call) -> Tensor:
    n = call.x.shape[-1]
    return scaled(call, _fft(call, call.x, "RFFT", n, call.aval), n, False)


@rule("irfft")
def _inverse_real_fft(call: Call) -> Tensor:
    """As many frequencies as the length needs: others are cut off, missing ones are zero."""
    w, n, x = call.writer, call.attrs["n"], call.x
    have, need = x.shape[-1], n // 2 + 1
    lead = x.shape[:-1]
    if have > need:
        x = w.slice(x, (0,) * len(x.shape), (*lead, need))
    elif have < need:
        x = w.concatenate([x, w.broadcast(w.scalar(0, x.dtype), (*lead, need - have))], len(lead))
    return scaled(call, _fft(call, x, "IRFFT", n, call.aval), n, True)
