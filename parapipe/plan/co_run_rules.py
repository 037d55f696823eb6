"""Rules on a plan whose processors slow each other down: what it says of when all runs is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from parapipe.plan.mapped import MappedPlan, route_of
from parapipe.plan.memory_traffic import moved_bytes
from parapipe.plan.records import CoRun

PICOSECOND_S = 1e-12
WRONG_SHARE = 1e-6  # of a time, which rates may be off by: what is left is rounded, again and again


class _Span(NamedTuple):
    """When an operator runs for a frame: its processor by the law's name, and what it asks for."""

    processor: str
    moved_bytes: int
    time_s: float
    start_s: float
    end_s: float

    @property
    def rate(self) -> float:
        return self.moved_bytes / self.time_s if self.time_s else 0.0


def co_run_violations(view: MappedPlan) -> Iterator[str]:
    """Yield what is wrong with what a plan says of its processors that slow each other down.

    The rules: nothing takes less than without the law; its table names processors of the plan; all
    operators and transfers that keep something busy have as many spans; over the span of an
    operator, the rates at which it goes on, given what runs beside it, add up to its time alone,
    where all spans occur again after as many periods as there are frames; a transfer takes its
    time; what a processor or link does follows in its order; whoever reads starts once all has been
    made and has arrived; and the latency is that of the longest frame, or that without the law if
    it is longer.

    Times are rounded to picoseconds whenever a rate changes.
    """
    stated = view.plan.co_run
    if stated is None:
        return
    predicted, free = view.plan.predicted, stated.free
    for name in ("latency_s", "period_s", "sustained_period_s"):
        with_law, without = getattr(predicted, name), getattr(free, name)
        if with_law < without * (1 - 1e-9):
            what = name.removesuffix("_s").replace("_", " ")
            yield (
                f"the {what} is {with_law:.9g} s, and {without:.9g} s if processors did not slow "
                "each other down"
            )
    if unknown := _unknown_processors(view, stated):
        yield from unknown
        return
    if not stated.spans_s:
        return
    if missing := _missing_spans(view, stated):
        yield missing
        return
    frames = len(next(iter(stated.spans_s.values())))
    yield from _rate_violations(view, stated, frames)
    yield from _order_violations(view, stated, frames)
    yield from _arrival_violations(view, stated)
    starts_s, ends_s = [], []
    for number in range(frames):
        spans = [each[number] for each in stated.spans_s.values()]
        starts_s.append(min(start for start, _ in spans) - number * predicted.period_s)
        ends_s.append(max(end for _, end in spans) - number * predicted.period_s)
    latency_s = max(free.latency_s, max(ends_s) - min(starts_s))
    if abs(predicted.latency_s - latency_s) > _tolerance_s(view, frames):
        yield f"the latency is {predicted.latency_s:.9g} s, and a frame takes {latency_s:.9g} s"


def _unknown_processors(view: MappedPlan, stated: CoRun) -> list[str]:
    """Return a violation for each name in the law's table that is no processor of the plan."""
    known = {_name(view, each.name) for each in view.plan.processors}
    names = ", ".join(sorted(known))
    return [
        f"co_run.slowdowns[{i}] names processor '{name}', and the plan's are {names}"
        for i, row in enumerate(stated.slowdowns)
        for name in dict.fromkeys((row.processor, *row.busy))
        if name not in known
    ]


def _tolerance_s(view: MappedPlan, frames: int) -> float:
    length_s = frames * view.plan.predicted.period_s
    return (len(view.plan.operators) + 10) * PICOSECOND_S + 1e-9 * length_s


def _missing_spans(view: MappedPlan, stated: CoRun) -> str:
    """Return what has no spans, or not as many as others; an empty text if nothing."""
    operators = {view.id(at) for order in view.orders.values() for at in order}
    if operators != stated.spans_s.keys():
        return "the times of co-runs are not those of the plan's operators"
    busy = {route_of(each) for each in view.moved if each.occupies is not None}
    if busy != {(each.tensor, each.source, each.target) for each in stated.transfers}:
        return "the times of co-runs are not those of the transfers that keep something busy"
    counts = {len(each) for each in stated.spans_s.values()}
    counts |= {len(each.spans_s) for each in stated.transfers}
    if len(counts) > 1:
        return f"the times of co-runs are of {' and '.join(map(str, sorted(counts)))} frames"
    used = {_name(view, name) for p in view.orders for name in _turns(view, p)}
    if stated.contention_s_per_byte is None and not used <= stated.draws.keys():
        return "the law of co-runs does not say what a processor draws"
    return ""


def _turns(view: MappedPlan, p: int) -> tuple[str, ...]:
    return view.replicas.get(view.resources[p], (view.resources[p],))


