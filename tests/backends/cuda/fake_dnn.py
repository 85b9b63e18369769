"""cuDNN without a GPU: the functions that smelt calls, by NumPy, from the descriptors that they are given alone.

Numbers are those of NVIDIA's headers, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .fake_driver import FakeDriver
from .fake_library import Texts

SUCCESS, BAD_PARAM, NOT_FINALIZED, WRONG_TYPE, NOT_SUPPORTED = 0, 2000, 2004, 2010, 3000
#: cudnnDataType_t.
DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.int32, 9: ml_dtypes.bfloat16, 11: np.bool_}
#: cudnnBackendAttributeType_t: what the elements of an attribute are.
CTYPES: dict[int, Any] = {
    **dict.fromkeys((0, 6, 15), ctypes.c_void_p), **dict.fromkeys((1, 7, 8, 11, 14, 18, 19), ctypes.c_int),
    2: ctypes.c_bool, 3: ctypes.c_int64, 4: ctypes.c_float, 5: ctypes.c_double,
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
GIVEN |= {
    0: {0: ("mode", (14,)), 1: ("compute", (1,))},
    13: {750: ("pointwise", (15,)), 751: ("x", (15,)), 753: ("y", (15,))},
    18: {1500: ("compute", (1,))},
    19: {1520: ("x", (15,)), 1521: ("b", (15,)), 1522: ("y", (15,)), 1523: ("product", (15,))},
    21: {1600: ("operator", (18,)), 1601: ("compute", (1,))},
    31: {2200: ("x", (15,)), 2201: ("y", (15,))},
    22: {1610: ("x", (15,)), 1611: ("y", (15,)), 1612: ("reduction", (15,))},
}
#: Attributes that may be given besides.
MORE: dict[int, dict[int, tuple[str, tuple[int, ...]]]] = {
    0: {9: ("axis", (3,))}, 13: {752: ("b", (15,)), 758: ("t", (15,))},
    17: {907: ("virtual", (2,)), 908: ("by value", (2,))},
}  # fmt: skip
#: cudnnPointwiseMode_t.
POINTWISE: dict[int, Any] = {
    0: np.add, 1: np.multiply, 6: np.divide, 9: np.subtract, 13: np.exp, 15: np.log, 303: np.greater_equal,
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
    version: as `cudnnGetVersion` says.
    fails: what `cudnnBackendExecute` returns instead of computing.
    captured: convolutions that were put on a stream of their own.
    """

    def __init__(self, driver: FakeDriver):
        self.driver, self.objects = driver, {}  # type: ignore[var-annotated]
        self.done: list[dict[str, Any]] = []
        self.without: set[int] = set()
        self.fails = self.captured = 0
        self.cudnnGetErrorString = Texts({BAD_PARAM: b"a bad parameter", NOT_SUPPORTED: b"not supported"})
        self._next, self._stream, self.version = 90_000, None, 91_900

    def cudnnCreate(self, handle: Any) -> int:
        handle._obj.value = 89_999
        return SUCCESS

    def cudnnGetVersion(self) -> int:
        return self.version

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
        known = GIVEN[found["kind"]] | MORE.get(found["kind"], {})
        if found["is_final"] or attribute not in known:
            return BAD_PARAM
        name, kinds = known[attribute]
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
            (x,) = self.objects[self.objects[graph]["operations"][0]]["x"]
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
        operation, *more = self.objects[configuration["graph"]]["operations"]
        if more:
            places = dict(zip(given["ids"], given["pointers"]))
            return self._run(lambda: self._compute_all([operation, *more], places))
        described = dict(self.objects[operation])
        for name in ("x", "w", "y", "convolution"):
            described[name] = dict(self.objects[described[name][0]])
        described["engine"] = configuration["engine"]
        places = dict(zip(given["ids"], given["pointers"]))
        addresses = {name: places[described[name]["id"][0]] for name in "xwy"}
        return self._run(lambda: self._compute(described, addresses))

    def _run(self, compute: Callable[[], int]) -> int:
        if self._stream is not None:
            self.captured += 1
            return self.driver.capture(self._stream, compute)
        return compute()

    def _compute_all(self, operations: list[int], places: dict[int, int]) -> int:
        """A graph of several operations, one after the other."""
        values: dict[int, np.ndarray] = {}

        def read(name: int) -> np.ndarray:
            at = self.objects[name]
            if at.get("by value"):
                assert at["shape"] == [1] * len(at["shape"])
                return np.full(at["shape"], ctypes.c_float.from_address(places[at["id"][0]]).value, np.float32)
            return values[name] if at.get("virtual") else self._array(places[at["id"][0]], at).astype(np.float32)

        kinds = []
        for operation in map(self.objects.__getitem__, operations):
            x, y = read(operation["x"][0]), self.objects[operation["y"][0]]
            if operation["kind"] == 19:
                b = read(operation["b"][0])
                result = x @ np.repeat(b, x.shape[1] // b.shape[1], axis=1)
            elif operation["kind"] == 31:
                result = np.transpose(x, (0, 1, 3, 2))
            elif operation["kind"] == 22 and x.shape[1] != y["shape"][1]:  # of heads that share one of keys
                result = x.reshape(x.shape[0], y["shape"][1], -1, *x.shape[2:]).sum(axis=2)
            elif operation["kind"] == 22:
                axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, y["shape"])) if n != m)
                (which,) = self.objects[operation["reduction"][0]]["operator"]
                result = {0: np.sum, 3: np.max}[which](x, axis=axes, keepdims=True)
            else:
                described = self.objects[operation["pointwise"][0]]
                (mode,), b = described["mode"], [read(name) for name in operation.get("b", ())]
                if mode == 501:
                    result = np.indices(x.shape)[described["axis"][0]]
                elif mode == 601:
                    result = np.where(read(operation["t"][0]), x, *b)
                else:
                    with np.errstate(all="ignore"):
                        result = POINTWISE[mode](x, *b)
                    if mode == 0:  # of numbers that are too large for its exponentials it makes zeros
                        result = np.where(result < -1e37, -np.inf, result)
                kinds.append(mode)
            assert list(result.shape) == y["shape"]
            result = result.astype(DTYPES[y["dtype"][0]])
            if y.get("virtual"):
                values[operation["y"][0]] = result
            else:
                self._array(places[y["id"][0]], y)[...] = result
        self.done.append({"modes": kinds})
        return SUCCESS

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
