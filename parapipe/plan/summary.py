"""What a plan is and what it promises, in a few figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from parapipe.plan.schema import Plan


@dataclass(frozen=True, slots=True)
class Summary:
    """A plan in a few figures.

    Parameters
    ----------
    stages
        Names of the processors of each stage.
    fused
        How many of the operators are fused ones.
    nodes
        ONNX nodes that the operators stand for.
    """

    model: str
    platform: str
    stages: tuple[tuple[str, ...], ...]
    operators: int
    fused: int
    nodes: int
    transfers: int
    transfer_bytes: int
    latency_s: float
    period_s: float
    sustained_period_s: float
    throughput_fps: float
    energy_j: float
    board_energy_j: float

    def to_json(self) -> dict[str, object]:
        """Return the same as plain values for JSON."""
        return asdict(self) | {"stages": [list(names) for names in self.stages]}


def summarize(plan: Plan) -> Summary:
    """Say what a plan is and what it promises."""
    promised = plan.predicted.model_dump(exclude={"input_s", "output_s", "coverage"})
    return Summary(
        model=plan.model.name,
        platform=plan.platform,
        stages=tuple(
            tuple(processor.name for processor in stage.processors) for stage in plan.stages
        ),
        operators=len(plan.operators),
        fused=sum(1 for operator in plan.operators if operator.parts),
        nodes=sum(len(operator.members) for operator in plan.operators),
        transfers=len(plan.transfers),
        transfer_bytes=sum(transfer.size_bytes for transfer in plan.transfers),
        **promised,
    )
