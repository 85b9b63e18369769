"""Programs that the rules of a rewrite match: their patterns on arguments of several dtypes and shapes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value, function_type, new_function
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.errors import IRError, SmeltError

from .terms import Applied, Attr, Const, Number, Rule, Term, Variable, subterms

SHAPES = ((5,), (3, 3), (2, 3, 4), (), (1, 4), (2, 1, 2), (0, 3))
#: Numbers that constants of patterns are, beside those of the rule itself.
NUMBERS = (2.0, 0.5, -3.0, 1.0, -1.0, 0.0, -0.0, 0.1, 7.0, 1e4, float("inf"), float("nan"))
INTEGERS = (2, 1, 0, 3, 7, 100)
#: Attributes tried for one choice of types, and choices of types for one dtype, at most.
MAX_ATTRIBUTES, MAX_TYPES = 60, 3
#: Choices of attributes that fail, before others of types are tried; and candidates for the attributes of one op.
MAX_REFUSED, MAX_CHOICES = 8, 50

#: What a variable is in an instance: its type, and of a `Const` its number.
Chosen = dict[str, Any]
#: What a variable is in a program: a value, or of a `Const` its number with a type.
Made = dict[str, Any]


class Instance:
    """The pattern of a rule as ``@main`` of a module, whose arguments are the variables."""

    def __init__(self, module: Any, dtype: DType, arguments: list[Aval], shown: str):
        self.module, self.dtype, self.arguments, self.shown = module, dtype, arguments, shown


def instances(
    rule: Rule, dtype: DType, seed: int = 0, most: int = 40, examples: Sequence[dict[str, Any]] = ()
) -> Iterator[Instance]:
    """Programs that have the pattern of a rule, on arguments of `dtype` (others may be bools or indices); of the shapes
    and attributes of examples, or of any."""
    rng = random.Random(f"{seed} {dtype.name} {rule.pattern}")
    names = list(dict.fromkeys(x.name for x in subterms(rule.pattern) if isinstance(x, Variable)))
    consts = {x.name for x in subterms(rule.pattern) if isinstance(x, Const)}
    made = 0
    chosen: Chosen
    if examples:
        for given in examples:
            chosen = {name: Aval(given[name], dtype) for name in names}
            attributes = {key: [value] for key, value in given.items() if key not in names}
            for numbers in _numbers(sorted(consts), chosen, rng):
                found = _with_attributes(rule, dtype, (), names, {**chosen, **numbers}, rng, attributes)
                yield from itertools.islice(found, 1)
        return
    alike = [(shape,) * len(names) for shape in SHAPES]
    mixed = itertools.product(((3, 3), (3,)), repeat=len(names)) if len(names) <= 4 else ()
    for shapes in itertools.chain(alike, mixed):
        if shapes not in alike and made:
            return
        shape, fits = max(shapes, key=len, default=()), 0
        for types in _types(dtype, len(names)):
            avals = {name: Aval(s, t) for name, s, t in zip(names, shapes, types)}
            fitting = False
            for numbers in _numbers(sorted(consts), avals, rng):
                chosen = {**avals, **numbers}
                for instance in itertools.islice(_with_attributes(rule, dtype, shape, names, chosen, rng), 4):
                    fitting = True
                    yield instance
                    made += 1
                    if made >= most:
                        return
            fits += fitting
            if fits >= MAX_TYPES:
                break


def _types(dtype: DType, count: int) -> Iterator[tuple[DType, ...]]:
    """Types of variables: all alike; then some bools or indices."""
    yield (dtype,) * count
    if count <= 4:
        for chosen in itertools.product((dtype, dtypes.bool_, dtypes.int32), repeat=count):
            if dtype in chosen and len(set(chosen)) > 1:
                yield chosen


def _numbers(names: list[str], avals: dict[str, Aval], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Numbers for the constants of a pattern: all of one, or twelve draws of several."""
    if not names:
        yield {}
        return

    def choices(name: str) -> tuple[Any, ...]:
        dtype = avals[name].dtype
        if dtype is dtypes.bool_ or dtype.is_inexact:
            return NUMBERS if dtype.is_inexact else (False, True)
        info = np.iinfo(dtype.numpy)
        return (*INTEGERS, *((-1, -3) if info.min else ()), int(info.min), int(info.max))

    if len(names) == 1:
        for c in choices(names[0]):
            yield {f"{names[0]} =": c}
        return
    for _ in range(12):
        yield {f"{name} =": rng.choice(choices(name)) for name in names}


def _with_attributes(
    rule: Rule, dtype: DType, shape: tuple[int, ...], names: list[str], chosen: Chosen, rng: random.Random,
    attributes: dict[str, list[Any]] | None = None,
) -> Iterator[Instance]:  # fmt: skip
    """Instances for attributes that the ops take, or for those that are given."""
    assert isinstance(rule.pattern, Applied)
    open_attrs = _open(rule.pattern)
    given = attributes or {}
    candidates = {
        key: given.get(key if isinstance(key, str) else key[1]) or _candidates(kind, shape, dtype)
        for key, kind in open_attrs.items()
    } | given
    refused = 0
    for _ in range(MAX_ATTRIBUTES if open_attrs and not attributes else 1):
        for found in candidates.values():
            rng.shuffle(found)
        try:
            yield _built(rule.pattern, dtype, names, chosen, candidates)
        except (SmeltError, IndexError, ValueError, TypeError):  # an op does not take these types or attributes
            refused += 1
            if refused == MAX_REFUSED:
                return


