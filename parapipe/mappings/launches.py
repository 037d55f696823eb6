"""What it takes to start captured graphs: one launch for each segment of a mapping.

A processor that captures graphs (`Launch.graph_s`) starts a segment, a run of its operators that
needs no other processor in between, as a whole (`parapipe.mappings.segments`). So a segment takes
one launch and its operators' times, in which the launch of each is left out. The first operator of
a segment that takes time is the longer by it: what is free, such as a view, launches nothing. A
launch begins when all that the segment reads is there, and draws no dynamic power.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from parapipe.mappings.segments import segments_of

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.mappings.mapping import Mapping


def launch_times_s(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> dict[int, float]:
    """Return the seconds by which operators take longer since they start a captured graph.

    Of the operators that do. That depends on where and in which order all runs, and not on when.
    Empty if no processor captures graphs.
    """
    if not costs.graph_launch_s:
        return {}
    launches_s: dict[int, float] = {}
    for p, segments in segments_of(mapping, graph).items():
        if (launch_s := costs.graph_launch_s[p]) is None:
            continue
        for segment in segments:
            timed = (at.operator for at in segment if costs.time_s(at.operator, p))
            launches_s |= dict.fromkeys([*timed][:1], launch_s)
    return launches_s


def add_launches(
    mapping: Mapping,
    graph: OperatorGraph,
    costs: CostTable,
    retime: Callable[[dict[int, float]], Mapping],
) -> Mapping:
    """Return a mapping with other times in which the launches of its own graphs are counted.

    With other times, the operator that comes first in a period may be another one, and so may the
    order of a processor that several stages share: then other operators begin graphs. If that goes
    round in a circle, what begins a graph once counts as if it always did.

    Parameters
    ----------
    retime
        Returns the mapping with the times that these launches lead to.
    """
    launches_s = launch_times_s(mapping, graph, costs)
    for turn in count():
        changed = retime(launches_s)
        begins_s = launch_times_s(changed, graph, costs)
        if begins_s == launches_s or (turn > FREE_TURNS and begins_s.keys() <= launches_s.keys()):
            break
        launches_s = begins_s if turn < FREE_TURNS else {**launches_s, **begins_s}
    return changed


FREE_TURNS = 4  # in which launches may be taken back
