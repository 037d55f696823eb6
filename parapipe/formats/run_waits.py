"""What the lanes of a run waited for, from the record of what they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.plan.program import Program
from parapipe.runtime.record import Record, Span


@dataclass(frozen=True, slots=True)
class Wait:
    """Idle seconds of a lane before a task began.

    Parameters
    ----------
    for_input_s
        Until the last tensor that the task reads was made, and its frame admitted.
    for_room_s
        From then on, until the last slot that it needs was free.
    handover_s
        From then on, until it began.
    """

    for_input_s: float
    for_room_s: float
    handover_s: float


def waits(
    program: Program, record: Record, task_of: Mapping[tuple[str, str], int]
) -> dict[tuple[int, int], Wait]:
    """Return what each task waited for, by task and frame.

    Parameters
    ----------
    program
        What the executor did, with its units and queues.
    task_of
        Task of each span, by lane and name.
    """
    spans = {(task_of[span.resource, span.name], span.frame): span for span in record.spans}
    makers: dict[int, list[int]] = {}
    for u, v, _ in program.graph.waits:
        makers.setdefault(v, []).append(u)
    room: dict[int, list[tuple[int, int]]] = {}
    for u, v, slots in program.graph.channels:
        room.setdefault(u, []).append((v, slots))
    first = set(program.first)
    found: dict[tuple[int, int], Wait] = {}
    for (task, frame), free_s in _free_s(spans).items():
        inputs_s = [spans[u, frame].end_s for u in makers.get(task, ())]
        if task in first:
            inputs_s.append(record.frames[frame].admitted_s)
        rooms_s = [
            spans[v, frame - slots].end_s for v, slots in room.get(task, ()) if frame >= slots
        ]
        start_s = spans[task, frame].start_s
        input_s = min(start_s, max([free_s, *inputs_s]))
        room_s = min(start_s, max([input_s, *rooms_s]))
        found[task, frame] = Wait(input_s - free_s, room_s - input_s, start_s - room_s)
    return found


def _free_s(spans: Mapping[tuple[int, int], Span]) -> dict[tuple[int, int], float]:
    """Return since when the lane of each task had been idle."""
    end_s: dict[str, float] = {}
    free_s: dict[tuple[int, int], float] = {}
    for key, span in sorted(spans.items(), key=lambda item: (item[1].start_s, item[1].end_s)):
        free_s[key] = min(end_s.get(span.resource, 0.0), span.start_s)
        end_s[span.resource] = span.end_s
    return free_s