def _open(x: Term) -> dict[Any, str]:
    """The attributes that a pattern leaves open, with their types: by name, or by the op and its attribute."""
    found: dict[Any, str] = {}
    for y in subterms(x):
        for name, spec in y.op.attrs.items() if isinstance(y, Applied) else ():
            value = y.attrs.get(name) if isinstance(y, Applied) else None
            if isinstance(value, Attr):
                found[value.name] = spec.type
            elif isinstance(y, Applied) and name not in y.attrs:
                found[(id(y), name)] = spec.type
    return found


def _candidates(kind: str, shape: tuple[int, ...], dtype: DType) -> list[Any]:
    """Attributes of a type that ops on arrays of a shape may take."""
    ndim = len(shape)
    if kind == "Ints":
        found: set[tuple[int, ...]] = {shape, shape[::-1], (2, *shape), (1, *shape), (*shape, 1)}
        found |= set(itertools.permutations(range(ndim)))
        found |= {axes for n in range(ndim + 1) for axes in itertools.combinations(range(ndim), n)}
        found |= {(n,) * ndim for n in (0, 1, 2)} | {tuple(d for d in shape if d != 1)}
        size = 1
        for d in shape:
            size *= d
        found |= {(size,), (1, size), *((d, size // d) for d in shape if d), (*shape[:-1], 1), (1, *shape[1:])}
        return sorted(found)
    if kind == "Int":
        return [-1, 0, 1, 2, 3]
    if kind == "Bool":
        return [False, True]
    if kind == "Element":
        return [dtype, *dtypes.ALL]
    if kind in ("Float", "Number"):
        return [0.5, 2.0, -1.0]
    return [None]


@mlir.locked
def _built(
    pattern: Applied, dtype: DType, names: list[str], chosen: Chosen, candidates: dict[Any, list[Any]]
) -> Instance:
    """A module with the pattern: of the candidates for attributes each op takes the first that it can. Raises
    SmeltError where an op does not take what it gets."""
    attributes: dict[Any, Any] = {}
    arguments = [name for name in names if f"{name} =" not in chosen]
    avals = [chosen[name] for name in arguments]
    module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
    operation, values, b = new_function(module, "main", avals, [], public=True)
    env: Made = dict(zip(arguments, values))
    env |= {name: (chosen[f"{name} ="], chosen[name]) for name in names if name not in env}
    result = _emit(b, pattern, env, attributes, candidates, None)
    b.return_([result])
    operation.attributes["function_type"] = mlir.ir.TypeAttr.get(function_type(avals, [result.aval]), context())
    text.verify(module)
    listed = [f"{name} = {chosen.get(f'{name} =', chosen[name])}" for name in names]
    listed += [f"{key} = {value}" for key, value in attributes.items() if isinstance(key, str)]
    return Instance(module, dtype, avals, ", ".join(listed))


def _emit(
    b: Builder, x: Term, env: Made, attributes: dict[Any, Any], candidates: dict[Any, list[Any]],
    beside: Aval | None,
) -> Value:  # fmt: skip
    if isinstance(x, Variable):
        made = env[x.name]
        if isinstance(made, tuple):  # a number, which has the shape of what is beside it wherever it stands
            number, aval = made
            return b.full(aval.shape if beside is None else beside.shape, number, aval.dtype)
        return made
    if isinstance(x, Number):
        if beside is None:
            raise IRError("a number that stands alone has no type")
        return b.full(beside.shape, x.value, beside.dtype)
    assert isinstance(x, Applied)

    def emitted(y: Term, beside: Aval | None) -> Value:
        return _emit(b, y, env, attributes, candidates, beside)

    operands: list[Any] = [None if isinstance(y, (Number, Const)) else emitted(y, None) for y in x.operands]
    near = next((v.aval for v in reversed(operands) if v is not None), None)
    for i, y in enumerate(x.operands):
        if operands[i] is None:
            operands[i] = emitted(y, near)
    keys: dict[str, Any] = {name: (id(x), name) for name in x.op.attrs if name not in x.attrs}
    keys |= {name: value.name for name, value in x.attrs.items() if isinstance(value, Attr)}
    fixed = {name: value for name, value in x.attrs.items() if name not in keys}
    choices = [[attributes[key]] if key in attributes else candidates[key] for key in keys.values()]
    error: Exception = IRError(f"smelt.{x.op.name} has no candidates for its attributes")
    for values in itertools.islice(itertools.product(*choices), MAX_CHOICES):
        attrs = {**fixed, **dict(zip(keys, values))}
        try:
            result = b.emit(x.op, operands, {name: attrs[name] for name in x.op.attrs})[0]
        except (SmeltError, IndexError, ValueError, TypeError) as refused:
            error = refused
            continue
        attributes.update(zip(keys.values(), values))
        return result
    raise error