def _name(view: MappedPlan, processor: str) -> str:
    stated = view.plan.co_run
    return stated.names.get(processor, processor) if stated else processor


def _rate_violations(view: MappedPlan, stated: CoRun, frames: int) -> Iterator[str]:
    """Check that operators have done their work when they end."""
    period_s, moved = view.plan.predicted.period_s, moved_bytes(view.plan)
    length_s = frames * period_s
    spans: dict[str, list[_Span]] = {}
    for name, at in view.placements.items():
        turns = _turns(view, at.processor)
        spans[name] = [
            _Span(
                _name(view, turns[number % len(turns)]), moved[name], at.end_s - at.start_s, *span
            )
            for number, span in enumerate(stated.spans_s[name])
        ]
    every = [each for row in spans.values() for each in row]
    reach = 1 + int(max(each.end_s for each in every) / length_s)
    again = [
        each._replace(start_s=each.start_s + n * length_s, end_s=each.end_s + n * length_s)
        for each in every
        for n in range(-reach, reach + 1)
    ]
    again.sort(key=lambda each: each.start_s)
    for name, row in spans.items():
        for number, span in enumerate(row):
            done_s, changes = _work_done_s(span, again, stated)
            wrong_s = abs(done_s - span.time_s)
            if wrong_s > (changes + 2) * PICOSECOND_S + WRONG_SHARE * span.time_s:
                yield (
                    f"operator '{name}' runs from {span.start_s:.9g} to {span.end_s:.9g} s for "
                    f"frame {number}, in which it does what takes {done_s:.9g} s alone, and it "
                    f"takes {span.time_s:.9g} s"
                )


def _work_done_s(span: _Span, every: Sequence[_Span], stated: CoRun) -> tuple[float, int]:
    """Return what an operator does in its span, as a time alone, and how often its rate changes."""
    beside = [
        each
        for each in every
        if each.start_s < span.end_s and each.end_s > span.start_s and each.time_s
    ]
    moments = sorted(
        {
            min(max(at, span.start_s), span.end_s)
            for each in beside
            for at in (each.start_s, each.end_s)
        }
    )
    done_s, changes = 0.0, 0
    for begin_s, end_s in pairwise(moments):
        middle_s = (begin_s + end_s) / 2
        if end_s - begin_s < PICOSECOND_S / 2:
            continue  # one moment, reckoned in two ways
        running = [each for each in beside if each.start_s < middle_s < each.end_s]
        done_s += (end_s - begin_s) / _factor(span, running, stated)
        changes += 1
    return done_s, changes


def _factor(own: _Span, running: Sequence[_Span], stated: CoRun) -> float:
    """Return how many times as long an operator takes beside what runs, itself included."""
    if stated.contention_s_per_byte is not None:
        others = sum(each.rate for each in running) - own.rate
        return 1 + stated.contention_s_per_byte * max(0.0, others)
    if stated.bandwidth_bytes_per_s is not None:
        return _shared_factor(own, running, stated, stated.bandwidth_bytes_per_s)
    factor, own_class = 1.0, _class(own, stated)
    beside: dict[str, set[str]] = {}
    for each in running:
        beside.setdefault(each.processor, set()).add(_class(each, stated))
    for row in stated.slowdowns:
        if row.processor != own.processor or row.operator_class not in (None, own_class):
            continue
        wanted = {row.busy_class} if row.busy_class else {"compute", "memory"}
        if all(wanted & beside.get(other, set()) for other in row.busy):
            factor = max(factor, row.factor)
    return factor


def _class(span: _Span, stated: CoRun) -> str:
    """Return whether an operator waits for arithmetic or for the memory."""
    draw = stated.draws[span.processor]
    least = (stated.memory_share or 0.0) * draw.most_bytes_per_s
    cached = span.moved_bytes <= draw.cache_bytes
    return "memory" if not cached and span.rate >= least else "compute"


def _shared_factor(own: _Span, running: Sequence[_Span], stated: CoRun, bandwidth: float) -> float:
    """Return the factor where the memory serves all to the same share of what they draw at most."""
    asked, most = [], []
    for each in (own, *running):
        draw = stated.draws[each.processor]
        limit = min(draw.most_bytes_per_s, bandwidth)
        most.append(limit)
        asked.append(0.0 if each.moved_bytes <= draw.cache_bytes else min(each.rate, limit))
    own_need = asked[0] / most[0]
    pairs = [*zip(asked[1:], most[1:], strict=True)]

    def served(share: float) -> float:
        return sum(min(need, share * limit) for need, limit in pairs)

    if served(1.0) <= bandwidth:
        return 1.0
    # the total grows from one need over its limit to the next along a straight line
    low = 0.0
    for high in sorted({need / limit for need, limit in pairs} | {1.0}):
        if served(high) > bandwidth:
            share = low + (bandwidth - served(low)) * (high - low) / (served(high) - served(low))
            return max(1.0, own_need / share)
        low = high
    return 1.0


