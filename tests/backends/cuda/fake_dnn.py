"""cuDNN without a GPU: the functions that smelt calls, by NumPy, from the descriptors that they are given alone.

Numbers are those of NVIDIA's headers, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import ml_dtypes
import numpy as np

from .fake_driver import FakeDriver
from .fake_library import Texts

SUCCESS, BAD_PARAM, NOT_FINALIZED, WRONG_TYPE, NOT_SUPPORTED = 0, 2000, 2004, 2010, 3000
#: cudnnDataType_t.
DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 9: ml_dtypes.bfloat16}
#: cudnnBackendAttributeType_t: what the elements of an attribute are.
CTYPES: dict[int, Any] = {
    0: ctypes.c_void_p, 1: ctypes.c_int, 3: ctypes.c_int64, 4: ctypes.c_float, 5: ctypes.c_double, 6: ctypes.c_void_p,
    7: ctypes.c_int, 8: ctypes.c_int, 11: ctypes.c_int, 15: ctypes.c_void_p, 19: ctypes.c_int,
}  # fmt: skip
#: By kind of descriptor (cudnnBackendDescriptorType_t): its attributes that must be given, with their names and types.
OPERATION = ["alpha", "beta", "convolution", "w", "x", "y"]
GIVEN: dict[int, dict[int, tuple[str, tuple[int, ...]]]] = {
    1: {
        100: ("compute", (1,)), 101: ("mode", (7,)), 102: ("dilation", (3,)), 103: ("strides", (3,)),
        104: ("high", (3,)), 105: ("low", (3,)), 106: ("axes", (3,)),
    },
    4: {200: ("mode", (8,)), 201: ("graph", (15,))},
    5: {400: ("handle", (0,)), 401: ("configuration", (15,))},
    10: {700 + i: (name, (4, 5) if i < 2 else (15,)) for i, name in enumerate(OPERATION)},
    12: {706 + i: (name, (4, 5) if i < 2 else (15,)) for i, name in enumerate(OPERATION)},
    11: {712 + i: (name, (4, 5) if i < 2 else (15,)) for i, name in enumerate(OPERATION)},
    15: {800: ("handle", (0,)), 801: ("operations", (15,))},
    16: {1000: ("ids", (3,)), 1001: ("pointers", (6,)), 1003: ("workspace", (6,))},
    17: {
        900: ("alignment", (3,)), 901: ("dtype", (1,)), 902: ("shape", (3,)), 903: ("strides", (3,)), 906: ("id", (3,)),
    },
}  # fmt: skip
#: Notes on numerics and on behavior of the engines that there are, best first; and bytes of workspace of each.
NONDETERMINISTIC, WINOGRAD, TENSOR_CORES, COMPILED = 4, 5, 0, 0
ENGINES: list[tuple[set[int], set[int], int]] = [
    ({NONDETERMINISTIC}, set(), 0), (set(), {COMPILED}, 0), ({WINOGRAD}, set(), 0), (set(), set(), 1 << 40),
    ({TENSOR_CORES}, set(), 64), (set(), {3}, 1024),
]  # fmt: skip


class FakeDnn:
    """Attributes:
    done: what was computed: which of x, w and y was written, the descriptors of all, and the engine.
    without: dtypes for which there is no engine.
    fails: what `cudnnBackendExecute` returns instead of computing.
    captured: convolutions that were put on a stream of their own.
    """

    def __init__(self, driver: FakeDriver):
        self.driver, self.objects = driver, {}  # type: ignore[var-annotated]
        self.done: list[dict[str, Any]] = []
        self.without: set[int] = set()
        self.fails = self.captured = 0
        self.cudnnGetErrorString = Texts({BAD_PARAM: b"a bad parameter", NOT_SUPPORTED: b"not supported"})
        self._next, self._stream = 90_000, None

    def cudnnCreate(self, handle: Any) -> int:
        handle._obj.value = 89_999
        return SUCCESS

    def cudnnSetStream(self, handle: Any, stream: Any) -> int:
        assert handle.value == 89_999
        self._stream = stream
        return SUCCESS

    def cudnnBackendCreateDescriptor(self, kind: int, made: Any) -> int:
        self._next += 1
        self.objects[self._next] = {"kind": kind, "is_final": False}
        made._obj.value = self._next
        return SUCCESS

    def cudnnBackendDestroyDescriptor(self, descriptor: Any) -> int:
        return SUCCESS if self.objects.pop(descriptor.value, None) is not None else BAD_PARAM

    def cudnnBackendSetAttribute(self, descriptor: Any, attribute: int, kind: int, count: Any, values: Any) -> int:
        found = self.objects[descriptor.value]
        if found["is_final"] or attribute not in GIVEN[found["kind"]]:
            return BAD_PARAM
        name, kinds = GIVEN[found["kind"]][attribute]
        if kind not in kinds or values._type_ is not CTYPES[kind] or not isinstance(count, ctypes.c_int64):
            return WRONG_TYPE
        found[name] = list(values[: count.value])
        if kind == 15 and not all(self.objects[x]["is_final"] for x in found[name]):
            return NOT_FINALIZED
        return SUCCESS

    def cudnnBackendFinalize(self, descriptor: Any) -> int:
        found = self.objects[descriptor.value]
        if any(name not in found for name, _ in GIVEN[found["kind"]].values()):
            return BAD_PARAM
        if found["kind"] == 17 and any(n <= 0 for n in (*found["shape"], *found["strides"])):
            return BAD_PARAM
        if found["kind"] == 1:
            lists = [found[name] for name in ("strides", "dilation", "low", "high")]
            if any(len(x) != found["axes"][0] for x in lists) or min(*found["low"], *found["high"]) < 0:
                return BAD_PARAM
        if found["kind"] in (10, 11, 12) and not self._fits(found):
            return BAD_PARAM
        found["is_final"] = True
        return SUCCESS

    def _fits(self, operation: dict[str, Any]) -> bool:
        """Whether the shapes are those of a convolution."""
        x, w, y = (self.objects[operation[name][0]] for name in "xwy")
        c = self.objects[operation["convolution"][0]]
        (n, channels, *image), (outputs, each, *taps), (m, found, *result) = x["shape"], w["shape"], y["shape"]
        spatial = [
            (a + low + high - (k - 1) * d - 1) // s + 1
            for a, low, high, k, d, s in zip(image, c["low"], c["high"], taps, c["dilation"], c["strides"])
        ]
        groups, rest = divmod(channels, each)
        return (n, outputs, spatial, rest, outputs % groups) == (m, found, result, 0, 0)

    def cudnnBackendGetAttribute(
        self, descriptor: Any, attribute: int, kind: int, most: Any, count: Any, values: Any
    ) -> int:  # fmt: skip
        found = self.objects[descriptor.value]
        assert isinstance(most, ctypes.c_int64) and (values is None or values._type_ is CTYPES[kind])

        def give(numbers: Any) -> int:
            count._obj.value = len(numbers)
            for i, number in enumerate(list(numbers)[: most.value]):
                values[i] = number
            return SUCCESS

        if (found["kind"], attribute, kind) == (4, 202, 15):
            (graph,) = found["graph"]
            (operation,) = self.objects[graph]["operations"]
            (x,) = self.objects[operation]["x"]
            dtype = self.objects[x]["dtype"][0]
            engines = [] if dtype in self.without else range(len(ENGINES))
            count._obj.value = len(engines)
            for engine, at in zip(engines, values[: most.value] if values is not None else ()):
                self.objects[at] |= {"engine": engine, "graph": graph, "is_final": True}
            return SUCCESS
        if (found["kind"], attribute, kind) == (3, 300, 15):
            self.objects[values[0]] |= {"engine": found["engine"], "is_final": True}
            count._obj.value = 1
            return SUCCESS
        if (found["kind"], attribute, kind) == (2, 1303, 11):
            return give(ENGINES[found["engine"]][0])
        if (found["kind"], attribute, kind) == (2, 1305, 19):
            return give(ENGINES[found["engine"]][1])
        if (found["kind"], attribute, kind) == (5, 402, 3):
            return give([ENGINES[self.objects[found["configuration"][0]]["engine"]][2]])
        return BAD_PARAM

    # What it computes

    def _array(self, address: int, at: dict[str, Any]) -> np.ndarray:
        """An array, a view of the GPU's memory."""
        dtype = np.dtype(DTYPES[at["dtype"][0]])
        assert address % at["alignment"][0] == 0, "the address is not aligned as the descriptor says"
        found = self.driver._find(address)
        assert found is not None
        start, nbytes = found
        last = 1 + sum((n - 1) * s for n, s in zip(at["shape"], at["strides"]))
        assert last * dtype.itemsize <= nbytes, "the convolution reaches beyond its memory"
        memory = np.frombuffer((ctypes.c_char * (last * dtype.itemsize)).from_address(start), dtype)
        return np.lib.stride_tricks.as_strided(memory, at["shape"], [n * dtype.itemsize for n in at["strides"]])

    def cudnnBackendExecute(self, handle: Any, plan: Any, pack: Any) -> int:
        if self.fails:
            return self.fails
        made, given = self.objects[plan.value], self.objects[pack.value]
        if not made["is_final"] or not given["is_final"]:
            return NOT_FINALIZED
        configuration = self.objects[made["configuration"][0]]
        nbytes = ENGINES[configuration["engine"]][2]
        if nbytes:
            found = self.driver._find(given["workspace"][0])
            assert found is not None and found[1] >= nbytes and given["workspace"][0] % 256 == 0
        (operation,) = self.objects[configuration["graph"]]["operations"]
        described = dict(self.objects[operation])
        for name in ("x", "w", "y", "convolution"):
            described[name] = dict(self.objects[described[name][0]])
        described["engine"] = configuration["engine"]
        places = dict(zip(given["ids"], given["pointers"]))
        addresses = {name: places[described[name]["id"][0]] for name in "xwy"}
        if self._stream is not None:
            self.captured += 1
            return self.driver.capture(self._stream, lambda: self._compute(described, addresses))
        return self._compute(described, addresses)

    def _compute(self, described: dict[str, Any], addresses: dict[str, int]) -> int:
        assert described["alpha"] == [1.0] and described["beta"] == [0.0]
        described["written"] = {10: "y", 12: "x", 11: "w"}[described["kind"]]
        self.done.append(described)
        x, w, y = (self._array(addresses[name], described[name]) for name in "xwy")
        wide: Any = np.float64 if x.dtype == np.float64 else np.float32
        convolution = described["convolution"]
        low, high = convolution["low"], convolution["high"]
        groups, parts = x.shape[1] // w.shape[1], {}
        sums = {name: np.zeros(a.shape, wide) for name, a in zip("xwy", (x, w, y)) if name == described["written"]}
        for name, a in zip("xwy", (x, w, y)):
            parts[name] = sums.get(name, a.astype(wide))
        padded = np.pad(parts["x"], [(0, 0), (0, 0), *zip(low, high)])
        padded = padded.reshape(x.shape[0], groups, w.shape[1], *padded.shape[2:])
        kernel = parts["w"].reshape(groups, -1, *w.shape[1:])
        result = parts["y"].reshape(y.shape[0], groups, -1, *y.shape[2:])
        for tap in itertools.product(*map(range, w.shape[2:])):
            at = [
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, convolution["dilation"], y.shape[2:], convolution["strides"])
            ]
            seen, some = (..., *at), (..., *tap)
            if described["written"] == "y":
                result += np.einsum("ngc...,gkc->ngk...", padded[seen], kernel[some])
            elif described["written"] == "x":
                padded[seen] += np.einsum("ngk...,gkc->ngc...", result, kernel[some])
            else:
                kernel[some] += np.einsum("ngcx,ngkx->gkc", *(
                    a.reshape(*a.shape[:3], -1) for a in (padded[seen], result)
                ))  # fmt: skip
        inside = [slice(a, a + n) for a, n in zip(low, x.shape[2:])]
        written, total = {"x": (x, padded[(..., *inside)]), "w": (w, kernel), "y": (y, result)}[described["written"]]
        written[...] = total.reshape(written.shape).astype(written.dtype)
        return SUCCESS
