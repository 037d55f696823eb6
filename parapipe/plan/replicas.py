"""Processors of a plan that take turns on the frames of a stage: which, and the rules on them."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.files.titles import stages_title
from parapipe.plan.mapped import MappedPlan
from parapipe.plan.schema import Plan, Processor


def stages_of(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return the names of the processors of each stage, of those that take turns the first."""
    return tuple(tuple(each.name for each in stage.processors) for stage in plan.stages)


def replicas_of(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return the names of processors that take turns, those of each stage together."""
    listed = (each for stage in plan.stages for each in stage.processors)
    return tuple((each.name, *each.replicas) for each in listed if each.replicas)


def plan_stages_title(plan: Plan) -> str:
    """Return the processors of a plan's stages, as `stages_title` does."""
    return stages_title(stages_of(plan), replicas_of(plan))


def replica_violations(view: MappedPlan) -> Iterator[str]:
    """Yield what is wrong with replicas.

    The rules: a stage with replicas has one processor beside them and works on one frame at a time
    on each; they are listed, and identical to that processor in all but names and cores, of which
    they have as many; and no transfer keeps one of them busy.
    """
    processors = {each.name: each for each in view.plan.processors}
    for position, stage in enumerate(view.plan.stages):
        turns = [each for each in stage.processors if each.replicas]
        if turns and len(stage.processors) > 1:
            yield f"stage {position} has replicas of '{turns[0].name}', and other processors, too"
        if turns and position in view.interleaved:
            yield f"stage {position} has replicas, and its operators have several lags"
        for first in turns:
            yield from _unlike(processors, first.name, first.replicas or ())
    in_turn = {name for names in view.replicas.values() for name in names}
    for transfer in view.plan.transfers:
        if transfer.occupies in in_turn:
            yield (
                f"the transfer of tensor '{transfer.tensor}' occupies '{transfer.occupies}', which "
                "takes turns with replicas"
            )


def _unlike(
    processors: dict[str, Processor], first: str, replicas: tuple[str, ...]
) -> Iterator[str]:
    for name in replicas:
        if name not in processors:
            yield f"replica '{name}' of '{first}' is no processor listed"
        elif first in processors and _kind_of(processors[name]) != _kind_of(processors[first]):
            yield f"replica '{name}' is not identical to '{first}'"


def _kind_of(processor: Processor) -> tuple[object, ...]:
    """Return what identical processors have in common."""
    return processor.model_dump(exclude={"name", "cores"}), len(processor.cores)
