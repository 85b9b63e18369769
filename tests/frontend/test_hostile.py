"""Hostile arguments: each parameter of each public function gets what it does not take.

What comes back is a SmeltError that names the user's line, or a result, never another exception, a hang or a
crash. The calls are made from the signatures of the functions.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
import io
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest

import smelt
import smelt.utils
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import MissingPackageError, OutOfMemoryError, SmeltError

pytestmark = [
    pytest.mark.usefixtures("small_heap"),  # memory that is short has garbage collected
    pytest.mark.filterwarnings("error::RuntimeWarning"),  # NumPy's, of what smelt computes inside
]

register_target(Target("tests.first", lambda call, x, *more: x))
X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
SECONDS = 20


class Thing:
    """Of no use to smelt."""


class Refusing:
    """What fails wherever it is asked for a number, a truth value or its elements."""

    def _fails(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("it refuses")

    __index__ = __int__ = __float__ = __complex__ = __bool__ = __len__ = __iter__ = __array__ = __hash__ = _fails
    __getitem__ = __str__ = __repr__ = __fspath__ = __call__ = __buffer__ = _fails


class Lying:
    """Its methods return what they must not."""

    def _text(self, *_: Any, **__: Any) -> Any:
        return "text"

    __index__ = __int__ = __float__ = __bool__ = __len__ = __iter__ = __array__ = __hash__ = __fspath__ = _text
    __array_interface__ = __array_struct__ = shape = dtype = ndim = size = __dlpack__ = "text"


class Endless:
    """A sequence that contains itself, and whose elements never end."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> Any:
        return self


def nested(depth: int) -> list:
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


def endless(kind: type) -> Any:
    """A container that contains itself."""
    found = kind()
    found.append(found) if kind is list else found.update(again=found)
    return found


#: Made anew for each call.
HOSTILE: dict[str, Callable[[], Any]] = {
    "None": lambda: None, "text": lambda: "abc", "empty text": str, "bytes": lambda: b"abc", "object": Thing,
    "class": lambda: Thing, "module": lambda: inspect, "function": lambda: lambda *a: a, "slice": lambda: slice(1),
    "ellipsis": lambda: ..., "long text": lambda: "x" * 5000, "iterator": lambda: iter([1, 2]),
    "objects": lambda: np.array([None, 1], object), "texts": lambda: np.array(["a"]), "list of None": lambda: [None],
    "list of texts": lambda: ["a"], "ragged": lambda: [[1.0], [2.0, 3.0]], "deep": lambda: nested(3000),
    "endless": lambda: endless(list), "endless dict": lambda: endless(dict), "dict": lambda: {"a": 1},
    "set": lambda: {1},
    "slice of text": lambda: slice("a", None, "b"),
    "beyond floats": lambda: 10**400, "nearly infinite": lambda: 1.7e308, "nearly zero": lambda: 5e-324,
    "no list": list, "no tuple": tuple, "huge": lambda: 10**30, "-huge": lambda: -(10**30), "2**63": lambda: 2**63,
    "-7": lambda: -7, "99": lambda: 99, "1.5": lambda: 1.5, "nan": lambda: float("nan"), "inf": lambda: float("inf"),
    "complex": lambda: 1 + 2j, "True": lambda: True, "negative shape": lambda: (-2, 3), "list of nan": lambda: [np.nan],
    "huge shape": lambda: (2**40, 2**40), "fractions": lambda: (1.5, 2), "twice": lambda: (0, 0),
    "no dtype": lambda: "float33", "structure": lambda: np.dtype([("a", int)]), "date": lambda: np.datetime64("2020"),
    "empty array": lambda: np.zeros(0), "0-d": lambda: np.array(1.5), "array": lambda: smelt.array([1.0, 2.0]),
    "65 axes": lambda: (1,) * 65, "array of 64 axes": lambda: smelt.zeros((1,) * 64),
    "huge but empty": lambda: (0, 2**62, 2**62), "huge but empty array": lambda: smelt.zeros((0, 2**58), smelt.uint8),
    "integers": lambda: smelt.array([1, 2]), "NumPy float": lambda: np.float64(1.5), "half": lambda: np.float16(2),
    "refusing": Refusing, "lying": Lying, "NumPy array": lambda: np.array([True, False]), "infinities": lambda: [1e999],
    "nested": lambda: [[0], [1]], "True in a tuple": lambda: (True, False), "huge in a tuple": lambda: (10**30, 1),
    "NumPy integers": lambda: np.array([0, 1]), "list of array": lambda: [smelt.array([1.0])], "-1": lambda: (-1,),
    "none in a tuple": lambda: (None, 1), "range": lambda: range(2), "many": lambda: [0] * 3000,
    "stand-in": MagicMock, "mapping": collections.UserDict,
    "stand-in in a list": lambda: [MagicMock()], "endless sequence": Endless,
}  # fmt: skip
NO_ARRAYS = ("text", "object", "class", "module", "function", "slice", "ellipsis", "objects", "texts", "ragged", "deep",
             "endless", "dict", "set", "date", "structure", "list of None", "refusing", "stand-in",
             "mapping", "stand-in in a list", "endless sequence")  # fmt: skip
