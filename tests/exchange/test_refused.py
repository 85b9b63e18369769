"""What is no StableHLO, or has no translation here, is an error that names op, line and next step."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable

import pytest

import smelt
from smelt.ir import bytecode, stablehlo
from smelt.ir import text as smelt_text
from smelt.ir.errors import ArgumentTypeError, DTypeError, FileFormatError, IRError, ShapeError

from .programs_of_jax import FOLDER, NAMES, program


def main(body: str, arguments: str = "%x: tensor<4xf32>", result: str = "tensor<4xf32>") -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n}}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("module {", "error:"),
        ("", "no function @main"),
        (main("return %x : tensor<4xf32>").replace("@main", "private @f"), "no function @main"),
        (main('%0 = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>'), "dialect other"),
        (
            main("%0 = stablehlo.custom_call @mine(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            r"f.mlir:2:\d+: stablehlo.custom_call @mine has no translation",
        ),
        (main("return %x : tensor<4xf4E2M1FN>", "%x: tensor<4xf4E2M1FN>", "tensor<4xf4E2M1FN>"), "f4E2M1FN"),
        (main("%0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"), "calls itself"),
        (
            main("%0 = stablehlo.add %x, %x : tensor<5xf32>\nreturn %x : tensor<4xf32>"),
            "f.mlir:2:.*different type",
        ),
    ],
)
def test_text(text: str, message: str) -> None:
    with pytest.raises(IRError, match=message):
        smelt.from_stablehlo(text, name="f.mlir")


@pytest.mark.parametrize("parse", [smelt.from_stablehlo, smelt_text.parse])
@pytest.mark.parametrize(
    "named",
    [r'func.func @"\FFa"() { return }', r'"func.func"() <{sym_name = "a\C3\28"}> ({ return })',
     r'func.func @f() attributes {"a.\FF" = 1} { return }', r'func.func @f() attributes {b = 1, "a.\FF"} { return }',
     r'func.func @f() { "a.\FF"() : () -> () }', r'func.func @f() { %0 = "a.\FF"() : () -> f32 }',
     r'func.func @f() { return loc("\FF":1:1) }', r'func.func @f() { return loc("\FF") }',
     r'func.func @f() { call @g() {mhlo.backend_config = {"\FF" = 1}} : () -> () }'],
)  # fmt: skip
def test_strings_are_texts(parse: Callable[[str], object], named: str) -> None:
    """The bindings hand out no other names and places; where they go through attributes that ended the process."""
    with pytest.raises(IRError, match="line 2: a string is no text"):
        parse(f"module {{\n{named}\n}}")
    smelt_text.check_text(r'func.func @"\C3\A4\\FF\22"() { return }')


def test_values_of_attributes_may_be_bytes_in_stablehlo() -> None:
    text = main(r'%y = stablehlo.custom_call @Sharding(%x) {backend_config = "\FF\00"} : (tensor<4xf32>) -> '
                "tensor<4xf32>\nreturn %y : tensor<4xf32>")  # fmt: skip
    assert smelt.from_stablehlo(text)(smelt.arange(4.0)).tolist() == [0, 1, 2, 3]
    with pytest.raises(IRError, match="line 1: a string is no text"):
        smelt_text.parse(r'module attributes {a.b = "\FF"} {}')


def test_constants_of_one_number_take_no_memory() -> None:
    body = "%c = stablehlo.constant dense<3.0> : tensor<1099511627776x4xf32>\n"
    body += "%d = stablehlo.slice %c [7:8, 0:4] : (tensor<1099511627776x4xf32>) -> tensor<1x4xf32>\n"
    body += "%e = stablehlo.reshape %d : (tensor<1x4xf32>) -> tensor<4xf32>\n"
    f = smelt.from_stablehlo(main(f"{body}%r = stablehlo.add %e, %x : tensor<4xf32>\nreturn %r : tensor<4xf32>"))
    assert f(smelt.arange(4.0)).tolist() == smelt.compile(f)(smelt.arange(4.0)).tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("number", ["1000", "0x7FC000002", "4294967295", "9223372036854775807", "99999999999999999999"])
@pytest.mark.parametrize("place", ["[b, {}, f]x[0, i, o]->[b, 0, f]", "[b, 0, f]x[{}, i, o]->[b, 0, f]",
                                   "[b, 0, f]x[0, i, o]->[b, // ]\n {}, f]"])  # fmt: skip
def test_dimensions_of_convolutions_that_no_array_has(place: str, number: str) -> None:
    """The parser made a vector of so many entries, which ended the process."""
    window = "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    types = "(tensor<1x4x2xf32>, tensor<3x2x5xf32>) -> tensor<1x2x5xf32>"
    body = "%0 = stablehlo.convolution(%x, %w) dim_numbers = DIMS, WINDOW : TYPES\nreturn %0 : tensor<1x2x5xf32>"
    body = body.replace("WINDOW", window).replace("TYPES", types)
    head = ("%x: tensor<1x4x2xf32>, %w: tensor<3x2x5xf32>", "tensor<1x2x5xf32>")
    right = main(body.replace("DIMS", place.format("0")), *head)
    assert smelt.from_stablehlo(right)(smelt.ones((1, 4, 2)), smelt.ones((3, 2, 5))).tolist() == [[[6.0] * 5] * 2]
    with pytest.raises(IRError, match=r"f.mlir:2: .* names a dimension that no array has"):
        smelt.from_stablehlo(main(body.replace("DIMS", place.format(number)), *head), name="f.mlir")


def test_arguments() -> None:
    f = smelt.from_stablehlo(main("return %x : tensor<4xf32>"))
    with pytest.raises(ArgumentTypeError, match="takes 1 array"):
        f()
    with pytest.raises(ShapeError, match=r"must be f32\[4\], is f32\[3\]"):
        f(smelt.zeros(3))
    with pytest.raises(DTypeError, match=r"must be f32\[4\], is i32\[4\]"):
        f(smelt.zeros(4, smelt.int32))
    with pytest.raises(ArgumentTypeError, match="must be an array"):
        f("x")
    for given in (None, 3, object()):
        with pytest.raises(ArgumentTypeError, match="needs text or the bytes"):
            smelt.from_stablehlo(given)


def test_notes_on_sharding_change_nothing() -> None:
    """As JAX writes a function of arrays with a NamedSharding."""
    text = """module @f attributes {mhlo.num_partitions = 1 : i32} {
  sdy.mesh @mesh = <["x"=1]> {stablehlo.mesh = {axes = [{name = "x", size = 1 : i64}]}}
  func.func public @main(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<2xf32> {
    %0 = stablehlo.tanh %x : tensor<2xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}"""
    x = smelt.array([0.5, 1.0])
    assert smelt.from_stablehlo(text)(x).tolist() == smelt.tanh(x).tolist()
    with pytest.raises(IRError, match=r"f.mlir:5:\d+"):
        smelt.from_stablehlo(text.replace("%0 <@mesh", "%0 @mesh"), name="f.mlir")


def resource(data: str) -> str:
    """A program with elements that stand behind the module."""
    body = "%c = stablehlo.constant dense_resource<w> : tensor<2xf32>\nreturn %c : tensor<2xf32>"
    text = main(body, "", "tensor<2xf32>")
    return f'{text}\n{{-#\n  dialect_resources: {{\n    builtin: {{\n      w: "0x04000000{data}"\n    }}\n  }}\n#-}}'


def test_elements_behind_the_module() -> None:
    assert smelt.from_stablehlo(resource("0000803F00000040"))().tolist() == [1.0, 2.0]
    with pytest.raises(IRError, match=r"holds w\w*, which the file gives as 4 bytes, for f32\[2\]"):
        smelt.from_stablehlo(resource("0000803F"))


@pytest.mark.parametrize("data", [b"\xff\xfe", b"ML\xefRnothing", b"ML\xefR" + bytes(99)])
def test_bytes(data: bytes) -> None:
    with pytest.raises((FileFormatError, IRError)):
        smelt.from_stablehlo(data)


def test_damaged_bytecode() -> None:
    data = bytearray(stablehlo.to_bytecode(program("mlp").text))
    random.Random(3).shuffle(data[40:])
    data[60:] = data[80:]
    with pytest.raises(FileFormatError):
        smelt.from_stablehlo(bytes(data))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit of time")
def test_bytecode_that_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With these bytes changed MLIR's reader looks for the end of an operation forever."""
    data = bytearray((FOLDER / "svd.bytecode").read_bytes())
    for at, value in {87: 3, 492: 8, 493: 0, 494: 0, 495: 0}.items():
        data[at] = value
    monkeypatch.setattr(stablehlo, "_READER_SECONDS", 1)
    with pytest.raises(FileFormatError, match="its reader comes to no end in 1 s"):
        smelt.from_stablehlo(bytes(data))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit of memory")
@pytest.mark.parametrize("kind", [0, 1, 3])  # of sections: texts, dialects, places of attributes
def test_bytecode_that_says_it_has_many_things_takes_little_memory(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR's reader makes room for as many as a number in the file says: a file of 1 KB took 8 GB, and more."""
    data = stablehlo.to_bytecode(program("mlp").text)
    monkeypatch.setattr(stablehlo, "_READER_BYTES", 1 << 28)
    smelt.from_stablehlo(data)
    for many in (1 << 27, 1 << 40):
        with pytest.raises(FileFormatError, match="wanted more than 256 MiB"):
            smelt.from_stablehlo(_with_a_count(data, kind, many))


def _with_a_count(data: bytes, kind: int, count: int) -> bytes:
    """Bytecode of which a section begins with another number."""
    reader = bytecode._Reader(data, 4, len(data))
    reader.number()
    reader.at = data.index(b"\0", reader.at) + 1
    while True:
        begin = reader.at
        found, start, end = reader.section()
        if found == kind:
            break
    first = bytecode._Reader(data, start, end)
    first.number()
    section = b"\0" + count.to_bytes(8, "little") + data[first.at : end]
    return data[:begin] + bytes([kind, 0]) + len(section).to_bytes(8, "little") + section + data[end:]


@pytest.mark.parametrize("seed", range(40))
def test_damaged_text_is_an_error_or_a_program(seed: int) -> None:
    draw = random.Random(seed)
    text = program(draw.choice(NAMES)).text
    lines = text.splitlines()
    for _ in range(draw.randint(1, 3)):
        i = draw.randrange(len(lines))
        how = draw.randrange(5)
        if how == 0:
            del lines[i]
        elif how == 1:
            lines[i] = lines[draw.randrange(len(lines))]
        elif how == 2:
            lines[i] = lines[i].replace("f32", draw.choice(["i32", "f64", "i1", "ui8", "complex<f32>"]))
        elif how == 3:
            lines[i] = "".join(draw.choice("0123456789") if c.isdigit() else c for c in lines[i])
        else:
            at = draw.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:at] + draw.choice("(){}<>[]%@:,x1") + lines[i][at:]
    with contextlib.suppress(smelt.SmeltError):
        smelt.from_stablehlo("\n".join(lines))


def test_calls_that_double_stay_small() -> None:
    """A function that calls the one before twice, forty times: each is read once."""
    functions = ["func.func private @f0(%x: tensor<f32>) -> tensor<f32> {\nreturn %x : tensor<f32>\n}"]
    for i in range(1, 40):
        call = f"call @f{i - 1}"
        functions.append(
            f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32> {{\n"
            f"%a = {call}(%x) : (tensor<f32>) -> tensor<f32>\n%b = {call}(%a) : (tensor<f32>) -> tensor<f32>\n"
            "return %b : tensor<f32>\n}"
        )
    functions.append(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n%a = call @f39(%x) : (tensor<f32>) -> tensor<f32>\n"
        "return %a : tensor<f32>\n}"
    )
    assert smelt.from_stablehlo("\n".join(functions)).results[0].shape == ()
