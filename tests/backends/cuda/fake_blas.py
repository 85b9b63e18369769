"""cuBLASLt without a GPU: the functions that smelt calls, by NumPy, from the descriptors that they are given alone.

Numbers are those of NVIDIA's headers, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from .fake_driver import FakeDriver
from .fake_library import Texts

SUCCESS, INVALID_VALUE, NOT_SUPPORTED = 0, 7, 15
#: `cublasLtMatmul`.
MATMUL = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 14, ctypes.c_size_t, ctypes.c_void_p)
#: cudaDataType_t of double.
DOUBLE = 1
#: cudaDataType_t.
DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 14: ml_dtypes.bfloat16}
#: cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t and cublasLtMatmulPreferenceAttributes_t that smelt
#: sets: name and type.
OPERATION = {3: ("transpose_a", "i"), 4: ("transpose_b", "i"), 7: ("epilogue", "I"), 8: ("bias", "P")}
LAYOUT = {5: ("batch", "i"), 6: ("stride", "q")}
PREFERENCE = {
    1: ("workspace", "N"), 3: ("reductions", "I"), 5: ("aligned_a", "I"), 6: ("aligned_b", "I"), 7: ("aligned_c", "I"),
    8: ("aligned_d", "I"),
}  # fmt: skip
CTYPES = {"i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64, "P": ctypes.c_void_p, "N": ctypes.c_size_t}
RELU, BIAS, GELU = 2, 4, 32


class FakeBlas:
    """Attributes:
    products: what was computed: the descriptors of each.
    without: epilogues that it has no algorithm for.
    fails: what `cublasLtMatmul` returns instead of computing.
    captured: products that were put on a stream of their own.
    """

    def __init__(self, driver: FakeDriver):
        self.driver, self.objects = driver, {}  # type: ignore[var-annotated]
        self.products: list[dict[str, Any]] = []
        self.without: set[int] = set()
        self.fails = self.captured = 0
        self.cublasLtMatmul = MATMUL(self._matmul)  # as C calls it, too
        self.cublasLtGetStatusString = Texts({INVALID_VALUE: b"an invalid value", NOT_SUPPORTED: b"not supported"})

    def _make(self, made: Any, **content: Any) -> int:
        number = 70_000 + len(self.objects)
        self.objects[number] = content
        made._obj.value = number
        return SUCCESS

    def _set(self, names: dict[int, tuple[str, str]], descriptor: Any, attribute: int, value: Any, size: Any) -> int:
        name, code = names[attribute]
        if size.value != ctypes.sizeof(CTYPES[code]) or not isinstance(value._obj, CTYPES[code]):
            return INVALID_VALUE
        self.objects[descriptor.value][name] = value._obj.value
        return SUCCESS

    def cublasLtCreate(self, handle: Any) -> int:
        return self._make(handle)

    def cublasLtMatmulDescCreate(self, made: Any, compute: int, scale: int) -> int:
        return self._make(made, compute=compute, scale=scale, transpose_a=0, transpose_b=0, epilogue=1, bias=None)

    def cublasLtMatmulDescSetAttribute(self, *arguments: Any) -> int:
        return self._set(OPERATION, *arguments)

    def cublasLtMatrixLayoutCreate(self, made: Any, dtype: int, rows: Any, columns: Any, lead: Any) -> int:
        assert isinstance(rows, ctypes.c_uint64) and isinstance(lead, ctypes.c_int64)
        if lead.value < rows.value:
            return INVALID_VALUE
        return self._make(
            made, dtype=dtype, rows=rows.value, columns=columns.value, lead=lead.value, batch=1, stride=0
        )  # fmt: skip

    def cublasLtMatrixLayoutSetAttribute(self, *arguments: Any) -> int:
        return self._set(LAYOUT, *arguments)

    def cublasLtMatmulPreferenceCreate(self, made: Any) -> int:
        return self._make(made)

    def cublasLtMatmulPreferenceSetAttribute(self, *arguments: Any) -> int:
        return self._set(PREFERENCE, *arguments)

    def _destroy(self, descriptor: Any) -> int:
        return SUCCESS if self.objects.pop(descriptor.value, None) is not None else INVALID_VALUE

    cublasLtMatmulDescDestroy = cublasLtMatrixLayoutDestroy = cublasLtMatmulPreferenceDestroy = _destroy

    def cublasLtMatmulAlgoGetHeuristic(
        self, handle: Any, operation: Any, a: Any, b: Any, c: Any, d: Any, preference: Any, wanted: int, best: Any,
        count: Any,
    ) -> int:  # fmt: skip
        described = self.objects[operation.value]
        is_small = self.objects[d.value]["dtype"] in (0, 2, 14)
        if described["epilogue"] in self.without or (described["epilogue"] > 1 and not is_small):
            return NOT_SUPPORTED
        best._obj.state, count._obj.value = 0, 1
        best._obj.algorithm[0] = preference.value
        return SUCCESS

    def _matrices(self, address: int, at: dict[str, Any]) -> np.ndarray:
        """The batch as (batch, rows, columns), a view of the GPU's memory."""
        dtype = np.dtype(DTYPES[at["dtype"]])
        found = self.driver._find(address)
        assert found is not None
        start, nbytes = found
        last = (at["batch"] - 1) * at["stride"] + (at["columns"] - 1) * at["lead"] + at["rows"]
        assert last * dtype.itemsize <= nbytes, "the product reaches beyond its memory"
        memory = np.frombuffer((ctypes.c_char * (last * dtype.itemsize)).from_address(start), dtype)
        strides = [n * dtype.itemsize for n in (at["stride"], 1, at["lead"])]
        shape = at["batch"], at["rows"], at["columns"]
        return np.lib.stride_tricks.as_strided(memory, shape, strides)

    def _matmul(self, *numbers: int | None) -> int:
        _, operation, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm, workspace, nbytes, stream = (
            n or 0 for n in numbers
        )
        if self.fails:
            return self.fails
        described = dict(self.objects[operation])
        described |= {name: dict(self.objects[x]) for name, x in zip("abcd", (of_a, of_b, of_c, of_d))}
        places = [a, b, c, d]
        number: Any = ctypes.c_double if described["scale"] == DOUBLE else ctypes.c_float
        factors = number.from_address(alpha).value, number.from_address(beta).value
        assumed = self.objects[ctypes.c_uint64.from_address(algorithm).value]
        if any(place % assumed[f"aligned_{name}"] for name, place in zip("abcd", places)):
            return INVALID_VALUE
        if nbytes < assumed["workspace"] or self.driver._find(workspace) is None:
            return INVALID_VALUE
        if stream:
            self.captured += 1
            return self.driver.capture(ctypes.c_void_p(stream), lambda: self._compute(described, places, *factors))
        return self._compute(described, places, *factors)

    def _compute(self, described: dict[str, Any], places: list[int], alpha: float, beta: float) -> int:
        self.products.append(described)
        wide: Any = {1: np.float64, 4: np.complex128}.get(described["scale"], np.float32)
        left, right, added, out = (self._matrices(at, described[name]) for at, name in zip(places, "abcd"))
        left, right = (
            x.astype(wide).swapaxes(1, 2) if turned else x.astype(wide)
            for x, turned in ((left, described["transpose_a"]), (right, described["transpose_b"]))
        )
        total = left @ right * alpha
        if beta:
            total = total + added.astype(wide) * beta
        epilogue = described["epilogue"]
        if epilogue & BIAS:
            row = {**described["d"], "columns": 1, "batch": 1}
            total = total + self._matrices(described["bias"], row).astype(wide)
        if epilogue & RELU:
            total = np.maximum(total, 0)
        if epilogue & GELU:
            total = total / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
        out[...] = total.astype(out.dtype)
        return SUCCESS
