"""``smelt run``: an IR file on NumPy files."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.errors import DTypeError, FileFormatError, IRError

from .exchange import as_smelt
from .isolate import PARSING, Progress, run_isolated
from .opt import check_calls, describe, read_source
from .show import dense
from .user_code import load_plugins

#: Results with more elements are not printed.
MAX_PRINTED = 1000


def run(options: argparse.Namespace) -> int:
    """Compile, run, print or save."""
    from smelt.ir.settings import settings
    from smelt.runtime import device_named

    device_named(options.device or settings.device)
    name, source = (options.file, "") if _is_onnx(options) else read_source(options.file)
    if options.isolate:
        return run_isolated(_job, (options, source, name), options.parse_timeout, name)
    return _job(options, source, name, lambda stage: None)


def _job(options: argparse.Namespace, source: str, name: str, progress: Progress) -> int:
    try:
        load_plugins(options.plugins)
        progress(PARSING)
        results = (
            _results_of_onnx(options, progress) if _is_onnx(options) else _results(options, source, name, progress)
        )
        if options.output and len(options.output) != len(results):
            raise IRError(f"@{options.function} has {len(results)} results, --output names {len(options.output)}")
        for path, array in zip(options.output, results):
            _save(path, array)
        if not options.output:
            for array in results:
                print(_shown(array))
        return 0
    except Exception as error:
        if options.debug:
            import traceback

            traceback.print_exception(error)
        print(describe(error, name), file=sys.stderr)
        return 1


def _results(options: argparse.Namespace, source: str, name: str, progress: Progress) -> list[np.ndarray]:
    module = parsed(source, name)
    check_calls(module, options)
    progress("the compiler")
    arguments = _signature(module, options.function)
    captured = _captured(options.file, source, options.function)
    arrays = _load_inputs(options.input, arguments[: len(arguments) - len(captured)], options.function) + captured
    found: list[np.ndarray] = _compiled(module, options, name)(arrays)
    return found


def _is_onnx(options: argparse.Namespace) -> bool:
    return str(options.file).endswith(".onnx")


def _results_of_onnx(options: argparse.Namespace, progress: Progress) -> list[np.ndarray]:
    """Of a model, whose shapes may be those of the files."""
    import smelt
    from smelt.ir import dtypes
    from smelt.ir.settings import settings

    f = smelt.from_onnx(options.file)
    if options.function != "main":
        raise IRError(f"{options.file} is a model, which has no function @{options.function}")
    progress("the compiler")
    arrays = [smelt.array(x, dtypes.of(x.dtype)) for x in map(_read, options.input)]
    with smelt.stream(smelt.Device(options.device or settings.device)):
        found = smelt.compile(f)(*arrays)
        return [np.array(x) for x in (found if isinstance(found, tuple) else (found,))]


def parsed(source: str, name: str) -> Any:
    """The module that a text is, in smelt's dialect or in StableHLO."""
    from smelt.ir import text

    if not source.strip():
        raise IRError("the text is empty")
    return text.parse(as_smelt(source, name), name)


def _signature(module: Any, name: str) -> list[Aval]:
    from smelt.ir import mlir
    from smelt.ir.builder import function_named

    with mlir.lock:
        return [a.aval for a in function_named(module, name).arguments]


def _compiled(module: Any, options: argparse.Namespace, name: str) -> Any:
    from smelt.ir import mlir, text
    from smelt.ir.settings import settings
    from smelt.runtime import compile_text, device_named

    with mlir.lock:
        _make_main(module, options.function)
        source = text.to_text(module, locations=True)
    return compile_text(source, device_named(options.device or settings.device), name)


def _make_main(module: Any, name: str) -> None:
    """Give a function the name and the visibility of the program."""
    from smelt.ir import mlir
    from smelt.ir.builder import fresh_name, functions
    from smelt.ir.dialect import context

    found = functions(module)
    if name != "main":
        rename = mlir.ir.SymbolTable.replace_all_symbol_uses
        for old, new in (("main", fresh_name(module, "main_before")), (name, "main")):
            if old in found:
                rename(old, new, module.operation)
                found[old].attributes["sym_name"] = mlir.ir.StringAttr.get(new, context())
    chosen = found[name].attributes
    if "sym_visibility" in chosen:
        del chosen["sym_visibility"]


def _load_inputs(paths: list[str], arguments: list[Aval], function: str) -> list[np.ndarray]:
    if len(paths) != len(arguments):
        needed = ", ".join(map(str, arguments)) or "none"
        raise IRError(f"@{function} takes {len(arguments)} arguments ({needed}), --input gives {len(paths)}")
    return [_load(path, i, aval, function) for i, (path, aval) in enumerate(zip(paths, arguments))]


def _captured(path: str, source: str, function: str) -> list[np.ndarray]:
    """The arrays that a file of exported functions has for the last arguments of a function."""
    from smelt.formats.functions import MARK, read_exported

    if not source.startswith(MARK.decode()):
        return []
    if path == "-":
        raise IRError("this is a file of exported functions, whose arrays are read by its name: smelt run FILE")
    try:
        with open(path, "rb") as file:
            found = read_exported(file)
    except (FileFormatError, DTypeError) as error:
        raise IRError(f"{path}: error: {error}") from None
    names = [name for trace in found.traces if trace.function == function for name in trace.captured]
    return [found.arrays[name][0] for name in names]


def _read(path: str) -> np.ndarray:
    from smelt.formats.npy import read_npy

    try:
        with open(path, "rb") as file:
            if file.read(2) == b"PK":
                raise IRError(f"{path}: error: this is an archive; one .npy file an argument is needed")
            file.seek(0)
            array: np.ndarray = read_npy(file)
    except OSError as error:
        raise IRError(f"{path}: error: cannot be read: {error.strerror or error}") from None
    except (FileFormatError, DTypeError) as error:
        raise IRError(f"{path}: error: this is not a .npy file of numbers ({error})") from None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _load(path: str, i: int, aval: Aval, function: str) -> np.ndarray:
    array = _read(path)
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and aval.dtype.name == "bfloat16":
        array = array.view(aval.dtype.numpy)  # .npy files do not know bfloat16
    if array.shape != aval.shape or array.dtype != aval.dtype.numpy:
        have = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise IRError(f"{path}: error: argument {i} of @{function} must be {aval}, is {have}")
    return array


def _save(path: str, array: np.ndarray) -> None:
    try:
        with open(path, "wb") as file:
            np.save(file, array)
    except OSError as error:
        raise IRError(f"{path}: error: cannot be written: {error.strerror}") from None


def _shown(array: np.ndarray) -> str:
    if array.size <= MAX_PRINTED:
        return dense(array)
    return f"{array.dtype.name}{list(array.shape)}: {array.size} elements; --output saves them"
