"""Programs of PyTorch run with its values and gradients, transform like other functions, and are refused well."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.exchange.torch import graph
from smelt.ir.errors import ArgumentTypeError, DTypeError, IRError, ShapeError

torch = pytest.importorskip("torch")

from .torch_programs import CASES, MODULES, REFUSED, SHAPED_BY_VALUES  # noqa: E402

logging.getLogger("torch.__trace").setLevel(logging.WARNING)  # a report of a failure shows what was logged
leaves = torch.utils._pytree.tree_leaves
Case = tuple[Callable[..., Any], list[Any]]


#: Of what has fewer bits, how far it may be off.
ROUGH = {"half": 2e-3}


def host(x: Any) -> Any:
    """A result as an array of NumPy, or as it is where it is none."""
    if isinstance(x, smelt.array):
        return np.array(x.astype(smelt.float32) if x.dtype is smelt.bfloat16 else x)
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj()
        return (x.float() if x.dtype is torch.bfloat16 else x).numpy()
    return x


def assert_alike(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    ours, theirs = leaves(found), leaves(wanted)
    assert len(ours) == len(theirs)
    for x, y in zip(map(host, ours), map(host, theirs)):
        if isinstance(y, np.ndarray):
            assert x.dtype == y.dtype and x.shape == y.shape
            scale = np.abs(y[np.isfinite(y)]).max(initial=1.0) if y.dtype.kind in "fc" else 0
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)
        else:
            assert x == y


def floats(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype is torch.float32


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_function(name: str) -> None:
    """Values op by op and compiled; gradients where there are some."""
    function, arguments = CASES[name]
    f = smelt.from_torch(function, *arguments)
    wanted = function(*arguments)
    assert_alike(f(*arguments), wanted)
    arrays = [graph.constant(x) if isinstance(x, torch.Tensor) else x for x in arguments]
    places = [i for i, x in enumerate(arrays) if isinstance(x, smelt.array)]

    def with_arrays(*given: smelt.array) -> Any:
        return f(*[given[places.index(i)] if i in places else x for i, x in enumerate(arrays)])

    if name not in SHAPED_BY_VALUES:
        found = smelt.compile(with_arrays)(*[arrays[i] for i in places])
        assert_alike(found, wanted, ROUGH.get(name, 2e-5))

    def total(y: Any) -> Any:
        return sum((abs(v) ** 2).sum() for v in leaves(y) if floats(v) or (isinstance(v, smelt.array) and _float(v)))

    chosen = [i for i in places if floats(arguments[i])]
    given = [x.clone().requires_grad_() if floats(x) else x for x in arguments]
    result = total(function(*given))
    if not chosen or not isinstance(result, torch.Tensor) or not result.requires_grad:
        return
    slopes = torch.autograd.grad(result, [given[i] for i in chosen], allow_unused=True)

    def of_chosen(*values: smelt.array) -> Any:
        return total(f(*[values[chosen.index(i)] if i in chosen else x for i, x in enumerate(arrays)]))

    found = smelt.grad(of_chosen, argnums=list(range(len(chosen))))(*[arrays[i] for i in chosen])
    found = found if isinstance(found, (tuple, list)) else [found]
    theirs = [torch.zeros_like(given[i]) if s is None else s for i, s in zip(chosen, slopes)]
    assert_alike(list(found), theirs, ROUGH.get(name, 2e-4))


def _float(x: smelt.array) -> bool:
    return x.dtype is smelt.float32


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str) -> None:
    """Values, and gradients of the weights."""
    torch.manual_seed(0)
    make, arguments = MODULES[name]
    module = make().eval()
    f = smelt.from_torch(module, *arguments)
    assert set(f.weights) == {k for k, _ in [*module.named_parameters(), *module.named_buffers()]}
    wanted = module(*arguments)
    assert_alike(f(*arguments), wanted)
    arrays = [graph.constant(x) for x in arguments]
    assert_alike(smelt.compile(f)(*arrays), wanted)
    total = sum((y**2).sum() for y in leaves(wanted) if floats(y))
    total.backward()
    trained = {k: f.weights[k] for k, p in module.named_parameters() if p.grad is not None}

    def loss(weights: dict[str, smelt.array]) -> Any:
        return sum((y**2).sum() for y in leaves(f.apply(weights, *arrays)) if _float(y))

    slopes = smelt.compile(smelt.grad(loss))(trained)
    for key, parameter in module.named_parameters():
        if parameter.grad is not None:
            assert_alike(slopes[key], parameter.grad, 2e-4)


def test_on_metal_and_in_batches() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 2)).eval()
    f = smelt.from_torch(module)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    wanted = module(torch.tensor(x))
    assert_alike(smelt.vmap(f)(smelt.array(x)), wanted)
    with smelt.stream("metal:sim"):
        assert_alike(smelt.compile(f)(smelt.array(x)), wanted)


def test_exported_anew_for_other_arguments() -> None:
    """For other types, other numbers, other trees; what the module returns comes back as it is."""

    def f(x: Any, how: dict[str, Any], *, times: int = 1) -> dict[str, Any]:
        return {"sum": x + how["bias"] * times, "parts": (x.shape[0], [x])}

    g = smelt.from_torch(f, torch.ones(2), {"bias": torch.ones(())}, times=2)
    for size in (2, 3):
        for times in (2, 5):
            found = g(smelt.ones(size), {"bias": smelt.array(0.5)}, times=times)
            assert found["sum"].tolist() == [1 + 0.5 * times] * size and found["parts"][0] == size
            assert isinstance(found["parts"], tuple) and found["parts"][1][0].shape == (size,)
    doubled = g(np.ones(2), {"bias": np.ones(())}, times=2)["sum"]
    assert doubled.dtype is smelt.float64


def test_states_that_change() -> None:
    """A batch norm that trains: `step` returns its moments, a call says that it has some."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    f, x = smelt.from_torch(module), torch.randn(6, 3)
    with pytest.raises(IRError, match=r"writes to 1.running_mean, .*\.step returns them, too"):
        f(x)
    found, changed = f.step(f.weights, x)
    assert_alike(found, module(x))
    for name, value in changed.items():
        assert_alike(value, dict(module.named_buffers())[name])
    again = smelt.from_torch(module.eval())
    assert_alike(again.apply({**again.weights, **changed}, x), module(x))