NO_INTS = ("text", "object", "class", "function", "1.5", "nan", "complex", "ellipsis", "dict", "texts",
           "refusing", "lying", "NumPy array", "nested", "none in a tuple")
NO_DTYPES = ("text", "object", "no dtype", "structure", "1.5", "no list", "dict", "function", "objects",
             "refusing", "lying", "NumPy array", "nested")
NO_STREAMS = ("text", "object", "class", "99", "no list", "True", "array", "function", "dict",
              "refusing", "lying", "NumPy array", "nested", "nan", "-1")
NO_FLAGS = ("text", "empty text", "bytes", "objects", "texts", "list of None", "ragged", "dict", "set", "no list",
            "array", "empty array", "refusing", "lying", "NumPy array", "nested", "NumPy integers", "endless", "twice")

#: Modules with functions that take functions with arguments of their own; they have tests of errors themselves.
ELSEWHERE = ("smelt.transforms.control", "smelt.transforms.custom", "smelt.fast", "smelt.metal")
#: What is not called with hostile arguments: (function, parameter), or (function, None), and why.
LEFT_OUT = {
    ("compile", "inputs"): "a tree of arrays, or anything that holds them",
    ("compile", "outputs"): "a tree of arrays, or anything that holds them",
    ("jvp", "primals"): "as many arguments as the function takes: its own error",
    ("vjp", "primals"): "as many arguments as the function takes: its own error",
    ("linearize", "primals"): "as many arguments as the function takes: its own error",
    ("linear_transpose", "primals"): "as many arguments as the function takes: its own error",
    ("utils.tree_reduce", "initializer"): "anything that the function takes",
    ("utils.register_class", None): "a class: tests/frontend/test_transforms_trees.py",
    ("printoptions", None): "looked at when the block is entered",
    **{(name, None): "made by smelt only" for name in ("ArrayAt", "ArrayIterator", "Dtype")},
    ("ArrayLike", None): "a type for annotations",
    ("DeviceType", None): "an enumeration",
    ("FunctionExporter", None): "made by `exporter`",
    ("export_function", "args"): "what the function takes",
    ("to_stablehlo", "args"): "what the function takes",
    ("to_linalg", "args"): "what the function takes",
    ("export_function", "file_or_callback"): "any function; paths are those of `exporter`",
    ("DtypeCategory", None): "an enumeration",
    ("SmeltError", None): "an exception",
    ("array", "val"): "also texts of bytes: tests/frontend/test_creation.py",
}

#: A quantized matrix, and one that can be.
PACKED = {"w": np.ones((2, 8), np.uint32), "scales": np.ones((2, 1), np.float32), "biases": np.ones((2, 1), np.float32)}
ROWS = np.ones((2, 64), np.float32)

