"""Functions are transformed once for all of their sizes: that gives the ops that transforming each gives."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import SmeltError
from smelt.ir.library import Library
from smelt.ir.op import Op
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import override
from smelt.ir.symbolic import Program, Symbol, slice_indices, value_of
from smelt.lazy.core import NO_ATTRS, PARAMETER, Node
from smelt.lazy.execution import direct, families
from smelt.lazy.graph import GraphFunction, snapshot
from smelt.lazy.static_keys import static_key

from ..compose.compositions import AXIS_LEAVES, LEAVES, Direct, nests, operands
from ..compose.test_programs import common
from ..examples import examples
from ..ops.cases import Case, plain_ops, seeds_of, wrt_of
from ..ops.variants import every_case


def _described(program: OpProgram) -> Any:
    """All that a program does, as something to compare."""
    steps = [
        (
            op.name,
            rule,
            {k: static_key(v) for k, v in attrs.items()},
            read,
            first,
            view.location if op.tells_line else None,
        )
        for view, op, rule, attrs, read, first, _ in program.steps
    ]
    frame = [None if x is None else (x.dtype, x.shape, x.tobytes()) for x in program.frame]
    return steps, frame, program.returns, program.arguments, program.results


def _elements(aval: Aval) -> np.ndarray:
    """Small numbers, different from each other."""
    found = np.arange(aval.size).reshape(aval.shape) * 7 % 11 - (0 if aval.dtype.kind == "u" else 5)
    return (found / 8 if aval.dtype.kind in "fc" else found).astype(aval.dtype.numpy)


def _bits(x: np.ndarray) -> np.ndarray:
    """Elements as bytes; one NaN is as good as another."""
    x = np.where(x == x, x, 0).astype(x.dtype)
    return np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)


#: Elements of arguments at most where a library runs: its work grows with the cube of the sizes.
MOST_OF_LIBRARY = 256


class _Both:
    """Transforms functions both ways; counts those that were bound to sizes."""

    def __init__(self) -> None:
        self.bound = self.anew = 0

    def __call__(self, f: GraphFunction, transforms: Any, run_function: Any) -> OpProgram | None:
        found = families.bound_program(f, transforms, run_function)
        if found is None:
            self.anew += 1
            return None
        self.bound += 1
        body = direct.recorded(f, transforms)
        assert body is not None
        made = body.program(run_function)
        assert _described(found) == _described(made), f"{f.arguments} {transforms}"
        given = [_elements(aval) for aval in made.arguments]
        if sum(x.size for x in given) > MOST_OF_LIBRARY and any(isinstance(op, Library) for _, op, *_ in made.steps):
            return found
        try:
            want = [np.asarray(x) for x in made.run(given)]
        except SmeltError:  # a singular matrix
            return found
        for x, y in zip(found.run(given), want):
            x = np.asarray(x)
            assert (x.shape, x.dtype) == (y.shape, y.dtype) and np.array_equal(_bits(x), _bits(y))
        return found


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Both]:
    found = _Both()
    monkeypatch.setattr(direct, "bound_program", found)
    monkeypatch.setattr(families, "PATIENCE", 1)
    families.families.clear()
    direct._programs.clear()
    with override(tier="ops"):
        yield found
    families.families.clear()
    direct._programs.clear()


# Ops of the registry


def _recorded(case: Case) -> GraphFunction:
    """A function that is one op."""
    parameters = [(Node(PARAMETER, NO_ATTRS, (), (a,)), 0) for a in case.avals]
    node = Node(case.op, case.kwargs, tuple(parameters), case.results)
    return GraphFunction("f", parameters, (), snapshot([node]), [(node, i) for i in range(len(node.avals))])


def _transforms(case: Case, size: int) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Ways to transform a case, in batches of `size`."""
    n, m = len(case.avals), len(case.results)
    batch = ("batch", {"size": size, "in_axes": (0,) * n, "out_axes": (0,) * m})
    yield []
    if n:
        yield [batch]
        yield [("batch", {"size": size, "in_axes": (*(-1,) * (n - 1), 0), "out_axes": (0,) * m})]
    wrt, seeds = wrt_of(case), seeds_of(case)
    if case.op.differentiable and wrt and seeds:
        vjp = ("vjp", {"wrt": wrt, "seeds": seeds})
        yield [("jvp", {"wrt": wrt})]
        yield [vjp]
        yield [batch, ("vjp", {"wrt": wrt, "seeds": seeds})]
        yield [vjp, ("batch", {"size": size, "in_axes": (0,) * (n + len(seeds)), "out_axes": (0,) * (m + len(wrt))})]


