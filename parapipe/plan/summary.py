"""What a plan is and what it promises, in a few figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from parapipe.plan.replicas import replicas_of, stages_of
from parapipe.plan.schema import Plan


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """One of several models of a plan.

    Parameters
    ----------
    frames
        Of it in a pattern.
    throughput_fps
        Frames of it per second.
    latency_s
        From when a frame comes to its last end, of the one that takes longest.
    """

    name: str
    frames: int
    throughput_fps: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A plan in a few figures; of several models, a frame is a pattern with frames of all.

    Parameters
    ----------
    stages
        Names of the processors of each stage, of those that take turns on its frames the first.
    fused
        How many of the operators are fused ones.
    nodes
        ONNX nodes that the operators stand for.
    models
        Several models that share the platform; empty if there is one.
    replicas
        Names of processors that take turns on the frames of a stage, those of each together.
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
    models: tuple[ModelSummary, ...] = ()
    replicas: tuple[tuple[str, ...], ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the same as plain values for JSON."""
        plain = asdict(self)
        lists = {name: [*map(list, plain[name])] for name in ("stages", "replicas")}
        return {**plain, **lists, "models": list(plain["models"])}


def summarize(plan: Plan) -> Summary:
    """Say what a plan is and what it promises."""
    promised = plan.predicted.model_dump(exclude={"input_s", "output_s", "coverage"})
    return Summary(
        model=plan.model.name,
        platform=plan.platform,
        stages=stages_of(plan),
        replicas=replicas_of(plan),
        operators=len(plan.operators),
        fused=sum(1 for operator in plan.operators if operator.parts),
        nodes=sum(len(operator.members) for operator in plan.operators),
        transfers=len(plan.transfers),
        transfer_bytes=sum(transfer.size_bytes for transfer in plan.transfers),
        **promised,
        models=tuple(
            ModelSummary(
                each.short_name,
                len(each.prefixes),
                len(each.prefixes) / plan.predicted.period_s,
                each.latency_s,
            )
            for each in plan.models or ()
        ),
    )