#: Arguments of a valid call, where the name of a parameter does not tell: by function and parameter.
VALID: dict[tuple[str, str], Any] = {
    ("addmm", "c"): np.ones((2, 2), np.float32), ("addmm", "b"): X.T, ("matmul", "b"): X.T, ("gather_mm", "b"): X.T,
    ("polygamma", "n"): 1, ("betainc", "x"): 0.5,
    **{(f, "p"): [1.0, -3.0, 2.0] for f in ("roots", "polyval", "polyder", "polyint")},
    ("poly", "seq_of_zeros"): [1.0, 2.0],
    ("polymul", "a1"): [1.0, 2.0], ("polymul", "a2"): [1.0, 2.0], ("polyfit", "x"): [0.0, 1.0, 2.0],
    ("polyfit", "y"): [0.0, 1.0, 2.0], ("polyfit", "deg"): 1, ("polyint", "k"): 0,
    ("searchsorted", "sorted_sequence"): [1.0, 2.0], ("take", "indices"): [0],
    ("take_along_axis", "indices"): [[0], [1]], ("compress", "condition"): [True, False],
    ("put_along_axis", "indices"): [0], ("put_along_axis", "values"): [9.0], ("where", "condition"): X > 2,
    ("slice", "start_indices"): [0], ("slice", "axes"): (0,), ("slice", "slice_size"): (1, 3),
    ("slice_update", "update"): [[1.0, 1.0, 1.0]], ("slice_update", "start_indices"): [0],
    ("slice_update", "axes"): (0,),
    ("random.multivariate_normal", "mean"): [0.0, 1.0], ("random.multivariate_normal", "cov"): [[1.0, 0.0], [0.0, 1.0]],
    ("unflatten", "shape"): (1, 2), ("reshape", "shape"): (3, 2), ("broadcast_to", "shape"): (2, 2, 3),
    ("split", "indices_or_sections"): 2, ("full", "vals"): 1.0, ("full_like", "vals"): 1.0,
    ("moveaxis", "destination"): 1, ("digitize", "bins"): [0.0, 2.0], ("quantile", "q"): 0.5, ("nanquantile", "q"): 0.5,
    ("bincount", "x"): [1, 2], ("interp", "xp"): [0.0, 1.0], ("interp", "fp"): [0.0, 1.0], ("lexsort", "keys"): [X, X],
    ("geomspace", "start"): 1, ("geomspace", "stop"): 8, ("logspace", "stop"): 2, ("dsplit", "a"): X[..., None],
    ("unravel_index", "indices"): [0, 1],
    ("ravel_multi_index", "multi_index"): [[0, 1], [0, 1]],
    ("percentile", "q"): 50, ("nanpercentile", "q"): 50, ("ravel_multi_index", "dims"): (2, 3),
    ("ldexp", "x2"): [1, 2, 3],
    ("from_onnx", "file"): b"\x08\x0e:*\n\x0b\n\x01x\x12\x01y\"\x03Abs\x12\x01gZ\x0b\n\x01x\x12\x06\n\x04\x08"
    b"\x01\x12\x00b\x0b\n\x01y\x12\x06\n\x04\x08\x01\x12\x00B\x04\n\x00\x10\r",
    ("from_onnx", "name"): "model",
    ("from_torch", "program"): abs,
    ("from_stablehlo", "program"): "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }",
    ("swapaxes", "axis2"): 1, ("linspace", "stop"): 1, ("random.randint", "low"): 0, ("random.randint", "high"): 9,
    ("random.truncated_normal", "lower"): -1, ("random.truncated_normal", "upper"): 1, ("isdtype", "kind"): "numeric",
    ("Stream", "device"): smelt.cpu, ("set_default_stream", "stream"): smelt.Stream(smelt.cpu),
    ("iinfo", "arg"): smelt.int8, ("set_flush_subnormals", "flush"): False,
    ("save_safetensors", "arrays"): {"x": X}, ("save_gguf", "arrays"): {"x": X},
    ("export_function", "file_or_callback"): "f.smelt", ("export_to_dot", "args"): X,
    ("export_function", "args"): X,
    ("utils.tree_unflatten", "tree"): [("a", 1)], ("jvp", "primals"): [X],
    ("jvp", "tangents"): [X], ("vjp", "primals"): [X], ("vjp", "cotangents"): [1.0], ("meshgrid", "arrays"): [1.0, 2.0],
    ("arange", "stop"): 3, ("compile", "fun"): lambda x: x + 1, ("linear_transpose", "fun"): lambda x: x + x,
    ("utils.tree_map", "fn"): lambda x, y: x, ("utils.tree_map_with_path", "fn"): lambda p, x, y: x,
    ("utils.tree_reduce", "fn"): lambda x, y: x, ("utils.tree_merge", "merge_fn"): lambda x, y: x,
    **{(f"{name}stack", "arrays"): [X, X] for name in ("v", "h", "d", "column_")}, ("gradient", "varargs"): 1.0,
    ("stack", "arrays"): [X, X], ("concatenate", "arrays"): [X, X],
    ("custom_call", "target"): "tests.first", ("custom_call", "types"): smelt.ShapeDtype(X.shape, smelt.float32),
    **{(f"conv{t}{n}d", what): np.ones((1, *[2] * n, 3), np.float32)
       for t in ("", "_transpose") for n in (2, 3) for what in ("input", "weight")},
    ("conv_transpose1d", "input"): X[None], ("conv_transpose1d", "weight"): X[None],
    ("convolve", "a"): [1.0, 2.0], ("convolve", "v"): [1.0, 2.0],
    ("conv1d", "input"): X[None], ("conv1d", "weight"): X[None], ("conv_general", "input"): X[None],
    ("conv_general", "weight"): X[None], ("linalg.cholesky", "a"): np.eye(2, dtype=np.float32),
    **{(f"linalg.{name}", "a"): np.eye(2, dtype=np.float32) for name in (
        "cholesky_inv", "coshm", "cosm", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm",
        "fractional_matrix_power", "inv", "logm", "lu",
        "lu_factor", "matrix_power", "sinhm", "sinm", "slogdet", "solve", "solve_triangular", "sqrtm", "tri_inv",
    )},
    ("linalg.fractional_matrix_power", "t"): 0.5,
    **{("linalg.solve_sylvester", name): np.eye(2, dtype=np.float32) for name in "abq"},
    **{("linalg.solve_continuous_lyapunov", name): np.eye(2, dtype=np.float32) for name in "aq"},
    ("linalg.cho_solve", "c_and_lower"): (np.eye(2, dtype=np.float32), True),
    ("linalg.lu_solve", "lu_and_piv"): (np.eye(2, dtype=np.float32), [0, 1]), ("linalg.matmul", "b"): X.T,
    ("linalg.multi_dot", "arrays"): [X, X.T],
    **{(f, n): a for f in ("dequantize", "quantized_matmul", "gather_qmm") for n, a in PACKED.items()},
    **{(f, n): ROWS for f in ("qqmm", "gather_qqmm", "quantize") for n in ("x", "w")},
    ("block_masked_mm", "b"): X.T, ("segmented_mm", "b"): X.T, ("segmented_mm", "segments"): [0, 2],
    ("hadamard_transform", "a"): ROWS,
    ("quantized_matmul", "x"): ROWS, ("gather_qmm", "x"): ROWS, ("from_fp8", "x"): np.ones(3, np.uint8),
    ("concat", "arrays"): [X, X], ("random.permutation", "x"): X,
    ("random.choice", "shape"): (2,), ("random.choice", "p"): [0.5, 0.5], ("random.dirichlet", "alpha"): [1.0, 2.0],
    ("random.split", "key"): [0, 1], ("linalg.cond", "x"): np.eye(2, dtype=np.float32),
    ("linalg.cho_factor", "a"): np.eye(2, dtype=np.float32), ("linalg.tensorinv", "a"): np.eye(2, dtype=np.float32),
    ("linalg.tensorinv", "ind"): 1, ("linalg.tensorsolve", "a"): np.eye(2, dtype=np.float32),
    ("linalg.tensorsolve", "b"): [1.0, 2.0], ("linalg.toeplitz", "c"): [1.0, 2.0], ("delete", "obj"): 1,
    ("insert", "obj"): 1, ("insert", "values"): 1.0, ("indices", "dimensions"): (2, 3), ("resize", "new_shape"): (2, 2),
    ("block", "arrays"): [X, X], ("bitwise_count", "a"): [1, 2], ("multigammaln", "d"): 2, ("diag_indices", "n"): 3,
    ("correlate", "a"): [1.0, 2.0], ("correlate", "v"): [1.0, 2.0], ("random.multinomial", "pvals"): [0.5, 0.5],
    ("histogram2d", "x"): [1.0, 2.0], ("histogram2d", "y"): [1.0, 2.0], ("fill_diagonal", "val"): 1.0,
    **{(f, n): [4, 6] for f in ("gcd", "lcm") for n in ("x1", "x2")}, ("random.triangular", "mode"): 1,
    ("random.triangular", "left"): 0, ("random.triangular", "right"): 2,
}  # fmt: skip
#: By the name of the parameter.
NAMED: dict[str, Any] = {
    "shape": (2, 3), "shapes": (2, 3), "dtype": smelt.float32, "to": smelt.float32, "from_": smelt.float32,
    "arg": smelt.float32, "arg1": smelt.float32, "arg2": smelt.float32, "axis": 0, "source": 0, "axis1": 0, "reps": 2,
    "shift": 1, "k": 1, "kth": 1, "repeats": 2, "pad_width": 1, "start": 0, "n": 3, "M": 3, "num": 3, "seed": 3,
    "limit": 1 << 28, "size": 3, "device": "cpu", "device_type": "cpu", "d": "cpu", "s": "cpu", "name": "cpu",
    "indices_or_sections": 1,
    "subscripts": "ij->ji", "fun": lambda x: (x * x).sum(),
}  # fmt: skip
#: Prefixes and modules whose functions are called.
MODULES = (
    ("", smelt), ("fft.", smelt.fft), ("linalg.", smelt.linalg), ("random.", smelt.random), ("utils.", smelt.utils),
)  # fmt: skip
INTEGERS_ONLY = ("bitwise_", "left_shift", "right_shift")


