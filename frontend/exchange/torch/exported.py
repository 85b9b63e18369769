"""A module of PyTorch, exported for arguments of certain types: its graph, and what its inputs and results are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from smelt import array
from smelt.ir.errors import ArgumentTypeError, DTypeError, IRError, ShapeError, SmeltError, shown

from ..translating import PlacedError
from .graph import DTYPES, Program, constant, on_numbers, rule_of, stated

#: Rounds of expanding ops by PyTorch's own definitions.
_MOST_ROUNDS = 4


class Exported:
    """An exported program.

    Args:
        torch: the package. program: of torch.export. name: for errors.

    Attributes:
        changed: names of buffers to which the program writes.
    """

    def __init__(self, torch: Any, program: Any, name: str):
        self.name, self._torch = name, torch
        try:
            self._exported = program = decomposed(torch, program)
        except Exception as error:  # of PyTorch's definitions, of many kinds
            raise IRError(f"{name}: PyTorch's definitions of its ops fail: {first_lines(error)}") from error
        self._graph = Program(torch, name)
        signature = program.graph_signature
        self._inputs, self._outputs = signature.input_specs, signature.output_specs
        self._constants = {
            spec.target: _constant(name, spec.target, program.constants[spec.target])
            for spec in self._inputs
            if spec.kind.name == "CONSTANT_TENSOR"
        }
        self._fakes = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
        self.changed = [spec.target for spec in self._outputs if spec.kind.name == "BUFFER_MUTATION"]
        written = [spec.target for spec in self._outputs if spec.kind.name == "USER_INPUT_MUTATION"]
        if written:
            raise IRError(f"{name} writes to its argument {written[0]}, and arrays do not change: clone it there first")

    def call(self, weights: Mapping[str, array], leaves: Sequence[Any]) -> tuple[Any, dict[str, array]]:
        """The results as the module returns them, and the new values of the buffers to which it writes.

        Args:
            leaves: of its arguments, in order.
        """
        rest, values = iter(leaves), []
        for spec in self._inputs:
            kind = spec.kind.name
            if kind == "USER_INPUT":
                values.append(self._checked(spec.arg, next(rest)))
            elif kind == "CONSTANT_TENSOR":
                values.append(self._constants[spec.target])
            elif kind in ("PARAMETER", "BUFFER"):
                values.append(weights[spec.target])
            else:  # a token, which orders effects, or an object of C++
                values.append(None)
        results, changed, found = [], {}, self._graph.run(self._exported.graph_module, values)
        for spec, value in zip(self._outputs, found):
            if spec.kind.name == "USER_OUTPUT":
                results.append(value)
            elif spec.kind.name == "BUFFER_MUTATION":
                changed[spec.target] = value
        return self._torch.utils._pytree.tree_unflatten(results, self._exported.call_spec.out_spec), changed

    def leaves(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """The leaves of arguments of the structure that was exported.

        Raises:
            ArgumentTypeError: another structure.
        """
        pytree, wanted = self._torch.utils._pytree, self._exported.call_spec.in_spec
        order = wanted.children()[1].context
        if set(named) == set(order):
            named = {key: named[key] for key in order}
        leaves, spec = pytree.tree_flatten((args, dict(named)))
        if spec != wanted:
            own = pytree.tree_unflatten([self._stated(s.arg) for s in self._user_inputs()], wanted)
            how = ", ".join([*map(str, own[0]), *(f"{k}={v}" for k, v in own[1].items())])
            raise ArgumentTypeError(f"{self.name} takes ({how}), is given {len(args)} and {', '.join(named) or 'none'}")
        return list(leaves)

    def _user_inputs(self) -> list[Any]:
        return [spec for spec in self._inputs if spec.kind.name == "USER_INPUT"]

    def _stated(self, argument: Any) -> str:
        """An input as text."""
        fake = self._fakes.get(argument.name)
        if not hasattr(fake, "dtype"):
            return repr(getattr(argument, "value", fake))
        return str(stated(fake))

    def _checked(self, argument: Any, value: Any) -> Any:
        fake = self._fakes.get(argument.name)
        what = f"argument {argument.name} of {self.name} must be {self._stated(argument)}"
        if not hasattr(fake, "dtype"):
            if hasattr(argument, "value") and (type(value) is not type(argument.value) or value != argument.value):
                raise ArgumentTypeError(f"{what}, is {shown(value)}: the program was exported for that value")
            return value
        wanted = stated(fake)
        if not isinstance(value, array):
            raise ArgumentTypeError(f"{what}, is {shown(value)}")
        if len(value.shape) != len(wanted.shape) or any(d not in (None, n) for n, d in zip(value.shape, wanted.shape)):
            raise ShapeError(f"{what}, is {value.aval}")
        if value.dtype is not wanted.dtype:
            raise DTypeError(f"{what}, is {value.aval}; convert it with .astype")
        return value


def _constant(name: str, target: str, tensor: Any) -> array:
    try:
        return constant(tensor)
    except SmeltError as error:
        raise IRError(f"{name}: {target} {error}") from None


def weights_of(name: str, tensors: Sequence[tuple[str, Any]]) -> dict[str, array]:
    """Parameters and buffers as arrays; those that are one tensor are one array."""
    made: dict[int, array] = {}
    found = {}
    for target, tensor in tensors:
        if id(tensor) not in made:
            made[id(tensor)] = _constant(name, target, tensor)
        found[target] = made[id(tensor)]
    return found


def exported(torch: Any, module: Any, args: tuple[Any, ...], named: dict[str, Any], name: str) -> Any:
    """What torch.export makes of a module.

    Raises:
        IRError: it cannot: why.
    """
    try:
        return torch.export.export(module, args, named)
    except Exception as error:  # its many kinds, and those of the module
        raise PlacedError(f"{name}: torch.export fails: {first_lines(error)}") from error


def first_lines(error: Exception) -> str:
    """What an error of PyTorch says in its first paragraph, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).strip().partition(chr(10) * 2)[0].split())}"


def tensor_for(torch: Any, x: array, device: Any) -> Any:
    """A tensor of an array's type: torch.export looks at nothing else."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    return torch.zeros(x.shape, dtype=getattr(torch, names[x.dtype]), device=device)


def decomposed(torch: Any, program: Any) -> Any:
    """A program in ops that have rules, as far as PyTorch defines the others by such."""
    if not _unknown(program):
        return program
    table = torch.export.default_decompositions()
    for op in list(table.keys()):
        if rule_of(str(op)) is not None:
            table.pop(op)
    program = program.run_decompositions(table)
    for _ in range(_MOST_ROUNDS):
        unknown = [op for op in _unknown(program) if isinstance(op, torch._ops.OpOverload)]
        more: Mapping[Any, Callable[..., Any]] = torch._decomp.get_decompositions(unknown)
        if not more:
            break
        program = program.run_decompositions(dict(more))
    return program


def _unknown(program: Any) -> set[Any]:
    """What a program calls that has no rule."""
    targets = {node.target for node in _calls(program.graph_module)}
    return {op for op in targets if rule_of(str(op)) is None and not on_numbers(op)}


def _calls(module: Any) -> Iterator[Any]:
    """The nodes that call an op, those of subgraphs too."""
    for part in module.modules():
        if hasattr(part, "graph"):
            yield from (node for node in part.graph.nodes if node.op == "call_function")