def _resized(case: Case, rng: random.Random, least: int) -> Case | None:
    """The op with other sizes, at least `least`; None where these do not fit together."""
    apart = rng.random() < 0.4
    names: dict[int, int] = {}

    def other(d: int) -> int:
        if d < 2 and least > 1:
            return d
        new = rng.choice([d, rng.randint(least, 12), rng.randint(least, 40)])
        return new if apart else names.setdefault(d, new)

    def changed(x: Any) -> Any:
        return tuple([other(d) for d in x]) if type(x) is tuple else other(x)

    avals = tuple([a.with_shape(map(other, a.shape)) for a in case.avals])
    attrs = tuple([(k, changed(v) if k in case.op.sizes else v) for k, v in case.attrs])
    try:
        case.op.infer(*avals, **dict(attrs))
    except SmeltError:
        return None
    return Case(case.op, avals, attrs)


#: Ops that have no sizes to change in their examples, or whose members one by one are few.
UNSIZED = {"constant", "literal"}


@pytest.mark.parametrize("op", plain_ops(), ids=lambda op: op.name)
def test_an_op_of_other_sizes(op: Op, both: _Both) -> None:
    rng = random.Random(op.name)
    for case in every_case(op):
        sizes = [
            *itertools.islice((made for _ in range(60) if (made := _resized(case, rng, 2)) is not None), 3),
            *itertools.islice((made for _ in range(30) if (made := _resized(case, rng, 0)) is not None), 2),
        ]
        for made in sizes:
            for transforms in _transforms(made, rng.randint(2, 9)):
                with np.errstate(all="ignore"):
                    direct.program_of(_recorded(made), transforms)
    assert both.bound > both.anew / 4 or op.name in UNSIZED, (both.bound, both.anew)


# Functions


def _score(body: Callable[..., Any]) -> Callable[..., Any]:
    return lambda v, w: (smelt.sin(body(v, w)) * 0.5).mean()


SIZES = ((3, 4), (5, 4), (7, 6), (4, 4), (6, 6), (4, 1), (8, 1), (2, 9), (9, 2), (30, 20), (70, 90))


