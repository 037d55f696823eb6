"""Algorithm 1 of Para-Pipe, as literally as its text allows: an oracle for small graphs.

The paper walks from the input. Light operators are merged into their only producer first
(`mergeNodes`). From the current node it looks for the nearest node that every path to the output
crosses; what lies between, with that node, is a subgraph. A node whose single successor has no
other producer carries a linear subgraph on. It is defined for one input and one output.
"""

from __future__ import annotations


def algorithm_one(graph):
    """Return the operators of each subgraph, as sets, in order."""
    groups, followers = merged(graph)
    begin = next(g for g in groups if not any(g in after for after in followers.values()))
    found = [[begin]]
    linear = True
    node = begin
    while followers[node]:
        joint = nearest_joint(node, followers)
        between = inside(node, joint, followers)
        if between == {joint} and linear:
            found[-1].append(joint)
        else:
            found.append([*between])
        linear = between == {joint}
        node = joint
    return [{v for g in run for v in groups[g]} for run in found]


def merged(graph):
    """Fold each operator without MACs into its only producer, if nothing else reads that."""
    leader = {}
    groups = {}
    for v, operator in enumerate(graph.operators):
        producers = graph.predecessors(v)
        if (
            not operator.work.macs
            and len(producers) == 1
            and len(graph.successors(producers[0])) == 1
        ):
            leader[v] = leader[producers[0]]
        else:
            leader[v] = v
        groups.setdefault(leader[v], []).append(v)
    followers = {
        g: {leader[w] for v in members for w in graph.successors(v)} - {g}
        for g, members in groups.items()
    }
    return groups, followers


def reach(node, followers, without=None):
    found, waiting = set(), [node]
    while waiting:
        for after in followers[waiting.pop()] - found - {without}:
            found.add(after)
            waiting.append(after)
    return found


def nearest_joint(node, followers):
    """Return the first node behind that no path to the output goes around."""
    behind = reach(node, followers)
    (output,) = [g for g in behind if not followers[g]]
    joints = [g for g in behind if g == output or output not in reach(node, followers, without=g)]
    return max(joints, key=lambda g: len(reach(g, followers)))


def inside(node, joint, followers):
    """Return what lies between two nodes, the second one included."""
    return {g for g in reach(node, followers) if g == joint or joint in reach(g, followers)}
