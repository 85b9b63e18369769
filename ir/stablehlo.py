"""StableHLO: the dialect in which other frameworks hand programs on. Its context, its text and its bytecode.

The bindings carry the dialect; it lives in a context of its own, so that programs of smelt do not pay for it.
"""

from __future__ import annotations

import functools
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes, locks, mlir
from .aval import Aval
from .bytecode import without_attributes
from .context import parse_aval
from .errors import FileFormatError, IRError, MissingPackageError
from .stablehlo_sizes import inside, settle
from .text import check_text, diagnostics

#: How a portable artifact begins.
BYTECODE = b"ML\xefR"
#: A child process has so many seconds to read one.
BYTECODE_SECONDS = 120
MOST_SHOWN = 500
MAX_BYTECODE = 256 * 1024 * 1024


@functools.cache
def bindings() -> Any:
    """The part of the bindings that knows StableHLO.

    Raises:
        MissingPackageError: they were built without it.
    """
    try:
        return mlir.module("_mlir_libs._stablehlo")
    except ImportError:
        message = f"the MLIR bindings ({mlir.host()}) have no StableHLO; pip install torch-mlir==20261001 brings them"
        raise MissingPackageError(message) from None


@functools.cache
def context() -> Any:
    """A context with the dialects of StableHLO and CHLO."""
    with mlir.lock:
        return locks.whole(_context)


def _context() -> Any:
    found = bindings()
    ctx = mlir.ir.Context()
    ctx.enable_multithreading(False)
    ctx.allow_unregistered_dialects = True  # attributes that say how to divide work among devices
    found.register_dialect(ctx)
    found.register_stablehlo_passes()
    # The bindings have no function that registers CHLO. A pass that may make its ops loads it.
    run(ctx, mlir.ir.Module.parse("module {}", ctx), "func.func(stablehlo-complex-math-expander)")
    return ctx


def run(ctx: Any, module: Any, pipeline: str) -> None:
    """Run upstream's passes on a module. Raises MLIRError or RuntimeError, as they do."""
    with ctx:
        mlir.module("passmanager").PassManager.parse(f"builtin.module({pipeline})").run(module.operation)


def parse(source: str, name: str = "<text>") -> Any:
    """A verified module from text.

    Raises:
        IRError: the place of the mistake.
    """
    check_text(source, bytes_allowed=True)
    _check_convolutions(source, name)
    source = without_sharding(source)
    with mlir.lock:
        ir = mlir.ir
        ctx = context()
        try:
            with ctx, mlir.file_location(name, 1, 1, ctx):
                return ir.Module.parse(source)
        except ir.MLIRError as error:
            lines = [shortened(line) for line in diagnostics(error, name).splitlines()]
            raise IRError("\n".join(lines)) from None


#: Dimensions of an operand of a convolution, one of them with a number that is no axis.
_NO_AXIS = re.compile(r"\[(?=[^][]*\b[bfio]\b)[^][]*\b(?:\d{4,}|0[xX][0-9a-fA-F]{4,})[^][]*\]")
_COMMENT = re.compile(r"//[^\n]*")


def _check_convolutions(source: str, name: str) -> None:
    """Refuse numbers of dimensions for which the parser would make a vector as long, and end the process."""
    for text in (source, _COMMENT.sub("", source)):
        found = _NO_AXIS.search(text)
        if found is not None:
            line = text.count("\n", 0, found.start()) + 1
            dimensions = shortened(" ".join(found.group().split()))
            raise IRError(f"{name}:{line}: {dimensions} names a dimension that no array has")


#: Infers all types from those of the arguments, and writes ops that take sizes as values as those that know them.
_BIND = "func.func(stablehlo-legalize-composite-to-call),inline,stablehlo-refine-arguments{{types={types}}}"
_REFINE = "stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism)"
#: Rounds of inferring types, each of which may make the sizes of more windows known.
_MOST_ROUNDS = 64


