"""Every kind of module through every text and command: a text, or an error that says what is wrong with the file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.backends.device import registered
from smelt.tools import cli, opt

F, F0 = "tensor<4xf32>", "tensor<0xf32>"


def unary(body: str, kind: str = F) -> str:
    return f"func.func @main(%x: {kind}) -> {kind} {{ {body} }}"


#: Modules as somebody may write them, or have them from elsewhere.
WRITTEN = {
    "identity": unary(f"return %x : {F}"),
    "results twice": f"func.func @main(%x: {F}) -> ({F}, {F}) {{ return %x, %x : {F}, {F} }}",
    "no results": f"func.func @main(%x: {F}) {{ return }}",
    "nothing": "func.func @main() { return }",
    "empty module": "module {}",
    "no main": f"func.func @other(%x: {F}) -> {F} {{ return %x : {F} }}",
    "declared main": f"func.func private @main({F}) -> {F}",
    "size 0": unary(f'%0 = "smelt.exp"(%x) : ({F0}) -> {F0} return %0 : {F0}', F0),
    "f64": unary('%0 = "smelt.exp"(%x) : (tensor<4xf64>) -> tensor<4xf64> return %0 : tensor<4xf64>', "tensor<4xf64>"),
    "functions as values": unary(
        f"%f = constant @f : ({F}) -> {F} %0 = call_indirect %f(%x) : ({F}) -> {F} return %0 : {F}"
    )
    + f'func.func private @f(%x: {F}) -> {F} {{ %0 = "smelt.sin"(%x) : ({F}) -> {F} return %0 : {F} }}',
    "upstream calls": unary(f"%0 = call @f(%x) : ({F}) -> {F} return %0 : {F}")
    + f'func.func private @f(%x: {F}) -> {F} {{ %0 = "smelt.sin"(%x) : ({F}) -> {F} return %0 : {F} }}',
    "recursion": unary(f"%0 = call @main(%x) : ({F}) -> {F} return %0 : {F}"),
    "scalars": unary("%0 = arith.addf %x, %x : f32 return %0 : f32", "f32"),
    "memory": "func.func @main(%x: memref<4xf32>) { return }",
    "positions": unary("return %x : tensor<4xindex>", "tensor<4xindex>"),
    "open extents": unary("return %x : tensor<?xf32>", "tensor<?xf32>"),
    "any rank": unary("return %x : tensor<*xf32>", "tensor<*xf32>"),
    "arith of tensors": unary(f"%0 = arith.addf %x, %x : {F} return %0 : {F}"),
    "linalg": unary(
        f"%c = arith.constant 1.0 : f32 %0 = linalg.fill ins(%c : f32) outs(%x : {F}) -> {F} return %0 : {F}"
    ),
    "a module inside": f"module {{ module @inner {{ {unary(f'return %x : {F}')} }} }}",
    "gpu kernels": "module attributes {gpu.container_module} { gpu.module @k { gpu.func @f() kernel { gpu.return } } "
    "func.func @main() { return } }",
    "llvm": "module { llvm.func @main() { llvm.return } }",
    "two blocks": unary(f"cf.br ^next ^next: return %x : {F}"),
    "unknown ops": unary(f'%0 = "acme.other"(%x) : ({F}) -> {F} return %0 : {F}'),
    "memory beside": 'module { memref.global "private" @g : memref<4xf32> = dense<0.0> func.func @main() { return } }',
}
#: Of which one text at least is refused; the others are programs, which have them all.
REFUSED = {
    "empty module", "no main", "declared main", "recursion", "scalars", "memory", "positions", "open extents",
    "any rank", "arith of tensors", "linalg", "a module inside", "llvm", "two blocks", "unknown ops",
}  # fmt: skip


def attention(q: smelt.array, k: smelt.array, v: smelt.array) -> smelt.array:
    return smelt.softmax(q @ k.T, axis=-1) @ v


def attention_gradient(q: smelt.array, k: smelt.array, v: smelt.array) -> Any:
    return smelt.vjp(attention, [q, k, v], [v])[1]


#: Functions, and the shapes of their arguments.
TRACED: dict[str, tuple[Callable, list[tuple[int, ...]]]] = {
    "rows": (lambda x: smelt.exp(x).sum(axis=1), [(4, 8)]),
    "loop": (lambda x: smelt.fori_loop(0, 5, lambda i, c: c * 2 + smelt.sin(c), x), [(4, 8)]),
    "while": (lambda x: smelt.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), [(4,)]),
    "scan": (lambda x: smelt.scan(lambda c, row: (c + row, c * row), x[0], x), [(4, 8)]),
    "cond": (lambda x: smelt.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x), [(4, 8)]),
    "gradient": (smelt.grad(lambda x: smelt.softmax(x @ x.T).sum()), [(4, 8)]),
    "gradient of a loop": (
        smelt.grad(lambda x: smelt.scan(lambda c, row: (c * row, c), x[0], x)[0].sum()), [(4, 8)]
    ),
    "library": (lambda x: smelt.linalg.cholesky(x @ x.T + smelt.eye(4)), [(4, 8)]),
    "sorted": (lambda x: (smelt.sort(x), smelt.argmax(x)), [(4, 8)]),
    "random": (lambda x: x + smelt.random.bits(x.shape, key=smelt.random.key(0)), [(4, 8)]),
    "scatter": (lambda x: x.at[smelt.array([0, 1])].add(1.0), [(4, 8)]),
    "fft": (lambda x: smelt.fft.fft(x), [(4, 8)]),
    "attention": (attention, [(512, 64)] * 3),
    "attention's gradient": (attention_gradient, [(512, 64)] * 3),
}  # fmt: skip


#: Of each device, where they differ.
PIPELINES = list({str(device.pipeline): device.name for device in registered.values() if not device.missing}.values())


def source_of(name: str) -> str:
    if name in WRITTEN:
        return WRITTEN[name]
    function, shapes = TRACED[name]
    text: str = smelt.compile(function).trace(*map(smelt.zeros, shapes)).lower().as_text("graph")
    return text


def _said(found: tuple[int, str, str], what: str) -> bool:
    """Whether a command succeeded; raises where it neither did nor said why."""
    code, out, err = found
    assert code in (0, 1, 2), what
    assert "internal error" not in err and "Traceback" not in err and "AssertionError" not in err, f"{what}: {err}"
    assert code == 0 or (out + err).strip(), f"{what} says nothing"
    return code == 0


#: Texts of what commands have made, in so many parts: of each module one, so that each part has a third of the modules.
PARTS = 3


@pytest.mark.thinned(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [*WRITTEN, *TRACED])
def test_texts_and_commands(run: Any, name: str, part: int, tmp_path: Path) -> None:
    files = {"raw": tmp_path / "raw.mlir"}
    files["raw"].write_text(source_of(name))
    written = [_said(run(files["raw"], f"--emit={emit}"), f"--emit={emit}") for emit in opt.EMIT]
    assert all(written) == (name not in REFUSED)
    for pipeline in PIPELINES:
        made = tmp_path / f"{len(files)}.mlir"
        if _said(run(files["raw"], f"--pass-pipeline={pipeline}", "-o", made), f"pipeline {pipeline}"):
            files[pipeline] = made
    for emit in ("kernel", "llvm", "gpu", "linalg"):
        made = tmp_path / f"{emit}.mlir"
        if _said(run(files["raw"], f"--emit={emit}", "-o", made), f"--emit={emit}"):
            files[emit] = made
    for i, (form, file) in enumerate(files.items()):
        for k, emit in enumerate(opt.EMIT):
            if form != "raw" and (i + k) % PARTS == part:
                _said(run(file, f"--emit={emit}"), f"{form} --emit={emit}")
        for flags in (["--short"], ["--execute"], ["--cse", "--verify-values"], ["--fuse", "--remarks"]):
            _said(run(file, *flags), f"{form} {flags}")
        _said(run("diff", file, files["raw"], main=cli.main), f"diff of {form}")
    for form in {"raw", *PIPELINES} & files.keys():
        _said(run("view", files[form], "-o", tmp_path / "page.html", main=cli.main), f"view of {form}")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output_is_an_error_message(good: str) -> None:
    commands = ["opt", good, "--cse"], ["opt", "--list-passes"], ["opt", good, "--short"], ["cache"], ["doctor"]
    for command in commands:
        with open("/dev/full", "w") as full:
            run = [sys.executable, "-m", "smelt.tools", *command]
            done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode and "<stdout>: error: cannot be written: " in done.stderr, command
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr
