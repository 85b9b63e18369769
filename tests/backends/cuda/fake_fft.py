"""cuFFT without a GPU: the functions that smelt calls, by NumPy, from the arguments that they are given alone.

Numbers are those of NVIDIA's headers, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .fake_driver import FakeDriver

SUCCESS, INVALID_PLAN, INVALID_VALUE = 0, 1, 4
#: cufftType: dtypes of what is read and written.
TYPES = {
    0x29: (np.complex64, np.complex64), 0x2A: (np.float32, np.complex64), 0x2C: (np.complex64, np.float32),
    0x69: (np.complex128, np.complex128), 0x6A: (np.float64, np.complex128), 0x6C: (np.complex128, np.float64),
}  # fmt: skip
#: Bytes that every transform uses besides.
AREA = 64


class FakeFft:
    """Attributes:
    done: what was computed: the type, the length, and how many.
    without: lengths that it has no plan for.
    fails: what transforms return instead of computing.
    captured: transforms that were put on a stream of their own.
    """

    def __init__(self, driver: FakeDriver):
        self.driver, self.plans = driver, {}  # type: ignore[var-annotated]
        self.done: list[tuple[int, int, int]] = []
        self.without: set[int] = set()
        self.fails = self.captured = 0

    def cufftCreate(self, plan: Any) -> int:
        plan._obj.value = 300 + len(self.plans)
        self.plans[plan._obj.value] = {"stream": None, "area": None, "allocates": True}
        return SUCCESS

    def cufftDestroy(self, plan: ctypes.c_int) -> int:
        return SUCCESS if self.plans.get(plan.value) else INVALID_PLAN

    def cufftSetAutoAllocation(self, plan: ctypes.c_int, allocates: int) -> int:
        self.plans[plan.value]["allocates"] = bool(allocates)
        return SUCCESS

    def cufftMakePlanMany64(
        self, plan: ctypes.c_int, rank: int, n: Any, inembed: Any, istride: Any, idist: Any, onembed: Any, ostride: Any,
        odist: Any, kind: int, batch: Any, size: Any,
    ) -> int:  # fmt: skip
        if rank != 1 or any(not isinstance(x, ctypes.c_longlong) for x in (istride, idist, ostride, odist, batch)):
            return INVALID_VALUE
        if n[0] in self.without or self.plans[plan.value]["allocates"]:
            return INVALID_VALUE
        assert inembed is None and onembed is None  # then rows lie one behind the other
        self.plans[plan.value] |= {"n": n[0], "kind": kind, "batch": batch.value}
        size._obj.value = AREA
        return SUCCESS

    def cufftSetStream(self, plan: ctypes.c_int, stream: Any) -> int:
        self.plans[plan.value]["stream"] = stream
        return SUCCESS

    def cufftSetWorkArea(self, plan: ctypes.c_int, area: ctypes.c_void_p) -> int:
        found = self.driver._find(area.value or 0)
        self.plans[plan.value]["area"] = area.value if found is not None and found[1] >= AREA else None
        return SUCCESS

    def _execute(self, kind: int, plan: ctypes.c_int, x: Any, y: Any, direction: int = 0) -> int:
        found = self.plans[plan.value]
        if self.fails or found["kind"] != kind or found["area"] is None:
            return self.fails or INVALID_PLAN

        def run() -> int:
            return self._compute(found["kind"], found["n"], found["batch"], x.value, y.value, direction)

        if found["stream"] is None:
            return run()
        self.captured += 1
        return self.driver.capture(found["stream"], run)

    def _array(self, address: int, dtype: Any, shape: tuple[int, int]) -> np.ndarray:
        found, nbytes = self.driver._find(address), np.dtype(dtype).itemsize * shape[0] * shape[1]
        assert found is not None and nbytes <= found[1], "the transform reaches beyond its memory"
        return np.frombuffer((ctypes.c_char * nbytes).from_address(found[0]), dtype).reshape(shape)

    def _compute(self, kind: int, n: int, batch: int, x: int, y: int, direction: int) -> int:
        self.done.append((kind, n, batch))
        given, wanted = TYPES[kind]
        half = n // 2 + 1
        from_ = self._array(x, given, (batch, half if np.dtype(wanted).kind == "f" else n))
        to = self._array(y, wanted, (batch, half if np.dtype(given).kind == "f" else n))
        if np.dtype(given).kind == "f":
            to[...] = np.fft.rfft(from_)
        elif np.dtype(wanted).kind == "f":
            own = [0, n // 2] if n % 2 == 0 else [0]
            assert not from_[:, own].imag.any(), "what these do is not said"
            to[...] = np.fft.irfft(from_, n, norm="forward")
            from_[...] = np.nan
        else:
            to[...] = np.fft.fft(from_) if direction == -1 else np.fft.ifft(from_, norm="forward")
        return SUCCESS

    def cufftExecC2C(self, plan: ctypes.c_int, x: Any, y: Any, direction: int) -> int:
        return self._execute(0x29, plan, x, y, direction)

    def cufftExecZ2Z(self, plan: ctypes.c_int, x: Any, y: Any, direction: int) -> int:
        return self._execute(0x69, plan, x, y, direction)

    def cufftExecR2C(self, plan: ctypes.c_int, x: Any, y: Any) -> int:
        return self._execute(0x2A, plan, x, y)

    def cufftExecC2R(self, plan: ctypes.c_int, x: Any, y: Any) -> int:
        return self._execute(0x2C, plan, x, y)

    def cufftExecD2Z(self, plan: ctypes.c_int, x: Any, y: Any) -> int:
        return self._execute(0x6A, plan, x, y)

    def cufftExecZ2D(self, plan: ctypes.c_int, x: Any, y: Any) -> int:
        return self._execute(0x6C, plan, x, y)
