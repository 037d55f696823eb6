"""Which candidates of the search are worth showing: those on a front, and those with a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parapipe.pipeline.front import nondominated, thinned
from parapipe.pipeline.named import winners
from parapipe.pipeline.search import Candidate


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that is shown; see `found.Found` for its marks."""

    candidate: Candidate
    names: tuple[str, ...]
    pareto: bool
    pareto_latency_throughput: bool


def choose(
    candidates: Sequence[Candidate],
    first: Sequence[Candidate],
    processors: Sequence[str],
    *,
    energy: bool,
    resolution: float,
) -> list[Chosen]:
    """Return the candidates worth showing, by ascending latency.

    Parameters
    ----------
    candidates
        All of them; of those equal in all objectives, the first is shown.
    first
        Those of the default operating points. What would be shown of them alone is shown, or
        something at least as good in every objective, whatever the resolution.
    processors
        Names, in the platform's order.
    energy, resolution
        As for `explore`.
    """
    alone = _choose(first, (), processors, energy, resolution)
    if len(first) == len(candidates):
        return alone
    kept = list(_at_least_as_good(candidates, [each.candidate for each in alone], energy))
    return _choose(candidates, kept, processors, energy, resolution)


def _figures(candidate: Candidate, energy: bool) -> tuple[float, ...]:
    return candidate.objectives if energy else candidate.objectives[:2]


def _at_least_as_good(
    candidates: Sequence[Candidate], wanted: Sequence[Candidate], energy: bool
) -> Iterator[Candidate]:
    """Yield, for each one wanted, one of the front that it is no better than, the thriftiest."""
    front = nondominated(candidates, lambda candidate: _figures(candidate, energy))
    for each in wanted:
        figures = _figures(each, energy)
        yield min(
            (
                other
                for other in front
                if all(a <= b for a, b in zip(_figures(other, energy), figures, strict=True))
            ),
            key=lambda other: other.objectives[::-1],
        )


def _choose(
    candidates: Sequence[Candidate],
    kept: Sequence[Candidate],
    processors: Sequence[str],
    energy: bool,
    resolution: float,
) -> list[Chosen]:
    def objectives(candidate: Candidate) -> Sequence[float]:
        return _figures(candidate, energy)

    front = nondominated(candidates, objectives)
    paper = nondominated(front, lambda candidate: candidate.objectives[:2])
    names: dict[int, list[str]] = {}
    named = winners(candidates, front, processors)
    for name, candidate in named.items():
        names.setdefault(id(candidate), []).append(name)
    best = {id(candidate): candidate for candidate in (*named.values(), *paper, *kept)}
    on_front = {id(candidate) for candidate in front}
    on_paper = {id(candidate) for candidate in paper}
    # What is named but beaten, or of a kind that equals another in all figures, replaces nothing.
    beaten = [candidate for key, candidate in best.items() if key not in on_front]
    keep = [candidate for key, candidate in best.items() if key in on_front]
    shown = [*thinned(front, objectives, resolution, keep), *beaten]
    return [
        Chosen(
            candidate,
            tuple(names.get(id(candidate), ())),
            id(candidate) in on_front,
            id(candidate) in on_paper,
        )
        for candidate in sorted(shown, key=lambda candidate: candidate.objectives)
    ]