@mlir.locked
def bound(source: str, arguments: Sequence[Aval], name: str = "<text>") -> Any:
    """A module of open sizes as one of the sizes that arguments of these types give it.

    Raises:
        IRError: these are no types of its arguments, or sizes depend on more than they.
    """
    module = parse(source, name)
    try:
        run(context(), module, _BIND.format(types=",".join(a.mlir for a in arguments)))
        for _ in range(_MOST_ROUNDS):
            run(context(), module, _REFINE)
            if not settle(module):
                break
    except mlir.ir.MLIRError as error:
        lines = [shortened(line) for line in diagnostics(error, name).splitlines()]
        raise IRError("\n".join(lines)) from None
    for operation in inside(module.operation):
        if any("?" in str(r.type) for r in operation.results):
            target = operation.attributes.get("call_target_name")
            what = f"{operation.name} @{target.value}" if target is not None else operation.name
            raise IRError(f"{name}: the sizes of arguments do not say which {what} has; lower it for given sizes")
    return module


#: Statements of the dialect sdy, each on a line, that say on which devices values lie: meshes, and values as they are.
_MESH = re.compile(r"^[ \t]*sdy\.mesh @.*$", re.MULTILINE)
_PLACED = re.compile(r"^([ \t]*%[\w.$-]+ = )sdy\.sharding_constraint (%[\w.$#-]+) <.*> : (.*)$", re.MULTILINE)


def without_sharding(source: str) -> str:
    """A program without the notes on sharding that the bindings cannot read; lines keep their numbers."""
    if "sdy." not in source:
        return source
    return _PLACED.sub(r"\1stablehlo.optimization_barrier \2 : \3", _MESH.sub("", source))


def shortened(line: str) -> str:
    """A line of a message, which may quote all of a text."""
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} …"


