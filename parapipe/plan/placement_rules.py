"""Rules on where and when a plan runs its operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise

from parapipe.files.mistakes import listed
from parapipe.mappings.event_graph import ranks
from parapipe.plan.mapped import Edge, MappedPlan
from parapipe.plan.schema import Plan, Processor, StageProcessor
from parapipe.plan.structure_rules import repetitions


def placement_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    """Yield what is wrong with the stages of a plan.

    The rules: no two processors have one name, or, unless they are streams of one, a core in
    common; no more streams of a processor are used than it has, and itself is not; stages are
    numbered from 0 and share no processor; processors that take turns keep the rules of
    `replica_violations`; every operator runs once; lags begin at 0, each stage's follow on those of
    the stage before, one behind, or as many as it has processors that take turns, and none
    decreases along a tensor; operators run within their stage's time and one at a time; an operator
    that works on the same frame as one it reads from starts no earlier than that one's end and the
    transfer together; a tensor from an earlier stage arrives its transfer time after the stage's
    start; and the order of the processors lets every operator get its inputs.

    A stage whose operators have several lags repeats every period T, which is its time: operators
    start before T, may end after it, and run one at a time modulo T; each starts, lag times T
    later, no earlier than what it reads has ended, likewise, and arrived; lags may be left out.
    """
    yield from _processor_violations(view)
    yield from _stream_violations(view)
    yield from _stage_violations(view.plan)
    yield from replica_violations(view)
    yield from once_violations(view.plan)
    yield from _lag_violations(view)
    yield from _time_violations(view, tolerance_s)
    yield from _overlap_violations(view, tolerance_s)
    yield from _arrival_violations(view, tolerance_s)
    yield from _deadlock_violations(view)


def _processor_violations(view: MappedPlan) -> Iterator[str]:
    plan = view.plan
    for name in repetitions(processor.name for processor in plan.processors):
        yield f"two processors have the name '{name}'"
    for one, other in combinations(plan.processors, 2):
        if one.stream and one.stream == other.stream:
            continue
        if shared := sorted({*one.cores} & {*other.cores}):
            cores = listed(list(map(str, shared)))
            yield f"processors '{one.name}' and '{other.name}' both have core {cores}"


def _stage_violations(plan: Plan) -> Iterator[str]:
    listed_names = {processor.name for processor in plan.processors}
    for position, stage in enumerate(plan.stages):
        if stage.index != position:
            yield f"stage {stage.index} stands where stage {position} should"
        for processor in stage.processors:
            if processor.name not in listed_names:
                yield f"stage {position} runs on '{processor.name}', which is no processor listed"
    used = [
        name
        for stage in plan.stages
        for p in stage.processors
        for name in (p.name, *_further_replicas(p))
    ]
    for name in repetitions(used):
        yield f"processor '{name}' stands in the stages twice"
    for name in sorted(listed_names.difference(used)):
        yield f"processor '{name}' is listed and not used"


def _stream_violations(view: MappedPlan) -> Iterator[str]:
    used = Counter(each.stream for each in view.plan.processors if each.stream)
    counts: dict[str, list[int]] = {}
    for stream, times in used.items():
        counts.setdefault(stream.of, []).append(stream.count)
        if times > stream.count:
            yield f"'{stream.of}' has {stream.count} streams, and the plan uses {times}"
    for name, several in counts.items():
        if len(several) > 1:
            yield f"'{name}' has {' and '.join(map(str, sorted(several)))} streams at once"
        if any(each.name == name for each in view.plan.processors):
            yield f"'{name}' is listed, and streams of it are, too"


def _further_replicas(processor: StageProcessor) -> tuple[str, ...]:
    return processor.replicas or ()


def replica_violations(view: MappedPlan) -> Iterator[str]:
    """Yield what is wrong with replicas.

    The rules: a stage with replicas has one processor beside them and works on one frame at a time
    on each; they are listed, and identical to that processor in all but names and cores, of which
    they have as many; and no transfer keeps one of them busy.
    """
    processors = {each.name: each for each in view.plan.processors}
    for position, stage in enumerate(view.plan.stages):
        taking_turns = [each for each in stage.processors if each.replicas]
        if taking_turns and len(stage.processors) > 1:
            name = taking_turns[0].name
            yield f"stage {position} has replicas of '{name}', and other processors, too"
        if taking_turns and position in view.interleaved:
            yield f"stage {position} has replicas, and its operators have several lags"
        for first in taking_turns:
            yield from _replica_differences(processors, first.name, first.replicas or ())
    replicated = {name for names in view.replicas.values() for name in names}
    for transfer in view.plan.transfers:
        if transfer.occupies in replicated:
            yield (
                f"the transfer of tensor '{transfer.tensor}' occupies '{transfer.occupies}', which "
                "takes turns with replicas"
            )


def _replica_differences(
    processors: dict[str, Processor], first: str, replicas: tuple[str, ...]
) -> Iterator[str]:
    for name in replicas:
        if name not in processors:
            yield f"replica '{name}' of '{first}' is no processor listed"
        elif first in processors and _traits(processors[name]) != _traits(processors[first]):
            yield f"replica '{name}' is not identical to '{first}'"


def _traits(processor: Processor) -> tuple[object, ...]:
    """Return what identical processors have in common."""
    return processor.model_dump(exclude={"name", "cores"}), len(processor.cores)


def once_violations(plan: Plan) -> Iterator[str]:
    """Yield operators that do not run, or not once, or that are none."""
    ids = {operator.id for operator in plan.operators}
    placed_ids = [at.operator for s in plan.stages for p in s.processors for at in p.operators]
    for operator in sorted(ids.difference(placed_ids)):
        yield f"operator '{operator}' is in no stage"
    for operator in sorted(set(placed_ids) - ids):
        yield f"operator '{operator}' is in a stage and not in the list of operators"
    for operator in repetitions(placed_ids):
        yield f"operator '{operator}' is placed more than once"


def _lag_violations(view: MappedPlan) -> Iterator[str]:
    """Check that the lags of all stages, one after the other, are 0, 1, 2 and so on."""
    following = 0
    for stage in range(len(view.plan.stages)):
        lags = sorted({at.lag for at in view.placements.values() if view.stage(at) == stage})
        expected = list(range(following, following + len(lags)))
        gaps = bool(view.interleaved) and lags[:1] > expected[:1] > [0]
        if lags[:1] != expected[:1] and not gaps:
            yield f"stage {stage} has the frame lags {lags}, and {expected} should follow"
        turns = 1 + max(len(_further_replicas(p)) for p in view.plan.stages[stage].processors)
        following = lags[-1] + turns if lags else following


def _time_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    period_s = view.plan.predicted.period_s
    for stage in sorted(view.interleaved):
        if abs((time_s := view.plan.stages[stage].time_s) - period_s) > tolerance_s:
            yield (
                f"stage {stage} takes {time_s:.9g} s, and as it works on several frames it should "
                f"take the period, {period_s:.9g} s"
            )
    for operator, at in view.placements.items():
        stage = view.stage(at)
        time_s = view.plan.stages[stage].time_s
        if at.end_s < at.start_s:
            yield (
                f"operator '{operator}' ends at {at.end_s:.9g} s, before its start at "
                f"{at.start_s:.9g} s"
            )
        if stage in view.interleaved:
            if at.start_s >= period_s:
                yield (
                    f"operator '{operator}' starts at {at.start_s:.9g} s, and stage {stage} "
                    f"repeats every {period_s:.9g} s"
                )
        elif at.end_s > time_s + tolerance_s:
            yield (
                f"operator '{operator}' ends at {at.end_s:.9g} s, and stage {stage} takes "
                f"{time_s:.9g} s"
            )


def _overlap_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    period_s = view.plan.predicted.period_s
    for order in view.orders.values():
        for before, behind in pairwise(order):
            if behind.start_s < before.end_s - tolerance_s:
                yield (
                    f"operator '{view.id(behind)}' starts at {behind.start_s:.9g} s on processor "
                    f"'{view.name(before)}', which runs '{view.id(before)}' until "
                    f"{before.end_s:.9g} s"
                )
        if order and view.repeats(order[0]):
            first, last = order[0], order[-1]
            if first.start_s + period_s < last.end_s - tolerance_s:
                yield (
                    f"operator '{view.id(first)}' starts at {first.start_s:.9g} s of a period on "
                    f"processor '{view.name(last)}', which runs '{view.id(last)}' until "
                    f"{last.end_s - period_s:.9g} s of it"
                )


def _arrival_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    for edge in view.edges:
        producer, reader = edge.made, edge.read
        wrong = ""
        if view.stage(producer) > view.stage(reader):
            stages = f"{view.stage(producer)}, after {view.stage(reader)}"
            wrong = f", which is made in a later stage ({stages})"
        elif producer.lag > reader.lag:
            wrong = f" at frame lag {reader.lag}, and it is made at {producer.lag}"
        elif reader.start_s < (arrival_s := _arrival_s(view, edge)) - tolerance_s:
            wrong = (
                f" from {reader.start_s:.9g} s, and it arrives on '{view.name(reader)}' at "
                f"{arrival_s:.9g} s"
            )
        if wrong:
            yield f"operator '{view.id(reader)}' reads '{edge.tensor}'{wrong}"


def _arrival_s(view: MappedPlan, edge: Edge) -> float:
    """Return when a tensor arrives, from the start of the stage or the period of its reader."""
    producer, reader = edge.made, edge.read
    # A missing transfer is said where transfers are checked; here it takes no time.
    moved_s = edge.transfer.time_s if edge.transfer else 0.0
    if view.repeats(producer) or view.repeats(reader):
        earlier_s = (reader.lag - producer.lag) * view.plan.predicted.period_s
        arrival_s = producer.end_s - earlier_s + moved_s
        return arrival_s if view.repeats(reader) else max(arrival_s, moved_s)
    # What an earlier stage makes was made before this one began.
    return moved_s + (producer.end_s if view.stage(producer) == view.stage(reader) else 0.0)


def _deadlock_violations(view: MappedPlan) -> Iterator[str]:
    """Check that no operators wait for each other in a circle.

    Times alone do not exclude it: operators that take no time may start and end together. What
    an operator reads at a higher lag was made a period before, and is not waited for.
    """
    placed = [at for order in view.orders.values() for at in order]
    number = {id(at): i for i, at in enumerate(placed)}
    precedences = [
        (number[id(before)], number[id(behind)], 0)
        for order in view.orders.values()
        for before, behind in pairwise(order)
    ]
    precedences += (
        (number[id(edge.made)], number[id(edge.read)], 0)
        for edge in view.edges
        if edge.made.lag == edge.read.lag
    )
    rank = ranks(len(placed), precedences)
    if stuck := [at for at in placed if rank[number[id(at)]] == len(placed)]:
        names = listed([f"'{view.id(at)}'" for at in stuck])
        yield f"operators wait for each other in a circle, or for one in a circle: {names}"