def public() -> Iterator[tuple[str, Callable]]:
    for prefix, module in MODULES:
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        for name in sorted(names):
            found = getattr(module, name)
            if callable(found) and not inspect.ismodule(found) and found.__module__ not in ELSEWHERE:
                if (prefix + name, None) not in LEFT_OUT:
                    yield prefix + name, found


FUNCTIONS = dict(public())


def valid(name: str, parameter: inspect.Parameter) -> Any:
    """An argument that a function takes."""
    if (name, parameter.name) in VALID:
        found = VALID[name, parameter.name]
    elif parameter.name == "file":
        return io.BytesIO()
    elif name.startswith(INTEGERS_ONLY):
        found = [1, 2]
    else:
        found = NAMED.get(parameter.name, X)
    if isinstance(found, np.ndarray) or (name == "random.split" and parameter.name == "key"):
        return smelt.array(found, smelt.uint32 if name == "random.split" else None)
    return [smelt.array(v) if isinstance(v, np.ndarray) else v for v in found] if isinstance(found, list) else found


def call(name: str, wrong: str | None = None, value: Any = None) -> Any:
    """A call that is valid but for one argument."""
    positional, keywords = [], {}
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        given = parameter.name == wrong
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            if given or parameter.default is parameter.empty:
                keywords[parameter.name] = value if given else valid(name, parameter)
        elif parameter.default is parameter.empty or parameter.kind is parameter.VAR_POSITIONAL:
            positional.append(value if given else valid(name, parameter))
        elif given and parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        elif given or (name, parameter.name) in VALID:
            keywords[parameter.name] = value if given else valid(name, parameter)
    found = FUNCTIONS[name](*positional, **keywords)
    force(found, callable(found) and "fun" in inspect.signature(FUNCTIONS[name]).parameters)
    return found


