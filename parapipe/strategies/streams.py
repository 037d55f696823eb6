"""The strategy `streams`: clusters of operators on streams that are chosen beforehand, as in PPD.

Algorithm 1 cuts the network into clusters of about equal time, each of which is run at one go;
Algorithm 2 gives each the next stream in turn (`parapipe.solvers.streams`). Streams are
the plan's processors: those that one processor of the platform has, or several identical ones. A
stream runs what is ready of its own clusters, older frames first. Nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from parapipe.solvers.streams import MOST_OPERATORS, assign_streams, clusters
from parapipe.strategies.cut import Operator
from parapipe.strategies.state import State
from parapipe.strategies.work import Work


class Streams:
    """Runs clusters on streams in turn; `most` is M, about how many operators a cluster has."""

    follows_plan = False
    most: float = MOST_OPERATORS

    @classmethod
    def cut(cls, operators: Sequence[Operator]) -> Mapping[str, str]:
        """Name clusters; where the plan has one on several processors, each run of operators."""
        number = {each.id: v for v, each in enumerate(operators)}
        readers: list[set[int]] = [set() for _ in operators]
        for v, each in enumerate(operators):
            for producer in each.reads:
                readers[number[producer]].add(v)
        names: dict[str, str] = {}
        times_ns = [round(each.time_s * 1e9) for each in operators]  # equal ones without rounding
        for c, cluster in enumerate(clusters(times_ns, readers, cls.most)):
            in_order = [operators[v] for v in cluster]
            for part, (_, run) in enumerate(groupby(in_order, key=lambda o: o.processor)):
                name = f"cluster {c}.{part}" if part else f"cluster {c}"
                names.update((operator.id, name) for operator in run)
        return names

    def __init__(self, work: Work) -> None:
        self._work, self._stream = work, list(assign_streams(work.readers, len(work.processors)))
        for task, (stream, times_s) in enumerate(zip(self._stream, work.time_s, strict=True)):
            if not work.runs(task, stream):
                self._stream[task] = times_s.index(min(times_s))

    def schedule(self, state: State) -> None:
        """Give each free stream its first ready cluster."""
        for stream in state.free:
            own = [job for job in state.ready_by if self._stream[job.task] == stream]
            if own:
                first = min(own, key=lambda job: (job.frame, self._work.depth[job.task], job))
                state.execute(first, on=stream)
