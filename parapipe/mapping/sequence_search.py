"""Labels over the processors of operators that run one at a time.

Labels are extended operator by operator, once for each processor that supports it. What the
future sees of a label is its end and, for each tensor still to be read, the second at which it
arrives on each processor, unless that is sure to be hidden behind the operators before the next
reader. A label that has nothing earlier than another one is dropped. On a chain that is Bellman's
shortest path, with at most one label per processor.

The labels of one operator may be limited in number, to the most promising ones. Of those left out
the least time that they might have led to is kept, so that the search ends with a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from time import perf_counter

from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.sequence_outlook import Outlook, outlook_of

# Of a tensor on its way, the second at which it arrives on each processor; −inf where hidden.
Arrivals = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Label:
    """Operators so far, placed.

    Parameters
    ----------
    end_s
        Second at which the last of them ends.
    floor_s
        Second before which no sequence ends that goes on from here.
    pending
        By the number of the flow: what has been made, is still to be read, and may be waited for.
    """

    end_s: float
    floor_s: float
    processor: int
    pending: dict[int, Arrivals]
    parent: _Label | None


@dataclass(slots=True)
class SequenceSearch:
    """Searches of one problem, of any width, that share a limit.

    Parameters
    ----------
    deadline_s
        On the clock of `time.perf_counter`.
    work_left
        Arrivals of tensors that may still be noted or compared. When this or the time is used up,
        searches go on with a single label.
    """

    problem: MappingProblem
    deadline_s: float
    work_left: int
    _outlook: Outlook = field(init=False)

    def __post_init__(self) -> None:
        self._outlook = outlook_of(self.problem)

    def exhausted(self) -> bool:
        """Whether the time or the work is used up."""
        return self.work_left <= 0 or perf_counter() >= self.deadline_s

    def run(self, width: int, *, below_s: float) -> tuple[tuple[int, ...], float]:
        """Search with at most `width` labels at a time for a sequence that ends before `below_s`.

        Returns
        -------
        tuple
            The processor of each operator in the best sequence found, or () if there is none; and
            the least time that labels left out might have led to, infinite if none were.
        """
        labels = [_Label(0.0, 0.0, 0, {}, None)]
        left_out_s = inf
        for v in range(self.problem.operators):
            extended = [new for label in labels for new in self._extended(label, v, below_s)]
            labels = self._undominated(extended, v)
            limit = 1 if self.exhausted() else width
            if len(labels) > limit:
                labels.sort(key=attrgetter("floor_s", "end_s"))
                left_out_s = min(left_out_s, labels[limit].floor_s)
                del labels[limit:]
        best = min(labels, key=attrgetter("end_s"), default=None)
        return _processors(best), left_out_s

    def _extended(self, label: _Label, v: int, below_s: float) -> Iterator[_Label]:
        """Yield the label with operator v on each processor that may lead below `below_s`."""
        outlook = self._outlook
        for p in outlook.support[v]:
            waits_s = [label.pending[f][p] for f in outlook.read_by[v] if f in label.pending]
            start_s = max(label.end_s, outlook.release_s[v][p], *waits_s)
            end_s = start_s + self.problem.time_s[v][p]
            floor_s = max(label.floor_s, end_s + outlook.rest_s[v][p])
            made: dict[int, Arrivals] = {}
            for f in outlook.made_by[v]:
                moved_s = self.problem.flows[f].transfer_s[p]
                made[f] = tuple([end_s + s for s in moved_s])
                floor_s = max(floor_s, self._floor_s(f, made[f]))
            if floor_s < below_s:
                self.work_left -= len(label.pending) + 1
                visible = self._visible({**label.pending, **made}, v, end_s)
                yield _Label(end_s, floor_s, p, visible, label)

    def _floor_s(self, f: int, arrivals: Arrivals) -> float:
        """Least end of a sequence, seen from the first reader of a flow."""
        reader = min(self.problem.flows[f].consumers)
        time_s, rest_s = self.problem.time_s[reader], self._outlook.rest_s[reader]
        return min(arrivals[p] + time_s[p] + rest_s[p] for p in self._outlook.support[reader])

    def _visible(self, pending: dict[int, Arrivals], v: int, end_s: float) -> dict[int, Arrivals]:
        """Keep what is still to be read and may be waited for, v having ended."""
        kept: dict[int, Arrivals] = {}
        hidden_s = self._outlook.hidden_s[v]
        for f, arrivals in pending.items():
            if f in hidden_s:
                pairs = zip(arrivals, hidden_s[f], strict=True)
                visible = tuple([a if a > end_s + s else -inf for a, s in pairs])
                if max(visible) > -inf:
                    kept[f] = visible
        return kept

    def _undominated(self, labels: list[_Label], v: int) -> list[_Label]:
        kept: list[_Label] = []
        for label in sorted(labels, key=attrgetter("end_s", "floor_s")):
            if not any(self._dominates(earlier, label, v) for earlier in kept):
                kept.append(label)
        return kept

    def _dominates(self, earlier: _Label, later: _Label, v: int) -> bool:
        """Whether all that is visible in the label that ends earlier arrives no later."""
        hidden_s = self._outlook.hidden_s[v]
        for f, arrivals in earlier.pending.items():
            self.work_left -= 1
            others = later.pending.get(f)
            for p, arrival_s in enumerate(arrivals):
                if arrival_s > later.end_s + hidden_s[f][p] and (
                    others is None or arrival_s > others[p]
                ):
                    return False
        return True


def _processors(label: _Label | None) -> tuple[int, ...]:
    """Read a label's choices, first operator first."""
    chosen: list[int] = []
    while label is not None and label.parent is not None:
        chosen.append(label.processor)
        label = label.parent
    return tuple(reversed(chosen))
