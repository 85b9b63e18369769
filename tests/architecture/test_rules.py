"""The rules of every op are annotated with the types of the contract: mypy cannot know what an op's fields ask for."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir.kinds import Elementwise
from smelt.ir.op import Op, registry

OPS = list(registry.values())


@dataclass(frozen=True)
class Rule:
    """What a rule's parameters are annotated with: those that every op has, its operands; what comes back."""

    first: dict[str, str]
    operand: str | None
    returns: tuple[str, ...]


BUILDER = {"b": "Builder"}
ELEMENT = {"k": "ScalarBuilder", "index": "Coordinates", "fetch": "Fetch", "operands": "Avals", "result": "Aval"}
ARRAYS = ("np.ndarray", "tuple[np.ndarray, ...]", "np.ndarray | tuple[np.ndarray, ...]")
RULES = {
    "infer": Rule({}, "Aval", ("Aval", "tuple[Aval, ...]", "Aval | tuple[Aval, ...]")),
    "reference": Rule({}, "np.ndarray", ARRAYS),
    "check": Rule({}, "np.ndarray", ("None",)),
    "verify": Rule({"operation": "Any"}, None, ("None",)),
    "jvp": Rule(
        {**BUILDER, "primals": "Values", "tangents": "Tangents", "results": "Values"}, None, ("Tangents",)
    ),
    "transpose": Rule(
        {**BUILDER, "cotangents": "Cotangents", "operands": "Values", "linear": "Flags"}, None, ("Cotangents",)
    ),
    "batch": Rule({**BUILDER, "operands": "Values", "dims": "Dims"}, None, ("Batched",)),
    "element": Rule(ELEMENT, None, ("Scalar",)),
    "lower": Rule({"k": "ScalarBuilder"}, "Scalar", ("Scalar",)),
    "step": Rule({"k": "ScalarBuilder"}, "Scalar", ("tuple[Scalar, Scalar]",)),
    "combine": Rule({"k": "ScalarBuilder"}, "Scalar", ("Scalar",)),
    "accumulate": Rule({"k": "ScalarBuilder", "total": "Scalar"}, "Scalar", ("Scalar",)),
    "identity": Rule({"dtype": "DType"}, None, ("float", "float | complex")),
    "result_dtype": Rule({"operand": "DType"}, None, ("DType",)),
    "map_index": Rule({"index": "Coordinates", "operand": "Aval", "result": "Aval"}, None, ("Coordinates",)),
    "depth": Rule({}, "Aval", ("tuple[int, ...]",)),
    "operand_indices": Rule({"place": "Coordinates", "depth": "Coordinates"}, "Aval", ("tuple[Access, ...]",)),
    "matmul_form": Rule({}, "Aval", ("MatmulForm", "MatmulForm | None")),
    "window_form": Rule({}, "Aval", ("WindowForm", "WindowForm | None")),
    "in_place": Rule({**BUILDER, "operands": "Values"}, None, ("Values",)),
    "work": Rule({}, "Aval", ("float",)),
    "host": Rule({}, "np.ndarray", ARRAYS),
    "extents": Rule({"dims": "dict[str, int]"}, None, ("dict[str, int]",)),
    "result_dtypes": Rule({"operand": "DType"}, None, ("Sequence[DType]",)),
    "sample": Rule({"rng": "np.random.Generator"}, "Aval", ("Sequence[np.ndarray]",)),
    "signature": Rule({"arguments": "Avals", "results": "Avals"}, None, ("Signature",)),
}
#: Steps of loops: they take the attributes that they need. (Those of elementwise ops are no steps.)
STEPS = ("step", "combine", "accumulate", "identity", "lower", "result_dtype")
#: A method of the same name that is no such rule: NumPy's side of scans.
OTHERS = {("scan", "accumulate")}


def rules_of(op: Op) -> list[str]:
    """The rules that the op has, of its own or from its kind."""
    cls = type(op)
    there = [name for name in RULES if getattr(cls, name, None) is not getattr(Op, name, None)]
    return [name for name in there if (op.kind, name) not in OTHERS]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_rules_have_the_types_of_the_contract(op: Op) -> None:
    for name in rules_of(op):
        rule, signature = RULES[name], inspect.signature(getattr(op, name))
        parameters = list(signature.parameters.values())
        where = f"smelt.{op.name}.{name}"
        assert signature.return_annotation in rule.returns, f"{where} returns {signature.return_annotation!r}"
        for parameter, (wanted, kind) in zip(parameters, rule.first.items(), strict=False):
            assert (parameter.name, parameter.annotation) == (wanted, kind), f"{where}: {wanted} is a {kind}"
        rest = parameters[len(rule.first) :]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in rest)
        for parameter in rest:
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD or (
                parameter.kind is parameter.VAR_POSITIONAL and not takes_any
            ):
                assert parameter.annotation == rule.operand, f"{where}: {parameter.name} is a {rule.operand}"
        named = {p.name: p.annotation for p in rest if p.kind is p.KEYWORD_ONLY}
        fields = {key: attr.type for key, attr in op.attrs.items()}
        assert named.items() <= fields.items(), f"{where}: attributes are annotated like their fields, {fields}"
        if not takes_any and (name not in STEPS or isinstance(op, Elementwise)):
            assert named == fields, f"{where} does not take {fields.keys() - named.keys()}"


@pytest.mark.parametrize("op", [op for op in OPS if op.kind != "transform"], ids=lambda op: op.name)
def test_rules_take_the_operands_by_their_names(op: Op) -> None:
    for name in ("infer", "reference"):
        parameters = inspect.signature(getattr(op, name)).parameters.values()
        found = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL))
        assert found in (op.operand_names, ("operands",)), f"smelt.{op.name}.{name} takes {found}"