def force(found: Any, apply: bool = False, depth: int = 3) -> None:
    """Evaluate arrays in what was returned, and call the function that was made."""
    if isinstance(found, smelt.array):
        smelt.eval(found)
    elif isinstance(found, (list, tuple)) and depth:
        for part in found:
            force(part, depth=depth - 1)
    elif apply:
        force(found(smelt.array(X)))


class TooLong(BaseException):
    pass


def ring(*_: Any) -> None:
    raise TooLong


MEMORY, CACHE = 1 << 28, 1 << 20
ENTRY_POINTS = functools.cache(importlib.metadata.entry_points)


@pytest.fixture(scope="module", autouse=True)
def little_memory() -> Iterator[None]:
    """Set once: what there is is counted when a limit is set."""
    memory, cache = smelt.set_memory_limit(MEMORY), smelt.set_cache_limit(CACHE)
    yield
    smelt.set_memory_limit(memory), smelt.set_cache_limit(cache)


@pytest.fixture(autouse=True)
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for files, settings as they were, installed packages read once, not for each name of a device."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.metadata, "entry_points", ENTRY_POINTS)
    printing, flush = dataclasses.asdict(smelt.get_printoptions()), smelt.set_flush_subnormals(False)
    handler = signal.signal(signal.SIGALRM, ring)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)
    smelt.set_printoptions(**printing), smelt.set_flush_subnormals(flush)


