"""Writing for linalg: loops and branches are those of scf, and ops may have rules of their own (table.py LOOPS)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import IRError

from .rules.table import LOOPS
from .writer import Tensor, Writer, type_of


class LoopWriter(Writer):
    """Writes what linalg, tensor and scf have a meaning for. Conversions of StableHLO look into regions of scf, and not
    into those of its own control flow."""

    own_rules = LOOPS

    def op_all(
        self,
        name: str,
        operands: Sequence[Tensor],
        results: Sequence[Aval],
        attrs: str = "",
        regions: Sequence[str] = (),
    ) -> list[Tensor]:
        """What has no elements is a constant: slices of linalg begin inside of what they are slices of."""
        if results and name != "stablehlo.constant" and not any(aval.size for aval in results):
            return [self.constant(np.zeros(aval.shape, aval.dtype.numpy)) for aval in results]
        return super().op_all(name, operands, results, attrs, regions)

    def while_(
        self, test: Callable[..., Tensor], step: Callable[..., Sequence[Tensor]], carried: Sequence[Tensor]
    ) -> list[Tensor]:
        avals = [x.aval for x in carried]
        types = list(map(type_of, avals))

        def tested(names: Sequence[str]) -> str:
            values = self.tensors(names, avals)
            return self._end("scf.condition", [self._extracted(test(*values))], ["i1"], values)

        def stepped(names: Sequence[str]) -> str:
            return self._end("scf.yield", [], [], step(*self.tensors(names, avals)))

        regions = [self.block(types, tested), self.block(types, stepped)]
        return self.op_all("scf.while", carried, avals, "", regions)

    def loop(
        self, count: int | Tensor, step: Callable[..., Sequence[Tensor]], carried: Sequence[Tensor]
    ) -> list[Tensor]:
        if isinstance(count, Tensor):
            return super().loop(count, step, carried)
        if not count:
            return list(carried)
        avals = [x.aval for x in carried]
        kind = dtypes.int32 if count < 1 << 31 else dtypes.int64
        bounds = [self._index(i) for i in (0, count, 1)]

        def stepped(names: Sequence[str]) -> str:
            place = self._line("arith.index_cast", names[:1], ["index"], kind.mlir)
            aval = Aval((), kind)
            i = Tensor(self, self._line("tensor.from_elements", [place], [kind.mlir], type_of(aval)), aval)
            return self._end("scf.yield", [], [], step(i, *self.tensors(names[1:], avals)))

        region = self.block(["index", *map(type_of, avals)], stepped)
        return self._region_op("scf.for", bounds, ["index"] * 3, carried, avals, "", [region])

    def case(
        self, choice: Tensor, branches: Sequence[Callable[[], Sequence[Tensor]]], results: Sequence[Aval]
    ) -> list[Tensor]:
        def made(branch: Callable[[], Sequence[Tensor]]) -> str:
            return self.block([], lambda _: self._end("scf.yield", [], [], branch()))

        regions = [made(branch) for branch in branches]
        scalar, kind = self._extracted(choice), choice.dtype
        if kind is dtypes.bool_:
            return self._region_op("scf.if", [scalar], ["i1"], [], results, "", [regions[1], regions[0]])
        place = self._line("arith.index_cast", [scalar], [kind.mlir], "index")
        cases = ", ".join(map(str, range(len(regions) - 1)))
        attrs = f"cases = array<i64: {cases}>" if cases else "cases = array<i64>"
        return self._region_op(
            "scf.index_switch", [place], ["index"], [], results, attrs, [regions[-1], *regions[:-1]]
        )  # fmt: skip

    # Lines that are no ops of StableHLO

    def _line(self, name: str, operands: Sequence[str], types: Sequence[str], result: str, attrs: str = "") -> str:
        found = self.new_name()
        extra = f" {{{attrs}}}" if attrs else ""
        self.lines.append(f'{found} = "{name}"({", ".join(operands)}){extra} : ({", ".join(types)}) -> {result}')
        return found

    def _index(self, value: int) -> str:
        return self._line("arith.constant", [], [], "index", f"value = {value} : index")

    def _extracted(self, x: Tensor) -> str:
        if x.shape:
            raise IRError(f"{x.aval} is no scalar")
        return self._line("tensor.extract", [x.name], [type_of(x.aval)], x.dtype.mlir)

    def _end(self, name: str, operands: Sequence[str], types: Sequence[str], values: Sequence[Tensor]) -> str:
        names = ", ".join([*operands, *(x.name for x in values)])
        return f'"{name}"({names}) : ({", ".join([*types, *(type_of(x.aval) for x in values)])}) -> ()'

    def _region_op(
        self,
        name: str,
        operands: Sequence[str],
        types: Sequence[str],
        values: Sequence[Tensor],
        results: Sequence[Aval],
        attrs: str,
        regions: Sequence[str],
    ) -> list[Tensor]:
        """An op of which some operands are no tensors."""
        names = [*operands, *(x.name for x in values)]
        takes = [*types, *(type_of(x.aval) for x in values)]
        return self.write(name, names, takes, results, attrs, regions)