#: Functions of others.
WAYS: dict[str, Callable[..., Any]] = {
    "gradient": lambda f: smelt.value_and_grad(_score(f), argnums=(0, 1)),
    "tangent": lambda f: lambda v, w: smelt.jvp(f, [v, w], [w, v]),
    "batch": smelt.vmap,
    "batch of gradients": lambda f: smelt.vmap(smelt.grad(_score(f))),
    "gradient of a batch": lambda f: smelt.grad(_score(smelt.vmap(f, in_axes=(1, 1), out_axes=1))),
    "compiled": lambda f: lambda v, w: smelt.compile(f)(v, w),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("leaf", [*LEAVES, *AXIS_LEAVES])
def test_functions_of_other_sizes(leaf: str, way: str, both: _Both) -> None:
    f = WAYS[way]({**LEAVES, **AXIS_LEAVES}[leaf])
    for shape in SIZES:
        smelt.eval(f(*operands((*shape, 3), 0)))
    assert both.bound


@settings(max_examples=examples(25), **common)
@given(st.data())
def test_nests_of_transformations_of_other_sizes(data: Any) -> None:
    ndim = data.draw(st.integers(1, 3))
    nest = data.draw(nests(ndim, 2, coarse=True, of=("grad", "grad w", "value_and_grad", "jvp", "vjp", "hvp", "vmap")))
    shapes = data.draw(st.lists(st.lists(st.integers(1, 9), min_size=ndim, max_size=ndim), min_size=3, max_size=6))
    found = _Both()
    with override(tier="ops"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "bound_program", found)
        for shape in shapes:
            v, w = operands(tuple(shape), 0)
            smelt.eval(nest.run(v, w, Direct))


def test_a_family_is_transformed_twice(both: _Both) -> None:
    """For its first member, and on symbols with the second."""
    step = smelt.value_and_grad(lambda w, x: smelt.mean(smelt.tanh(x @ w) ** 2))
    w = smelt.array(np.ones((4, 3), np.float32))
    for n in range(5, 30):
        smelt.eval(step(w, smelt.array(np.ones((n, 4), np.float32))))
    assert (both.anew, both.bound) == (1, 24)
    assert len(families.families) == 1


def test_equal_sizes_part(both: _Both) -> None:
    """Where two sizes are equal that need not be, there is a family for that."""
    f = smelt.grad(lambda x: smelt.sum(smelt.exp(x) * smelt.sum(x, axis=0)))
    squares, others = [(3, 3), (4, 4), (7, 7)], [(4, 5), (5, 4), (3, 7)]
    special = [(1, 7), (1, 5), (7, 1), (5, 1), (0, 3), (0, 4)]
    for shape in [*squares, *others, *special, (1, 1)]:
        smelt.eval(f(smelt.array(np.ones(shape, np.float32))))
    assert len(families.families) == 2 + 3  # (1, 1) has no sizes
    assert both.bound == 2 + 2 + 3


def test_a_shape_that_is_no_argument() -> None:
    """What a function makes of sizes that it reads is a size of its own."""
    families.families.clear()
    direct._programs.clear()
    with override(tier="ops"):
        for n in (4, 6, 10, 12):
            f = smelt.grad(lambda x, n=n: smelt.sum(smelt.reshape(x[: n // 2], (n // 2, 1)) * smelt.arange(3.0)) / n)
            found = f(smelt.array(np.ones(n, np.float32)))
            np.testing.assert_allclose(found, np.where(np.arange(n) < n // 2, 3 / n, 0), 1e-6)


# Symbols


@pytest.mark.parametrize("extent", [*range(2, 9)])
def test_slices_of_symbols(extent: int) -> None:
    (n,) = Program([extent]).sizes
    ends = [None, -9, -4, -1, 0, 1, 3, 8, 12]
    for start in ends:
        for stop in ends:
            for step in (None, 1, 2, -1, -3):
                s = slice(start, stop, step)
                assert tuple(map(value_of, slice_indices(s, n))) == s.indices(extent)


def _both_ways(rule: Callable[..., Any], first: Sequence[int], others: Sequence[Sequence[int]]) -> list[bool]:
    """Runs a rule on symbols for sizes, and for others by its code, and compares; which of these the guards allow."""
    program = Program(first)
    run = program.compiled([rule(*program.sizes)])
    assert run(*first) == [rule(*first)]
    found = []
    for sizes in others:
        made = run(*sizes)
        assert made is None or made == [rule(*sizes)], sizes
        found.append(made is not None)
    return found


def test_arithmetic_is_written_down() -> None:
    rule = lambda a, b: (a * b + 3, -(-(a - b) // 2), 1 / a, 7 - b, a % 4, divmod(b, 3)[0], 100 // a)  # noqa: E731
    assert all(_both_ways(rule, (5, 7), [(8, 3), (2, 9), (100, 1000)]))
    powers = lambda a, b: (a**-0.5, 1 / b**0.5, a**2, 2**a, a**b, (a / b) ** 3, 0.5**b)  # noqa: E731
    assert all(_both_ways(powers, (5, 7), [(8, 3), (2, 9), (30, 40)]))


@pytest.mark.parametrize(
    "rule",
    [
        lambda a, b: list(range(a)),
        lambda a, b: (1,) * a,
        lambda a, b: "abcdefgh"[a],
        lambda a, b: max(a - 7, 0),
        lambda a, b: 1 if a * b > 40 else 2,
        lambda a, b: a if a == 5 else b,
        lambda a, b: [a, b].index(7),
        lambda a, b: "x" if 3 < a < 9 else "y",
        lambda a, b: bool(a - 5),
        lambda a, b: int(a) + b,
        lambda a, b: float(a) * b,
        lambda a, b: abs(a - b),
        lambda a, b: sorted([b, a, 6]),
        lambda a, b: (a, b) == (5, 7),
        lambda a, b: 7 in (a, b),
        lambda a, b: np.int64(3) * a,
        lambda a, b: a ** (b - 6),
        lambda a, b: (a - b) ** 2,
        lambda a, b: (a - 4) ** 0.5 if a > 4 else b,
    ],
)
def test_what_a_rule_finds_out_is_guarded(rule: Callable[..., Any]) -> None:
    _both_ways(rule, (5, 7), [(a, b) for a in range(2, 12) for b in range(2, 12) if a != b])


@pytest.mark.parametrize(
    "rule",
    [
        hash,
        lambda a: {a: 1},
        lambda a: (2 - a) ** 0.5,
        lambda a: pow(a, 2, 3),
        lambda a: a & 1,
        lambda a: round(a / 2),
        lambda a: float(1 / a),
        lambda a: np.arange(a),
    ],
)
def test_what_symbols_cannot_do_is_an_error(rule: Callable[..., Any]) -> None:
    (a,) = Program([5]).sizes
    with pytest.raises(TypeError):
        rule(a)


def test_an_aval_of_symbols() -> None:
    program = Program([5, 7])
    aval = Aval((*program.sizes, 3), dtypes.float32)
    assert isinstance(aval.size, Symbol)
    assert program.compiled([aval.size])(2, 4) == [24]
    assert aval.with_shape(aval.shape) == aval