def evaluate(source: str, arguments: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
    """What StableHLO's own interpreter computes for a module of a function ``@main``; slow, and independent of smelt.

    Raises:
        IRError: the module is not valid, or has something that the interpreter does not know.
    """
    module = parse(source)
    with mlir.lock, context():
        ir = mlir.ir
        given = []
        for x in arguments:
            aval = Aval(x.shape, dtypes.of(x.dtype))
            host = x.astype(np.uint8) if x.dtype == np.bool_ else np.ascontiguousarray(x)
            kind = ir.Type.parse(aval.dtype.mlir)
            given.append(ir.DenseElementsAttr.get(host, type=kind, shape=x.shape))
        try:
            found = bindings().eval_module(module, given)
        except (RuntimeError, ValueError, ir.MLIRError) as error:
            raise IRError(f"StableHLO's interpreter refuses the module: {error}") from None
        return [_array(attr) for attr in found]


def _array(attr: Any) -> np.ndarray:
    """Elements that the bindings hand out: not those of complex numbers and of bfloat16."""
    aval = parse_aval(attr.type)
    if attr.is_splat:
        return np.full(aval.shape, attr.get_splat_value().value).astype(aval.dtype.numpy)
    return np.array(attr).astype(aval.dtype.numpy).reshape(aval.shape)


def as_numbers(attr: str, aval: Aval, kind: str) -> np.ndarray:
    """Elements of bfloat16 and of narrow types, as float32, or of complex numbers, from their text, which is all that
    the bindings hand out: taken apart by the interpreter.

    Args:
        attr: their text. aval: that of an array of them. kind: their type in MLIR.
    """
    part = "tensor<" + "".join(f"{d}x" for d in aval.shape) + ("f64>" if aval.dtype is dtypes.complex128 else "f32>")
    names = ("real", "imag") if aval.dtype.is_complex else ("convert",)
    lines = "\n".join(f"%{n} = stablehlo.{n} %c : ({kind}) -> {part}" for n in names)
    values, types = ", ".join(f"%{n}" for n in names), ", ".join(part for _ in names)
    found = evaluate(
        f"func.func @main() -> ({types}) {{\n%c = stablehlo.constant {attr}\n{lines}\nreturn {values} : {types}\n}}"
    )
    if len(found) == 1:
        return found[0]
    numbers = np.empty(aval.shape, aval.dtype.numpy)
    numbers.real, numbers.imag = found  # not a sum with 1j, which makes NaN of infinite parts
    return numbers


def to_text(module: Any) -> str:
    """A module as text, in the form that StableHLO's own tools print."""
    with mlir.lock:
        text: str = module.operation.get_asm(large_elements_limit=None)
        return text.rstrip() + "\n"


def to_bytecode(source: str) -> bytes:
    """A module's text as a portable artifact, readable by this version of StableHLO and all later ones.

    Ops of CHLO, which artifacts do not have, are expanded.

    Raises:
        IRError: the text is not valid, or has something that artifacts do not.
    """
    module = parse(source)
    found = bindings()
    with mlir.lock:
        try:
            run(context(), module, "func.func(chlo-legalize-to-stablehlo)")
            data: bytes = found.serialize_portable_artifact(module, found.get_current_version(), False)
        except (RuntimeError, ValueError, mlir.ir.MLIRError) as error:
            raise IRError(f"StableHLO's serializer refuses the module: {error}") from None
    return data


#: Bytes of memory that the process which reads bytecode may take, and so many more for each of bytecode: MLIR's reader
#: makes room for as many texts and attributes as a damaged file says it has.
_READER_BYTES, _READER_BYTES_EACH = 2 << 30, 32
#: Seconds of its processor that it may take, and how many bytes of bytecode have another one each: of damaged files the
#: reader may never come to an end.
_READER_SECONDS, _READER_BYTES_A_SECOND = 10, 100_000

_READ = """
import contextlib, importlib, sys
package, most, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
found = importlib.import_module(package + "._mlir_libs._stablehlo")
ir = importlib.import_module(package + ".ir")
context = ir.Context()
context.allow_unregistered_dialects = True
found.register_dialect(context)
found.register_stablehlo_passes()
manager = importlib.import_module(package + ".passmanager").PassManager
with context:
    manager.parse("builtin.module(func.func(stablehlo-complex-math-expander))").run(
        ir.Module.parse("module {}").operation)
with contextlib.suppress(ImportError, OSError, ValueError):  # systems that have no such limit
    import resource
    with open("/proc/self/statm") as file:
        most += int(file.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds += int(spent.ru_utime + spent.ru_stime) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard))
try:
    module = found.deserialize_portable_artifact(context, sys.stdin.buffer.read())
    text = module.operation.get_asm(large_elements_limit=None)
except Exception as error:
    sys.exit("refused: " + str(error))
sys.stdout.buffer.write(text.encode())
"""


def text_of_bytecode(data: bytes, name: str = "<bytes>") -> str:
    """The text of a portable artifact. MLIR's reader of bytecode is no match for hostile bytes, so another process
    reads them.

    Raises:
        FileFormatError: they are none, or damaged.
    """
    if not data.startswith(BYTECODE):
        raise FileFormatError(f"{name}: a portable artifact of StableHLO begins with {BYTECODE!r}")
    if len(data) > MAX_BYTECODE:
        raise FileFormatError(f"{name} has {len(data)} bytes; the limit is {MAX_BYTECODE}")
    bindings()
    most = _READER_BYTES + _READER_BYTES_EACH * len(data)
    seconds = _READER_SECONDS + len(data) // _READER_BYTES_A_SECOND
    command = [sys.executable, "-c", _READ, mlir.host(), str(most), str(seconds)]
    data = without_attributes(data, "sdy")
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=BYTECODE_SECONDS)
    except subprocess.TimeoutExpired:
        raise FileFormatError(f"{name}: reading it took more than {BYTECODE_SECONDS} s") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        crashed = f"refused: its reader crashed, or wanted more than {most >> 20} MiB of memory"
        if -done.returncode == getattr(signal, "SIGXCPU", 0):
            crashed = f"refused: its reader comes to no end in {seconds} s"
        last = next((line for line in reason if line.startswith("refused: ")), crashed)
        raise FileFormatError(f"{name}: no portable artifact that StableHLO {version()} reads: {last[9:]}")
    return done.stdout.decode()


def version() -> str:
    """The version of StableHLO that the bindings carry."""
    found: str = bindings().get_current_version()
    return found
