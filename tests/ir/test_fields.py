"""Fields of ops: whatever an annotation says that no field can be is an error where the class is defined."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import kinds, op, text
from smelt.ir.errors import AttributeValueError, IRError
from smelt.ir.op import FIELD_TYPES, Op, registry

#: What a module begins with that defines an op as it should.
HEAD = """
from __future__ import annotations
import typing as t
from typing import Any, ClassVar
from smelt.ir import op
from smelt.ir.kinds import *
from smelt.ir.op import *
"""
#: The body of a class, and the error about it.
WRONG = {
    "float": ("scale: float", "annotation of scale is 'float'; write Operand, Operands, Ints"),
    "int": ("axis: int = 0", "annotation of axis is 'int'; write"),
    "tuple": ("axes: tuple[int, ...]", r"annotation of axes is 'tuple\[int, ...\]'; write"),
    "unknown": ("x: Tensor", "annotation of x is 'Tensor'; write"),
    "optional": ("axis: Int | None = None", "annotation of axis is 'Int . None'; write"),
    "qualified": ("x: op.Operand", "annotation of x is 'op.Operand'; write"),
    "any": ("x: Any", "annotation of x is 'Any'; write"),
    "after a right one": ("x: Operand\n    cache: dict", "annotation of cache is 'dict'; .* or ClassVar"),
    "not a class variable": ("x: MyClassVar", "annotation of x is 'MyClassVar'; write"),
    "operand with a default": ("x: Operand = None", "field x is an operand, which has no default"),
    "operand after many": ("xs: Operands\n    y: Operand", "field y comes after xs, .* Operands stand last"),
    "many twice": ("xs: Operands\n    ys: Operands", "field ys comes after xs"),
    "rule": ("reference: Int", "field reference is called like Op.reference; choose another name"),
    "class variable of ops": ("name: Str", "field name is called like Op.name"),
    "property of ops": ("example: Str", "field example is called like Op.example"),
    "parameter of rules": ("index: Int", "field index is called like a parameter of rules"),
}


def define(source: str) -> dict[str, Any]:
    """The names of a module with this text."""
    names: dict[str, Any] = {"__name__": "a_module"}
    exec(compile(source, "a_module.py", "exec", dont_inherit=True), names)
    return names


@pytest.fixture(autouse=True)
def _as_before() -> Any:
    before = dict(registry)
    yield
    assert dict(registry) == before, "an op that is not right is not registered"


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("owner", ["op", "kind"])
def test_annotations_that_are_no_fields(what: str, owner: str) -> None:
    body, message = WRONG[what]
    name, shown = (', name="acme_op"', r"smelt\.acme_op") if owner == "op" else ("", "Acme")
    with pytest.raises(AttributeValueError, match=f"^{shown}: the {message}"):
        define(f"{HEAD}class Acme(Op{name}):\n    {body}\n")


@pytest.mark.parametrize("annotation", ["Operand", "Int", "t.Any", "3", "list[int]", "Op"])
def test_annotations_that_are_no_text(annotation: str) -> None:
    head = HEAD.replace("from __future__ import annotations", "")
    with pytest.raises(AttributeValueError, match=r"^smelt\.acme_op: .*from __future__ import annotations"):
        define(f'{head}class Acme(Op, name="acme_op"):\n    x: {annotation}\n')


@pytest.mark.parametrize("field", ["x: Operand", "axes: Operand"])
def test_an_inherited_field_is_no_operand_again(field: str) -> None:
    with pytest.raises(AttributeValueError, match="is one of its base class already"):
        define(f'{HEAD}class Acme(Reduction, name="acme_op"):\n    {field}\n')


def test_the_error_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "acme_ops.py"
    path.write_text(f'{HEAD}\n\nclass Acme(Op, name="acme_op"):\n    x: Tensor\n')
    with pytest.raises(AttributeValueError, match=r"; at .*acme_ops\.py:\d+$"):
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), {"__name__": "acme_ops"})


RIGHT = """
class Kind(Op):
    x: Operand
    axis: Int = 0
    limit: ClassVar[int] = 3
    other: t.ClassVar = None
    plain = 4

class Acme(Kind):
    xs: "Operands"
    axis: Int = 1
    names: 'Str'
    accepts: ClassVar[Any]
"""


def test_fields_and_class_variables() -> None:
    acme = define(HEAD + RIGHT)["Acme"]
    assert acme.operand_names == ("x", "xs") and acme.variadic
    assert acme.attrs == {"axis": op.Attr("Int", 1, False), "names": op.Attr("Str", None, True)}


def test_class_variables_need_no_text() -> None:
    head = HEAD.replace("from __future__ import annotations", "")
    acme = define(f"{head}class Acme(Op):\n    limit: ClassVar[int] = 3\n    other: t.ClassVar = None\n")["Acme"]
    assert not acme.attrs and not acme.operand_names


def test_every_field_type_is_a_name_of_the_module() -> None:
    for name in FIELD_TYPES:
        assert hasattr(op, name)


def test_parameters_of_rules_are_no_names_of_attributes() -> None:
    """Rules are called with attributes by name: one that is called like a parameter could not be passed."""
    for cls in [Op, *(c for c in vars(kinds).values() if isinstance(c, type) and issubclass(c, Op))]:
        for name, rule in inspect.getmembers(cls, inspect.isfunction):
            parameters = inspect.signature(rule).parameters.values()
            if name.startswith("_") or not any(p.kind is p.VAR_KEYWORD for p in parameters):
                continue
            named = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
            missing = named - op._PARAMETERS - {"self"} - set(cls.operand_names)
            assert not missing, f"{cls.__name__}.{name} has the parameters {missing}"
    assert not re.findall(r"\W", "".join(op._PARAMETERS))


@pytest.mark.parametrize(
    "text_",
    [
        '%0 = "smelt.constant"() {dtype = i32, value = VALUE : i20000} : () -> tensor<i32>',
        '%0 = "smelt.sort"(%x) {axis = VALUE : i20000} : (tensor<4xf32>) -> tensor<4xf32>',
        '%0 = "smelt.integer_power"(%x) {exponent = VALUE : i128} : (tensor<4xf32>) -> tensor<4xf32>',
    ],
)
@pytest.mark.parametrize("digits", [25, 4400])
def test_integers_of_any_width_are_errors(text_: str, digits: int) -> None:
    """MLIR has integers of any width; Python refuses to write those of more than 4300 digits."""
    if "i128" in text_ and digits > 38:
        pytest.skip("MLIR refuses it")
    line = text_.replace("VALUE", "9" * digits)
    with pytest.raises(IRError, match="must be"):
        text.parse(f"func.func @main(%x: tensor<4xf32>) {{\n{line}\nreturn }}")