def test_weights_are_copies_and_shared_ones_are_one() -> None:
    module = torch.nn.Linear(2, 2)
    module.again = module.weight
    f = smelt.from_torch(module, torch.ones(1, 2))
    assert f.weights["again"] is f.weights["weight"]
    before = f(torch.ones(1, 2)).tolist()
    with torch.no_grad():
        module.weight.zero_()
    assert f(torch.ones(1, 2)).tolist() == before
    double = smelt.from_torch(torch.nn.Linear(2, 2).double())
    assert double.weights["weight"].dtype is smelt.float64


def test_exported_program_of_open_sizes() -> None:
    class Table(torch.nn.Module):
        def forward(self, x: Any, *, scale: Any) -> Any:
            rows = x.shape[0]
            return x.reshape(-1, 2).sum(1) * scale, torch.arange(rows), rows * 2

    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(
        Table(), (torch.ones(4, 6),), {"scale": torch.ones(())}, dynamic_shapes={"x": {0: batch}, "scale": None}
    )
    f = smelt.from_torch(program)
    for rows in (2, 5):
        x = torch.randn(rows, 6)
        assert_alike(f(x, scale=torch.tensor(2.0)), Table()(x, scale=torch.tensor(2.0)))
    with pytest.raises(ShapeError, match=r"argument x of the exported program must be f32\[\?,6\], is f32\[3,5\]"):
        f(smelt.ones((3, 5)), scale=smelt.array(1.0))
    with pytest.raises(DTypeError, match=r"is i32\[3,6\]; convert it"):
        f(smelt.ones((3, 6), smelt.int32), scale=smelt.array(1.0))
    with pytest.raises(ArgumentTypeError, match=r"takes \(f32\[\?,6\], scale=f32\[\]\), is given 1 and none"):
        f(smelt.ones((3, 6)))
    with pytest.raises(ArgumentTypeError, match="exported has its arguments"):
        smelt.from_torch(program, torch.ones(4, 6))


