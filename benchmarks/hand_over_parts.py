"""What a plan's hand-overs are made of, from the record of a run."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, median

from parapipe.runtime.executor import Executor
from parapipe.runtime.record import Span


def more_than_operators_s(executor: Executor) -> float:
    """Return the seconds that a segment's thread works beyond its operators' predicted time.

    The mean over segments, by the medians of frames: one more session each, changed layouts, cold
    caches, and what the other processors take of the memory.
    """
    works: defaultdict[str, list[float]] = defaultdict(list)
    for span in executor.record.spans:
        works[span.name].append(span.work_s or 0.0)
    return fmean(median(works[each.id]) - each.time_s for each in executor.folder.segments)


def wake_up_s(executor: Executor) -> float | None:
    """Return the median seconds from the end of what a segment waits for to its begin.

    Of segments that begin with what another processor made last, on a processor that was idle; None
    if there are none.
    """
    at: dict[tuple[str, int], Span] = {(s.name, s.frame): s for s in executor.record.spans}
    processor = {each.id: each.processor for each in executor.folder.segments}
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for channel in executor.folder.channels:
        for reader in channel.consumers:
            if channel.producer is not None:
                needs[reader].add(channel.producer)
    before_s: dict[str, float] = defaultdict(float)  # when each processor was done
    found = []
    for span in sorted(executor.record.spans, key=lambda span: span.start_s):
        read = [at[name, span.frame] for name in needs[span.name] if (name, span.frame) in at]
        if read:
            last = max(read, key=lambda each: each.end_s)
            if processor[last.name] != span.resource and before_s[span.resource] < last.end_s:
                found.append(span.start_s - last.end_s)
        before_s[span.resource] = max(before_s[span.resource], span.end_s)
    return median(found) if found else None
