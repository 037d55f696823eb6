"""Algorithms 1 and 2 of PPD, written down as in the paper: with sets, looked through each time."""

from __future__ import annotations

import random


def random_graph(seed):
    """Return times and edges of a graph of up to 40 operators, wide or narrow, in any numbering."""
    draw = random.Random(seed)
    count = draw.randint(1, 40)
    names = draw.sample(range(count), count)
    density = draw.choice((0.02, 0.1, 0.3))
    edges = {
        (names[i], names[j])
        for i in range(count)
        for j in range(i + 1, count)
        if draw.random() < density or (j == i + 1 and draw.random() < 0.5)
    }
    times = [draw.choice((0.0, 1.0, 2.0, 5.0, draw.random())) for _ in range(count)]
    return times, edges


def depths(pred):
    """Longest distance of each vertex from one without predecessors."""
    found = {}
    while len(found) < len(pred):
        for v in pred:
            if v not in found and all(u in found for u in pred[v]):
                found[v] = max([found[u] + 1 for u in pred[v]], default=0)
    return found


def algorithm_1(times, edges, m):
    """Algorithm 1: PartitionGraph(G = (V, E), w, M)."""
    vertices = range(len(times))
    pred = {v: {a for a, b in edges if b == v} for v in vertices}
    succ = {v: {b for a, b in edges if a == v} for v in vertices}
    threshold = m * sum(times) / len(times)
    depth = depths(pred)
    in_degree = {v: len(pred[v]) for v in vertices}
    ready = {v for v in vertices if in_degree[v] == 0}
    clusters = []

    def release(v):
        for s in succ[v]:
            in_degree[s] -= 1
            if in_degree[s] == 0:
                ready.add(s)

    while ready:
        master = min(ready, key=lambda v: (depth[v], len(pred[v]), v))
        ready.remove(master)
        cluster = [master]
        release(master)
        while sum(times[v] for v in cluster) < threshold and ready:
            best = None
            for v in sorted(ready):
                crossing = -len(pred[v] & set(cluster))
                rank = (crossing, depth[v], len(pred[v]), v)
                if best is None or rank < best[0]:
                    best = rank, v
            ready.remove(best[1])
            cluster.append(best[1])
            release(best[1])
        clusters.append(cluster)
    return clusters


def algorithm_2(clusters, edges, streams):
    """Algorithm 2: AssignStreams(clusters, S)."""
    of = {v: number for number, cluster in enumerate(clusters) for v in cluster}
    links = {(of[a], of[b]) for a, b in edges if of[a] != of[b]}
    queue = [c for c in range(len(clusters)) if all(b != c for _, b in links)]
    seen = set(queue)
    assigned, turn = {}, 0
    while queue:
        c = queue.pop(0)
        assigned[c] = turn
        turn = (turn + 1) % streams
        for after in range(len(clusters)):
            if (c, after) in links and after not in seen:
                seen.add(after)
                queue.append(after)
    return [assigned[c] for c in range(len(clusters))]
