"""The configurations with a name: the best of each kind, the balanced and the most efficient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parapipe.pipeline.configuration import Kind
from parapipe.pipeline.front import most_balanced
from parapipe.pipeline.search import Candidate


def winners(
    candidates: Sequence[Candidate], front: Sequence[Candidate], processors: Sequence[str]
) -> dict[str, Candidate]:
    """Return the configurations with a name, each the lexicographic best of its kind."""

    def latency_first(candidate: Candidate) -> tuple[float, ...]:
        return candidate.objectives

    def period_first(candidate: Candidate) -> tuple[float, ...]:
        return (candidate.period_ns, candidate.latency_ns, candidate.energy_nj)

    def energy_first(candidate: Candidate) -> tuple[float, ...]:
        return (candidate.energy_nj, candidate.latency_ns, candidate.period_ns)

    of_kind: dict[Kind, list[Candidate]] = {}
    for candidate in candidates:
        of_kind.setdefault(candidate.kind, []).append(candidate)
    found: dict[str, Candidate] = {}
    first: Sequence[tuple[str, Kind, Callable[[Candidate], tuple[float, ...]]]] = (
        ("sequential", "sequential", latency_first),
        ("pipe-only", "pipe-only", period_first),
        ("para-only", "para-only", latency_first),
        ("hybrid-L", "hybrid", latency_first),
        ("hybrid-T", "hybrid", period_first),
    )
    for name, kind, key in first:
        if kind in of_kind:
            found[name] = min(of_kind[kind], key=key)
    found["balanced"] = most_balanced(front, latency_first)
    found["most-efficient"] = min(candidates, key=energy_first)
    for p, processor in enumerate(processors):
        alone = [
            candidate
            for candidate in of_kind.get("sequential", ())
            if candidate.processors == (1 << p,)
        ]
        if alone:
            found[f"{processor}-alone"] = min(alone, key=latency_first)
    return found