def test_random_numbers_are_smelts() -> None:
    f = smelt.from_torch(lambda x: torch.nn.functional.dropout(x, 0.25) + 0 * torch.rand_like(x), torch.ones(4096))
    smelt.random.seed(3)
    first = f(smelt.ones(4096))
    assert abs((first == 0).astype(smelt.float32).mean().item() - 0.25) < 0.05
    assert abs(first.mean().item() - 1) < 0.05
    smelt.random.seed(3)
    assert f(smelt.ones(4096)).tolist() == first.tolist()


def test_wide_floats_are_computed_and_drawn_as_such() -> None:
    f = smelt.from_torch(lambda x: torch.nn.functional.adaptive_avg_pool1d(x, 3), torch.ones(1, 1, 7).double())
    x = np.random.default_rng(0).normal(size=(1, 1, 7))
    wanted = torch.nn.functional.adaptive_avg_pool1d(torch.from_numpy(x), 3).numpy()
    np.testing.assert_allclose(np.asarray(f(smelt.array(x, smelt.float64))), wanted, rtol=1e-15)
    drawn = smelt.from_torch(lambda x: torch.rand_like(x) + x, torch.zeros(64).double())(smelt.zeros(64, smelt.float64))
    assert drawn.dtype is smelt.float64
    assert not np.array_equal(np.asarray(drawn), np.asarray(drawn.astype(smelt.float32)).astype(np.float64))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """The message names the op, and where it stands."""
    function, arguments, message = REFUSED[name]
    with pytest.raises(IRError, match=message):
        smelt.from_torch(function, *arguments)(*arguments)


def test_the_line_of_an_op_without_translation() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.geqrf(x)

    line = inspect.getsourcelines(Sums.forward)[1] + 1
    message = rf"Sums \(.*test_torch.py:{line}\): aten.geqrf.default has no translation; .* at .*test_torch.py:\d+"
    with pytest.raises(IRError, match=message):
        smelt.from_torch(Sums())(smelt.ones((2, 2)))


def test_wrong_arguments() -> None:
    f = smelt.from_torch(torch.nn.Linear(2, 3))
    for message, kind, call in (
        ("needs a module, a function", ArgumentTypeError, lambda: smelt.from_torch(3)),
        ("has no weight 'w'; it has weight, bias", ArgumentTypeError, lambda: f.apply({"w": 1}, smelt.ones(2))),
        (r"weight bias of Linear must be f32\[3\], is f32\[2\]", ShapeError,
         lambda: f.apply({"bias": smelt.ones(2)}, smelt.ones(2))),
        ("torch.export fails", IRError, lambda: f(smelt.ones(4))),
        ("is given", ArgumentTypeError, lambda: f({1, 2})),
    ):  # fmt: skip
        with pytest.raises(kind, match=message):
            call()
    assert repr(f) == "<smelt.from_torch Linear, 2 weights>"


def test_every_rule_is_of_an_op() -> None:
    for name in graph.RULES:
        space, *rest = name.split(".")
        if not rest:  # of control flow, by the function's name
            assert hasattr(torch.ops.higher_order, name), name
            continue
        if space == "transformers":  # a package that need not be here
            continue
        op = getattr(getattr(torch.ops, space), rest[0])
        assert len(rest) == 1 or hasattr(op, rest[1]), name


def test_the_core_has_rules() -> None:
    """All ops that PyTorch calls the core of its ops, but those that change an array's memory."""
    for op in _core():
        name = str(op)
        known = graph.rule_of(name) or torch._decomp.get_decompositions([op])
        assert known or name == "aten.resize_.default", name


def _core() -> list[Any]:
    found = []
    for schema in torch._C._jit_get_all_schemas():
        packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"), None)
        op = getattr(packet, schema.overload_name or "default", None) if schema.name.startswith("aten::") else None
        if op is not None and torch.Tag.core in op.tags:
            found.append(op)
    assert len(found) > 150
    return found
