"""Functions of a StableHLO module as recorded functions: ops by a table of rules, regions and calls by recursion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes, stablehlo
from smelt.ir.aval import Aval
from smelt.ir.context import parse_aval
from smelt.ir.errors import IRError, SmeltError, shown
from smelt.ir.op import registry as ops

from ..functions.shaping import reshape
from ..lazy.arrays import array, broadcast_to_shape, convert, emit, wrap
from ..lazy.graph import GraphFunction, parameter, record_function
from ..transforms.recording import apply_function, tracing
from ..transforms.vmap import vmap
from . import narrow
from .translating import OpenAval, Refused, placed

#: Regions and calls nest no deeper.
MOST_DEEP = 60

#: What an op means: from the op to its results.
Rule = Callable[["Call"], "array | Sequence[array]"]
RULES: dict[str, Rule] = {}
#: Ops that work element by element, so that a region of these can be given arrays in place of scalars.
ELEMENTWISE: set[str] = set()


def rule(*names: str, elementwise: bool = False) -> Callable[[Rule], Rule]:
    """Enter a rule for ops of these names, such as ``stablehlo.add``."""

    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
            if elementwise:
                ELEMENTWISE.add(name)
        return function

    return enter


#: An attribute whose elements stand behind the module, and where they stand there.
_RESOURCE = re.compile(r"dense_resource<(\"[^\"]*\"|[\w.$-]+)>")
_BLOB = re.compile(r"^\s*(\"[^\"]*\"|[\w.$-]+): \"0x([0-9A-Fa-f]*)\"", re.MULTILINE)


class Call:
    """An op of the module with its operands translated: what a rule gets.

    Attributes:
        name: such as ``stablehlo.add``. operands: arrays. regions: see `Region`.
    """

    def __init__(self, reader: Reader, operation: Any, operands: Sequence[array], env: dict[Any, array]):
        self.reader, self.operation, self.env = reader, operation, env
        self.name: str = operation.name
        self.operands = list(operands)

    @property
    def x(self) -> array:
        """The first operand."""
        return self.operands[0]

    @property
    def avals(self) -> list[Aval]:
        """The types of the results."""
        return [self.reader.aval(result.type) for result in self.operation.results]

    @property
    def aval(self) -> Aval:
        return self.avals[0]

    @property
    def regions(self) -> list[Region]:
        return [Region(self, region) for region in self.operation.regions]

    def attribute(self, name: str) -> Any:
        """An attribute of MLIR; None where the op has none of that name."""
        found = self.operation.attributes
        return found.get(name)

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """An array of integers, whether MLIR holds it as an array or as elements of a tensor (flattened)."""
        found = self.attribute(name)
        if found is None:
            return tuple(default)
        if hasattr(found, "is_splat"):
            return tuple(int(i) for i in elements(found).reshape(-1))
        return tuple(int(i) for i in found)

    def int(self, name: str, default: int = 0) -> int:
        found = self.attribute(name)
        return default if found is None else int(found.value)

    def flag(self, name: str) -> bool:
        found = self.attribute(name)
        return False if found is None else bool(found.value)

    def text(self, name: str) -> str:
        found = self.attribute(name)
        return "" if found is None else str(found.value)

    def word(self, name: str) -> str:
        """The value of an enumeration, such as ``LT``; empty where there is none."""
        found = self.attribute(name)
        return "" if found is None else str(found).rstrip(">").rpartition(" ")[2]


class Region:
    """A region of an op: a function of its arguments and of all values around it."""

    def __init__(self, call: Call, region: Any):
        self.call, self.reader = call, call.reader
        blocks = list(region.blocks)
        if len(blocks) != 1:
            raise Refused(f"has a region of {len(blocks)} blocks; regions have one")
        self.block = blocks[0]

    @property
    def operations(self) -> list[Any]:
        return list(self.block.operations)

    @property
    def returned(self) -> list[Any]:
        """The MLIR values that its terminator returns."""
        return list(self.operations[-1].operands)

    def __call__(self, *arguments: array) -> list[array]:
        return self.reader.block(self.block, arguments, self.call.env)

    def over(self, *arguments: array) -> list[array]:
        """The function, which is of scalars, for each element of arrays of one shape."""
        if all(op.name in ELEMENTWISE for op in self.operations[:-1]):
            shape = arguments[0].shape if arguments else ()
            return [broadcast_to_shape(y, shape) for y in self(*arguments)]
        shape = arguments[0].shape
        flat = [reshape(x, (-1,)) if x.size else reshape(x, (0,)) for x in arguments]
        found = vmap(lambda *xs: self(*xs))(*flat)
        return [reshape(y, shape) for y in found]

    def single(self) -> str | None:
        """The name of the one op of two arguments that it applies to its own, in their order or exchanged."""
        found = self.operations
        if len(found) != 2 or len(self.block.arguments) != 2:
            return None
        op = found[0]
        if list(self.returned) != list(op.results):
            return None
        given = list(op.operands)
        mine = list(self.block.arguments)
        return op.name if given in (mine, mine[::-1]) else None

    def is_choice(self) -> int | None:
        """Which argument it returns, if it does nothing else."""
        found, mine = self.operations, list(self.block.arguments)
        if len(found) == 1 and len(self.returned) == 1 and self.returned[0] in mine:
            return mine.index(self.returned[0])
        return None


class Reader:
    """Reads functions of a module, each once.

    Args:
        module: of StableHLO's context. name: of the file, for errors.
    """

    def __init__(self, module: Any, name: str):
        self.name, self._module = name, module
        self.functions = {}
        self._avals: dict[Any, Aval] = {}
        for operation in module.body.operations:
            if operation.operation.name == "func.func":
                self.functions[str(operation.attributes["sym_name"].value)] = operation.operation
        self._made: dict[str, GraphFunction | None] = {}
        self._depth = 0
        self._found_blobs: dict[str, str] | None = None

    @property
    def _blobs(self) -> dict[str, str]:
        """Elements that stand behind the module, as PyTorch's weights do: hexadecimal, by name."""
        if self._found_blobs is None:
            found = _BLOB.finditer(str(self._module))
            self._found_blobs = {match[1].strip('"'): match[2] for match in found}
        return self._found_blobs

    def resource(self, attr: Any) -> np.ndarray | None:
        """The elements of a ``dense_resource``; None for other attributes."""
        match = _RESOURCE.match(str(attr))
        if match is None:
            return None
        if narrow.narrow_of(attr.type):
            raise Refused(f"holds elements of {attr.type.element_type} behind the module; write them in place")
        aval, text = self.aval(attr.type), self._blobs.get(match[1].strip('"'), "")
        kind = np.dtype(np.bool_) if aval.dtype is dtypes.bool_ else aval.dtype.numpy
        data = bytes.fromhex(text)[4:]  # behind the alignment
        if len(data) != aval.size * kind.itemsize:
            raise Refused(f"holds {match[1]}, which the file gives as {len(data)} bytes, for {aval}")
        return np.frombuffer(data, kind).reshape(aval.shape)

    def entry(self) -> str:
        """The function that is the program: ``main``, or the only one that is public."""
        if "main" in self.functions:
            return "main"
        public = [
            name for name, operation in self.functions.items()
            if "sym_visibility" not in operation.attributes or operation.attributes["sym_visibility"].value == "public"
        ]  # fmt: skip
        if len(public) == 1:
            return public[0]
        raise IRError(f"{self.name}: the module has no function @main, and {len(public)} others that are public")

    def aval(self, kind: Any) -> Aval:
        """The aval of an MLIR type of StableHLO's context."""
        found = self._avals.get(kind)
        if found is None:
            try:
                found = self._avals[kind] = narrow.held(kind) or parse_aval(kind)
            except SmeltError as error:
                hint = "lower it for arguments of given sizes, or call it by smelt.from_stablehlo"
                how = f"; {hint}" if "?" in str(kind) else ""
                raise Refused(f"has a value of type {kind}: {error}{how}") from None
        return found

    def signature(self, name: str) -> tuple[list[Aval], list[Aval]]:
        """Types of the arguments and of the results of a function."""
        return self._signature(name, self.aval)

    def open_signature(self, name: str) -> tuple[list[Aval | OpenAval], list[Aval | OpenAval]]:
        """`signature` as the program's user sees it: extents may be open, and narrow numbers are codes."""
        return self._signature(name, lambda kind: OpenAval.of(kind) or narrow.held(kind, given=True) or self.aval(kind))

    def _signature(self, name: str, read: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
        kind = self.functions[name].attributes["function_type"].value
        try:
            return [read(t) for t in kind.inputs], [read(t) for t in kind.results]
        except Refused as error:
            raise IRError(f"{self.name}: @{name} {error}") from None

    def function(self, name: str) -> GraphFunction:
        """The function of that name, recorded.

        Raises:
            IRError: there is none, it calls itself, or something in it has no translation.
        """
        if name not in self.functions:
            raise IRError(f"the module has no function @{name}")
        if name not in self._made:
            self._made[name] = None
            arguments, results = self.signature(name)
            blocks = list(self.functions[name].regions[0].blocks)
            if len(blocks) != 1:
                raise IRError(f"{self.name}: @{name} has {len(blocks)} blocks; functions have one")
            with tracing():
                refs = [parameter(aval) for aval in arguments]
                outs = self.block(blocks[0], [wrap(ref) for ref in refs], {})
                for out, aval in zip(outs, results):
                    if out.aval != aval:
                        raise IRError(f"{self.name}: @{name} returns {out.aval}, not {aval}")
                found = record_function(_plain(name), refs, [x._ref for x in outs], keep_outside=False)
            self._made[name] = found
        made = self._made[name]
        if made is None:
            raise IRError(f"@{name} calls itself")
        return made

    def program(self, name: str) -> GraphFunction:
        """`function`, of arguments and results as its user has them."""
        kind = self.functions[name].attributes["function_type"].value
        arguments, results = ([narrow.narrow_of(t) for t in types] for types in (kind.inputs, kind.results))
        if not any((*arguments, *results)):
            return self.function(name)
        avals = [narrow.held(t, given=True) or self.aval(t) for t in kind.inputs]
        with tracing():
            refs = [parameter(aval) for aval in avals]
            given = [n.decoded(wrap(x)) if n else wrap(x) for n, x in zip(arguments, refs)]
            outs = [n.encoded(x) if n else x for n, x in zip(results, self.call(name, given))]
            return record_function(_plain(name), refs, [x._ref for x in outs], keep_outside=False)

    def call(self, name: str, arguments: Sequence[array]) -> list[array]:
        """A node that applies a function of the module."""
        f = self.function(name)
        refs = [*(x._ref for x in arguments), *f.captured]
        return apply_function(f, (), refs, f.results)

    def block(self, block: Any, arguments: Iterable[array], around: dict[Any, array]) -> list[array]:
        """What the terminator of a block returns, for these arguments."""
        if self._depth >= MOST_DEEP:
            raise IRError(f"{self.name}: regions and calls nest more than {MOST_DEEP} deep")
        self._depth += 1
        try:
            env = dict(around)
            env.update(zip(block.arguments, arguments))
            for operation in block.operations:
                operation = operation.operation
                if operation.name in ("func.return", "stablehlo.return"):
                    return [env[value] for value in operation.operands]
                for value, result in zip(operation.results, self._results(operation, env)):
                    env[value] = result
        finally:
            self._depth -= 1
        raise IRError(f"{self.name}: a block does not end with a return")

    def extend(self, block: Any, env: dict[Any, array]) -> None:
        """Translate the ops of a block into `env`, without its terminator."""
        for operation in block.operations:
            operation = operation.operation
            if operation.name not in ("func.return", "stablehlo.return"):
                for value, result in zip(operation.results, self._results(operation, env)):
                    env[value] = result

    def _results(self, operation: Any, env: dict[Any, array]) -> Sequence[array]:
        name = operation.name
        with placed(lambda refused: f"{self.place(operation)}: {name}{' ' if refused else ': '}"):
            found = RULES.get(name)
            if found is None:
                raise Refused(_unknown(name))
            operands = [env[value] for value in operation.operands]
            call = Call(self, operation, operands, env)
            narrow_types = [narrow.narrow_of(value.type) for value in operation.results]
            read = [narrow.narrow_of(value.type) for value in operation.operands]
            checked = any(narrow_types) or any(read)
            if checked and name == "stablehlo.bitcast_convert":
                return (narrow.bitcast(call.x, read[0], narrow_types[0], call.aval),)
            if checked and name in narrow.SHIFTS | narrow.COUNTS and read[0]:
                return (read[0].on_bits(name, operands, lambda taken: _one(found(Call(self, operation, taken, env)))),)
            if checked and name not in narrow.EXACT | narrow.ROUNDED:
                raise Refused(_of_narrow(operation))
            results = found(call)
            results = (results,) if isinstance(results, array) else results
            if checked and name in narrow.ROUNDED:
                return [n.rounded(x) if n else x for n, x in zip(narrow_types, results)]
            return results

    def place(self, operation: Any) -> str:
        """Where an op stands in the text, as file:line:column."""
        location = str(operation.location).removeprefix("loc(").removesuffix(")").replace('"', "")
        return f"{self.name}{location[1:]}" if location.startswith("-:") else f"{self.name} ({location})"


def _one(results: array | Sequence[array]) -> array:
    """The result of an op that has one."""
    return results if isinstance(results, array) else results[0]


def _plain(name: str) -> str:
    """A name as a symbol of a module needs no quotes for."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return kept if kept and not kept[0].isdigit() else f"f{kept}"


def _unknown(name: str) -> str:
    dialect = name.partition(".")[0]
    if dialect not in ("stablehlo", "chlo", "func"):
        return f"is an op of the dialect {dialect}, not of StableHLO: lower it to StableHLO first"
    return "has no translation; rewrite the program without it, or enter a rule for it in smelt.exchange.reading.RULES"


def _of_narrow(operation: Any) -> str:
    values = (*operation.operands, *operation.results)
    (kind, *_) = (value.type for value in values if narrow.narrow_of(value.type))
    return f"of {kind.element_type} has no translation; convert it to a wider type first, and back"


def elements_of(operation: Any) -> np.ndarray:
    """The elements of a ``constant``."""
    kind = operation.results[0].type
    held = narrow.held(kind)
    aval = held or parse_aval(kind)
    if held or aval.dtype.is_complex or aval.dtype is dtypes.bfloat16:  # the bindings have no class for the attribute
        text = operation.get_asm(large_elements_limit=None, enable_debug_info=False)
        return stablehlo.as_numbers(text.partition("constant ")[2], aval, str(kind)).astype(aval.dtype.numpy)
    return elements(operation.attributes["value"])


def elements(attr: Any) -> np.ndarray:
    """The elements of a DenseElementsAttr as an array of the dtype that smelt has for them."""
    aval = parse_aval(attr.type)
    kind = aval.dtype
    try:
        if attr.is_splat:
            value = attr.get_splat_value().value
            with np.errstate(all="ignore"):
                return np.broadcast_to(np.asarray(value).astype(kind.numpy), aval.shape)
        return np.array(attr).astype(kind.numpy).reshape(aval.shape)
    except (TypeError, ValueError, AttributeError) as error:
        raise Refused(f"holds elements that cannot be read: {shown(error)}") from None


def constant_of(values: np.ndarray) -> array:
    """A constant of the program; large ones are arrays beside it."""
    kind = dtypes.of(values.dtype)
    if (values.size and values.size == 1) or (values.size > 1 and _same(values)):
        first = values.flat[0]
        value = float(first) if kind is dtypes.bfloat16 else first.item()
        scalar = emit(ops["constant"], (), {"value": value, "dtype": kind})
        return broadcast_to_shape(scalar, values.shape)
    if kind is dtypes.bfloat16:
        return convert(constant_of(values.astype(np.float32)), kind)
    if kind.is_complex:
        return emit(ops["complex"], (constant_of(values.real.copy()), constant_of(values.imag.copy())))
    return emit(ops["literal"], (), {"value": np.ascontiguousarray(values).reshape(values.shape)})


def _same(values: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    if not any(values.strides):  # one element, repeated
        return True
    raw = np.ascontiguousarray(values).reshape(-1)
    first = raw[:1].view(np.uint8).tobytes()
    return raw.tobytes() == first * raw.size


def owner_of(value: Any) -> Any:
    """The op that a value of MLIR is a result of; None for an argument."""
    owner = value.owner
    return None if not hasattr(owner, "name") else getattr(owner, "operation", owner)
