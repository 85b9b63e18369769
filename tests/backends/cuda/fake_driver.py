"""A driver without a GPU: the functions that smelt calls, with their arguments, over the host's memory and the
simulator. It enforces what a GPU does: addresses of the host mean nothing to kernels, and freed memory is gone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.backends.metal.simulator import Library

#: Where the fake's memory begins: no address of the host.
BASE = 1 << 60
INVALID, OUT_OF_MEMORY, NOT_READY = 1, 2, 600
#: `cuLaunchKernel`.
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)


class FakeDriver:
    """Attributes:
    total: bytes of memory; used: those in use.
    launches: names of kernels, in order.
    busy: questions whether the GPU has finished that are answered by no.
    order: events, and the streams that they were recorded on and that wait for them.
    graphs: how often a graph was launched.
    pinnable: bytes of the host that can be pinned at once; transfers: copies from and to those.
    gpus: how many there are; device: the one that was asked for last.
    """

    def __init__(self, total: int = 1 << 32, gpus: int = 1):
        self.total, self.used = total, 0
        self.gpus, self.device = gpus, 0
        self.launches: list[str] = []
        self.busy = self.graphs = self._events = self._loaded = self.transfers = 0
        self.pinnable = 1 << 30
        self._pinned: list[np.ndarray] = []
        self.order: list[tuple[str, int | None]] = []
        self._captured: dict[int, list[Callable[[], int]]] = {}
        self._graphs: dict[int, list[tuple[Any, ...]]] = {}
        self._memory: dict[int, np.ndarray] = {}
        self._next = BASE
        self._modules: dict[int, Library] = {}
        self._functions: dict[int, tuple[int, str]] = {}
        self.cuLaunchKernel = LAUNCH(self._launch)  # as C calls it, too

    # What runs

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.gpus
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = self.device = ordinal
        return 0 if ordinal < self.gpus else INVALID

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        context._obj.value = 7
        return 0

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:
        return 0 if context.value == 7 else INVALID

    def cuCtxGetDevice(self, device: Any) -> int:
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuDeviceGetName(self, name: Any, length: int, device: Any) -> int:
        name.value = b"a fake GPU"
        return 0

    def cuCtxSynchronize(self) -> int:
        return 0

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = {INVALID: b"invalid argument"}.get(code, b"unknown error")
        return 0

    def cuStreamQuery(self, stream: None) -> int:
        self.busy -= self.busy > 0
        return NOT_READY if self.busy else 0

    # Memory

    def cuMemGetInfo_v2(self, free: Any, total: Any) -> int:
        free._obj.value, total._obj.value = self.total - self.used, self.total
        return 0

    def cuMemAlloc_v2(self, address: Any, nbytes: ctypes.c_size_t) -> int:
        if self.used + nbytes.value > self.total:
            return OUT_OF_MEMORY
        self.used += nbytes.value
        self._memory[self._next] = np.full(nbytes.value + 16, 0xA5, np.uint8)
        address._obj.value = self._next
        self._next += -(-nbytes.value // 256) * 256 + 256
        return 0

    def cuMemFree_v2(self, address: ctypes.c_uint64) -> int:
        found = self._memory.pop(address.value, None)
        self.used -= 0 if found is None else found.nbytes - 16
        return INVALID if found is None else 0

    def _find(self, address: int) -> tuple[int, int] | None:
        """Where bytes lie on the host, and how many there are from there on."""
        for start, memory in self._memory.items():
            begin = memory.__array_interface__["data"][0]
            begin += -begin % 16
            if start <= address < start + memory.nbytes - 16:
                return begin + address - start, memory.nbytes - 16 - (address - start)
        return None

    def cuMemcpyHtoD_v2(self, target: ctypes.c_uint64, source: ctypes.c_void_p, nbytes: ctypes.c_size_t) -> int:
        found = self._find(target.value)
        if found is None or nbytes.value > found[1]:
            return INVALID
        ctypes.memmove(found[0], source, nbytes.value)
        return 0

    def cuMemcpyDtoH_v2(self, target: Any, source: ctypes.c_uint64, nbytes: ctypes.c_size_t) -> int:
        found = self._find(source.value)
        if found is None or nbytes.value > found[1]:
            return INVALID
        ctypes.memmove(target, found[0], nbytes.value)
        return 0

    def cuMemHostAlloc(self, address: Any, nbytes: ctypes.c_size_t, flags: int) -> int:
        if nbytes.value > self.pinnable:
            return OUT_OF_MEMORY
        self._pinned.append(np.empty(nbytes.value, np.uint8))
        address._obj.value = self._pinned[-1].__array_interface__["data"][0]
        return 0

    def _is_pinned(self, address: int, nbytes: int) -> bool:
        starts = [(x.__array_interface__["data"][0], x.nbytes) for x in self._pinned]
        return any(start <= address and address + nbytes <= start + size for start, size in starts)

    def cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, nbytes: ctypes.c_size_t, stream: None) -> int:
        self.transfers += 1
        is_pinned = self._is_pinned(source.value, nbytes.value)
        return self.cuMemcpyHtoD_v2(target, ctypes.c_void_p(source.value), nbytes) if is_pinned else INVALID

    def cuMemcpyDtoHAsync_v2(self, target: Any, source: Any, nbytes: ctypes.c_size_t, stream: None) -> int:
        self.transfers += 1
        is_pinned = self._is_pinned(target.value, nbytes.value)
        return self.cuMemcpyDtoH_v2(ctypes.c_void_p(target.value), source, nbytes) if is_pinned else INVALID

    def cuMemcpyDtoDAsync_v2(self, target: Any, source: Any, nbytes: ctypes.c_size_t, stream: None) -> int:
        to, there = self._find(target.value), self._find(source.value)
        if to is None or there is None or nbytes.value > min(to[1], there[1]):
            return INVALID
        ctypes.memmove(to[0], there[0], nbytes.value)
        return 0

    def cuMemcpy2DAsync_v2(self, described: Any, stream: None) -> int:
        d = described._obj
        assert bytes(d)[16] == bytes(d)[16 + 56] == 2, "both sides are memory of the GPU"
        for i in range(d.height):
            target, source = d.target_device + i * d.target_step, d.source_device + i * d.source_step
            to, there = self._find(target), self._find(source)
            if to is None or there is None or d.width > min(to[1], there[1]):
                return INVALID
            ctypes.memmove(to[0], there[0], d.width)
        return 0

    # Streams

    def cuEventCreate(self, event: Any, flags: int) -> int:
        self._events += 1
        event._obj.value = self._events
        return 0

    def cuEventRecord(self, event: Any, stream: ctypes.c_void_p | None) -> int:
        if stream is not None:
            self.order.append(("after", stream.value))
        return 0

    def cuStreamWaitEvent(self, stream: ctypes.c_void_p, event: Any, flags: int) -> int:
        self.order.append(("before", stream.value))
        return 0

    def cuEventQuery(self, event: Any) -> int:
        return self.cuStreamQuery(None)

    def cuEventDestroy_v2(self, event: Any) -> int:
        return 0

    # Code

    def cuModuleLoadData(self, module: Any, cubin: bytes) -> int:
        self._loaded += 1
        module._obj.value = 100 + self._loaded
        self._modules[module._obj.value] = Library(cubin.decode())
        return 0

    def cuModuleUnload(self, module: ctypes.c_void_p) -> int:
        return 0 if self._modules.pop(module.value or 0, None) is not None else INVALID

    def cuModuleGetFunction(self, function: Any, module: ctypes.c_void_p, name: bytes) -> int:
        if name.decode() not in self._modules[module.value or 0].entries:
            return INVALID
        function._obj.value = 1000 + len(self._functions)
        self._functions[function._obj.value] = module.value or 0, name.decode()
        return 0

    def _launch(
        self, function: int, gx: int, gy: int, gz: int, tx: int, ty: int, tz: int, shared: int, stream: None,
        parameters: int, extra: None,
    ) -> int:  # fmt: skip
        module, name = self._functions[function]
        library = self._modules[module]
        bound = {}
        for i, buffer in enumerate(sorted(library.entries[name].buffers(), key=lambda b: b.index)):
            pointer = ctypes.c_void_p.from_address(parameters + 8 * i).value or 0
            found = self._find(ctypes.c_uint64.from_address(pointer).value)
            if found is None:
                return INVALID
            bound[buffer.index] = found
        self.launches.append(name)
        library.launch(name, bound, (gx, gy, gz), (tx, ty, tz))
        return 0

    # Graphs

    def cuGraphCreate(self, graph: Any, flags: int) -> int:
        graph._obj.value = self._next_graph()
        return 0

    def _next_graph(self) -> int:
        number = 5000 + len(self._graphs)
        self._graphs[number] = []
        return number

    def cuGraphAddKernelNode_v2(self, node: Any, graph: Any, before: Any, n: ctypes.c_size_t, info: Any) -> int:
        nodes, made = self._graphs[graph.value], info._obj
        if (before._obj.value if n.value else 0) != len(nodes):
            return INVALID
        library = self._modules[self._functions[made.function][0]]
        count = len(library.entries[self._functions[made.function][1]].buffers())
        pointers = (ctypes.c_void_p * count).from_address(made.parameters)
        values = [ctypes.c_uint64.from_address(p or 0).value for p in pointers]
        size = made.groups_x, made.groups_y, made.groups_z, made.threads_x, made.threads_y, made.threads_z
        nodes.append((made.function, *size, made.shared, values))
        node._obj.value = len(nodes)
        return 0

    def cuStreamCreate(self, stream: Any, flags: int) -> int:
        stream._obj.value = 9000 + len(self._captured)
        return 0

    def cuStreamSynchronize(self, stream: Any) -> int:
        return 0

    def cuStreamDestroy_v2(self, stream: Any) -> int:
        return 0

    def cuStreamBeginCapture_v2(self, stream: Any, mode: int) -> int:
        self._captured[stream.value] = []
        return 0

    def capture(self, stream: Any, run: Callable[[], int]) -> int:
        """What a library puts on a stream."""
        if stream.value not in self._captured:
            return INVALID
        self._captured[stream.value].append(run)
        return 0

    def cuStreamEndCapture(self, stream: Any, graph: Any) -> int:
        graph._obj.value = self._next_graph()
        self._graphs[graph._obj.value] = [(run,) for run in self._captured.pop(stream.value)]
        return 0

    def cuGraphAddChildGraphNode(self, node: Any, graph: Any, before: Any, n: ctypes.c_size_t, child: Any) -> int:
        nodes = self._graphs[graph.value]
        if (before._obj.value if n.value else 0) != len(nodes):
            return INVALID
        nodes += [tuple(self._graphs[child.value])]
        node._obj.value = len(nodes)
        return 0

    def cuGraphInstantiateWithFlags(self, ready: Any, graph: Any, flags: ctypes.c_uint64) -> int:
        ready._obj.value = self._next_graph()
        self._graphs[ready._obj.value] = list(self._graphs[graph.value])
        return 0

    def cuGraphLaunch(self, ready: Any, stream: None) -> int:
        self.graphs += 1
        for node in self._graphs[ready.value]:
            if isinstance(node[0], tuple):  # what was captured
                if any(run() for (run,) in node):
                    return INVALID
                continue
            function, *sizes, addresses = node
            values = [ctypes.c_uint64(a) for a in addresses]
            pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
            code = self.cuLaunchKernel(ctypes.c_void_p(function), *sizes, None, pointers, None)
            if code:
                return code
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        self._graphs[graph.value] = []
        return 0

    cuGraphExecDestroy = cuGraphDestroy