def _overlaps(
    folded: Sequence[tuple[float, float, str]], length_s: float, margin_s: float
) -> Iterator[tuple[str, str]]:
    """Yield what overlaps in a circle: start, end and name of each, by ascending start.

    What takes no time may be where others begin and end, in whatever order they stand there.
    """
    long = [each for each in folded if each[1] - each[0] > margin_s]
    following = [(start + length_s, end + length_s, what) for start, end, what in long[:1]]
    for (_, end, what), (start, _, other) in pairwise([*long, *following]):
        if start < end - margin_s:
            yield what, other
    for at, end, other in folded:
        for begin, stop, what in long if end - at <= margin_s else ():
            if any(begin + margin_s < moment < stop - margin_s for moment in (at, at + length_s)):
                yield what, other


def _order_violations(view: MappedPlan, stated: CoRun, frames: int) -> Iterator[str]:
    """Check that each processor and link does one thing at a time, in its order, for ever."""
    length_s = frames * view.plan.predicted.period_s
    margin_s = _tolerance_s(view, frames)
    work: dict[str, list[tuple[float, float, str]]] = {}
    for name, at in view.placements.items():
        turns = _turns(view, at.processor)
        for number, span in enumerate(stated.spans_s[name]):
            row = work.setdefault(turns[number % len(turns)], [])
            row.append((*span, f"operator '{name}' for frame {number}"))
    occupied = {route_of(each): each for each in view.moved if each.occupies is not None}
    for moved in stated.transfers:
        each = occupied[moved.tensor, moved.source, moved.target]
        for number, span in enumerate(moved.spans_s):
            what = f"the transfer of '{each.tensor}' to '{each.target}' for frame {number}"
            work.setdefault(each.occupies or "", []).append((*span, what))
            if abs(span[1] - span[0] - each.time_s) > margin_s:
                yield f"{what} takes {span[1] - span[0]:.9g} s, and should {each.time_s:.9g} s"
    for resource, row in work.items():
        folded = sorted(
            (start % length_s, start % length_s + end - start, what) for start, end, what in row
        )
        for what, other in _overlaps(folded, length_s, margin_s):
            yield f"'{resource}' runs {what} and {other} at the same time"
    for order in view.orders.values():
        yield from _sequence_violations(view, stated, [view.id(at) for at in order], length_s)


def _sequence_violations(
    view: MappedPlan, stated: CoRun, names: Sequence[str], length_s: float
) -> Iterator[str]:
    """Check that a processor takes its operators in the plan's order, frame after frame."""
    turns = len(_turns(view, view.placements[names[0]].processor)) if names else 1
    lags = [view.placements[name].lag for name in names]
    frames = len(stated.spans_s[names[0]]) if names else 0
    for number in range(frames):
        # in a round, an operator of lag l works on the frame l before
        row = []
        for name, lag in zip(names, lags, strict=True):
            rounds, frame = divmod(number - (lag - lags[0]), frames)
            row.append(stated.spans_s[name][frame][0] + rounds * length_s)
        rounds, frame = divmod(number + turns, frames)
        row.append(stated.spans_s[names[0]][frame][0] + rounds * length_s)
        for (one, before_s), (other, behind_s) in pairwise(
            zip([*names, names[0]], row, strict=True)
        ):
            if behind_s < before_s - _tolerance_s(view, frames):
                yield (
                    f"'{other}' runs before '{one}' beside co-runs, and behind it in the order of "
                    "its processor"
                )


def _arrival_violations(view: MappedPlan, stated: CoRun) -> Iterator[str]:
    """Check that what an operator reads has been made and has arrived."""
    transfers = {(each.tensor, each.source, each.target): each.spans_s for each in stated.transfers}
    for edge in view.edges:
        made, read = view.id(edge.made), view.id(edge.read)
        spans = zip(stated.spans_s[made], stated.spans_s[read], strict=True)
        for number, ((_, end_s), (start_s, _)) in enumerate(spans):
            there_s = end_s + (edge.transfer.time_s if edge.transfer else 0.0)
            moved = transfers.get(route_of(edge.transfer)) if edge.transfer else None
            if moved:
                there_s = max(there_s, moved[number][1])
                if moved[number][0] < end_s - _tolerance_s(view, 1):
                    yield f"'{edge.tensor}' moves before it is made, for frame {number}"
            if start_s < there_s - _tolerance_s(view, 1):
                yield (
                    f"'{read}' reads '{edge.tensor}' at {start_s:.9g} s for frame {number}, and it "
                    f"arrives at {there_s:.9g} s"
                )