def outcome(name: str, parameter: str, value: Any) -> str:
    """`result`, `error`, or what is wrong with the error."""
    signal.alarm(SECONDS)
    try:
        call(name, parameter, value)
    except SmeltError as error:
        message = str(error)
        if __file__ not in message:
            return f"the message has no line of the user: {message[:200]}"
        if not message.startswith("smelt") and not isinstance(error, OutOfMemoryError):
            return f"the message names no function: {message[:200]}"
        return "error" if len(message) < 1500 else f"a message of {len(message)} characters"
    except OSError as error:
        return "error" if parameter == "file" else f"{error!r}"
    except TooLong:
        return "it takes too long"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
        smelt.set_memory_limit(MEMORY), smelt.set_cache_limit(CACHE), smelt.set_default_device("cpu")
    return "result"


def must_fail(parameter: inspect.Parameter, what: str, value: Any) -> bool:
    """Whether a parameter's annotation says that it does not take a value."""
    annotation = str(parameter.annotation)
    if parameter.name == "stream" and annotation == "StreamOrDevice":
        return what in NO_STREAMS
    if annotation in ("Axes", "int") and what == "None":
        return True
    if annotation == "ArrayLike":
        return what in NO_ARRAYS
    if annotation in ("int", "int | None"):
        return what in NO_INTS
    if annotation in ("bool", "bool | None"):
        return what in NO_FLAGS
    return annotation in ("DType", "DType | None") and what in NO_DTYPES


def has_errors_of_its_own(parameter: inspect.Parameter, value: Any) -> bool:
    """A function raises what it likes."""
    annotation = str(parameter.annotation)
    return ("Callable" in annotation or annotation == "IsLeaf") and callable(value)


#: Hostile arguments that are tried apart: each part has every `PARTS`-th.
PARTS = 3


@pytest.mark.thinned(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_arguments(name: str, part: int) -> None:
    try:
        call(name)
    except MissingPackageError as error:
        pytest.skip(str(error))
    except SmeltError as error:
        if FUNCTIONS[name] not in (smelt.load, smelt.import_function):  # of an empty file
            raise AssertionError(f"the valid call of {name} fails: {error}") from error
    wrong = []
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        if (name, parameter.name) in LEFT_OUT or parameter.kind is parameter.VAR_KEYWORD:
            continue
        for what, make in list(HOSTILE.items())[part::PARTS]:
            value = make()
            if has_errors_of_its_own(parameter, value):
                continue
            found = outcome(name, parameter.name, value)
            if found == "result" and must_fail(parameter, what, value):
                wrong.append(f"{parameter.name}={what}: accepted")
            elif found not in ("result", "error"):
                wrong.append(f"{parameter.name}={what}: {found}")
    assert not wrong, "\n".join(wrong)


def test_the_left_out_are_there() -> None:
    named = {prefix + n for prefix, m in (("", smelt), ("random.", smelt.random),
    ("utils.", smelt.utils)) for n in dir(m)}
    assert {name for name, _ in LEFT_OUT} <= named
    assert all(importlib.import_module(module) for module in ELSEWHERE)


def test_mocks_in_trees() -> None:
    """What answers to every name is no array: a leaf like any other, or an error with the line."""
    x = smelt.array([1.0, 2.0])
    for mock in (MagicMock(), Mock()):
        tree = {"x": x, "mock": mock}
        assert smelt.grad(lambda t: t["x"].sum())(tree)["mock"] is mock
        assert smelt.utils.tree_map(lambda leaf: leaf, tree)["mock"] is mock
        for call in (
            lambda m=mock: smelt.grad(lambda y: m)(x), lambda m=mock: smelt.vmap(lambda y: m)(x),
            lambda m=mock: smelt.vmap(lambda y: y)(m), lambda m=mock: smelt.sum(m), lambda m=mock: smelt.array([m, 1]),
            lambda m=mock: smelt.jvp(lambda y: y, m, [x]), lambda m=mock: smelt.scan(lambda c, y: (c, y), x, m),
            lambda m=mock: smelt.optimizers.SGD(0.1).apply_gradients({"a": m}, {"a": x}),
        ):  # fmt: skip
            with pytest.raises(SmeltError, match="test_hostile"):
                force(call())
    with pytest.raises(SmeltError, match=r"compile: .*MagicMock.*at .*test_hostile"):
        smelt.compile(lambda m: x)(MagicMock())
    held = Holder()
    with pytest.raises(SmeltError, match=r"compile: .*Holder, which holds itself"):
        smelt.compile(lambda h: x)(held)


class Holder:
    """It has an equality, so its attributes count, of which it is one itself."""

    def __init__(self) -> None:
        self.itself = self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Holder)

    def __hash__(self) -> int:
        return 0
