"""A compiler that fuses as Rockchip's does, and tells cycles, without being there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import onnx
import pytest

from parapipe.compilers.contract import (
    CompiledRow,
    CompiledSegment,
    CompileError,
    CompileJob,
    RefusedNode,
)
from parapipe.profiling import compiled_segments

CYCLES = 100_000
CUT_CYCLES = 40_000
PLATFORM = "schema: parapipe/platform/1\nname: rk3588\nchip: rk3588\n"


@dataclass
class PricedCompiler:
    """Fuses Conv, Sigmoid and Mul; each Conv has the same cycles; all else is not priced.

    Parameters
    ----------
    refuses
        Types that it takes in no segment.
    leaves
        Types that it leaves to the CPU.
    cut
        Cycles that the first Conv of a segment takes beside, if the segment is not the whole.
    whole
        Nodes of the whole model; 0 until it was compiled.
    """

    refuses: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    cut: int = 0
    whole: int = 0
    jobs: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, name: str, job: CompileJob) -> CompiledSegment:
        nodes = list(onnx.load(job.model).graph.node)
        self.jobs.append(tuple(node.name for node in nodes))
        if odd := [node.op_type for node in nodes if node.op_type in self.refuses]:
            raise CompileError(f"{job.model.name}: refused: {odd[0]}", "refused")
        self.whole = max(self.whole, len(nodes))
        return CompiledSegment(
            Path("segment.rknn"), "0" * 64, name, "0.0", tuple(self._rows(nodes)),
            on_cpu=tuple(
                RefusedNode(node.name, node.op_type, "too wide")
                for node in nodes
                if node.op_type in self.leaves
            ),
        )  # fmt: skip

    def _rows(self, nodes: list[onnx.NodeProto]) -> list[CompiledRow]:
        rows: list[CompiledRow] = []
        beside = self.cut if len(nodes) < self.whole else 0
        waiting = list(nodes)
        while waiting:
            types = tuple(node.op_type for node in waiting[:3])
            count = 3 if types == ("Conv", "Sigmoid", "Mul") else 1
            group, waiting = waiting[:count], waiting[count:]
            cycles = CYCLES + beside if types[0] == "Conv" else None
            beside = 0 if cycles else beside
            names = tuple(node.name for node in group)
            where = "CPU" if types[0] in self.leaves else "NPU"
            rows.append(CompiledRow("".join(types[:count]), where, "INT8", names, "group", cycles))
        return rows

    def use(self, monkeypatch: pytest.MonkeyPatch) -> PricedCompiler:
        """Compile with it from now on."""
        monkeypatch.setattr(compiled_segments, "compile_segment", self)
        return self


def chain(folder: Path, blocks: int = 3) -> Path:
    """Write a network of Conv, Sigmoid and Mul, `blocks` times, and a pool; return its file."""
    from parapipe.zoo.emitter import Emitter, same_pads

    net = Emitter("chain", {"x": (1, 16, 64, 64)})
    x = "x"
    for number in range(blocks):
        x = net.conv(x, f"conv{number}", 16 + number, 3, pads=same_pads(3))
        gate = net.operator("Sigmoid", [x], f"sigmoid{number}")
        x = net.operator("Mul", [x, gate], f"mul{number}")
    path = folder / "chain.onnx"
    onnx.save(net.model([net.pool("MaxPool", x, "pool", 2, stride=2)]), path)
    return path
