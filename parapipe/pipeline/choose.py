"""Which candidates of the searches are worth showing: those on a front, and those with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from parapipe.pipeline.dominance import most_balanced, nondominated, thinned
from parapipe.pipeline.mapping import Kind

Key = Callable[[int], tuple[float, ...]]
BEST_OF_KIND: Mapping[str, tuple[Kind, Literal["latency", "throughput"]]] = {
    "sequential": ("sequential", "latency"),
    "pipe-only": ("pipe-only", "throughput"),
    "para-only": ("para-only", "latency"),
    "hybrid-L": ("hybrid", "latency"),
    "hybrid-T": ("hybrid", "throughput"),
    "interleaved-T": ("interleaved", "throughput"),
    "replicated-T": ("replicated", "throughput"),
}
"""Names of configurations: best of which kind, and in what first."""


class Candidate(Protocol):
    """What there is to choose from."""

    @property
    def cost_table(self) -> int:
        """Number of the cost table that it rests on."""
        ...

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        ...

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        ...

    @property
    def objectives(self) -> tuple[float, float, float]:
        """Latency, period and energy, in nanoseconds and nanojoules."""
        ...


Of = TypeVar("Of", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Of]):
    """A candidate that is shown; see `Configuration` for its marks."""

    candidate: Of
    names: tuple[str, ...]
    pareto: bool
    pareto_latency_throughput: bool


def choose(
    candidates: Sequence[Of],
    processors: Sequence[str],
    *,
    energy: bool,
    resolution: float,
    large: bool = False,
    memory: bool = False,
) -> list[Chosen[Of]]:
    """Return the candidates worth showing, by ascending latency.

    What would be shown of those of the first cost table alone is shown, or something at least as
    good in every objective, whatever the resolution.

    Parameters
    ----------
    candidates
        All of them; of those equal in all objectives, the first is shown.
    processors
        Names, in the platform's order.
    energy, resolution
        As for `explore`.
    large
        Whether the resolution holds for the front of latency and throughput, too.
    memory
        Whether peak memory is an objective, too: candidates then say their `memory_bytes`.
    """
    choice = _Choice(candidates, processors, energy, resolution, large, memory)
    first = [i for i, candidate in enumerate(candidates) if candidate.cost_table == 0]
    alone = choice.of(first, ())
    if len(first) == len(candidates):
        return alone
    return choice.of(range(len(candidates)), [each.candidate for each in alone])


@dataclass(frozen=True, slots=True)
class _Choice(Generic[Of]):
    """Chooses among candidates, which go by their numbers."""

    candidates: Sequence[Of]
    processors: Sequence[str]
    energy: bool
    resolution: float
    large: bool
    memory: bool

    def of(self, numbers: Sequence[int], wanted: Sequence[Candidate]) -> list[Chosen[Of]]:
        """Choose among some; `wanted`: what something is to be shown for that is as good."""
        front = nondominated(numbers, self.objectives)
        paper = set(nondominated(front, lambda i: self.objectives(i)[:2]))
        winners = self.winners(numbers, front)
        names: dict[int, list[str]] = {}
        for name, i in winners.items():
            names.setdefault(i, []).append(name)
        best = dict.fromkeys(winners.values())
        if not self.large:
            best |= dict.fromkeys(i for i in front if i in paper)
        best |= dict.fromkeys(self.at_least_as_good(numbers, wanted))
        on_front = set(front)
        # What is named but beaten, or of a kind that equals another in all figures, replaces
        # nothing.
        keep = [i for i in best if i in on_front]
        beaten = [i for i in best if i not in on_front]
        shown = [*thinned(front, self.objectives, self.resolution, keep), *beaten]
        return [
            Chosen(self.candidates[i], tuple(names.get(i, ())), i in on_front, i in paper)
            for i in sorted(shown, key=self.latency_first)
        ]

    def winners(self, numbers: Sequence[int], front: Sequence[int]) -> dict[str, int]:
        """Return the configurations with a name, each the lexicographic best of its kind."""
        of_kind: dict[Kind, list[int]] = {}
        for i in numbers:
            of_kind.setdefault(self.candidates[i].kind, []).append(i)
        first: dict[str, Key] = {"latency": self.latency_first, "throughput": self.period_first}
        found = {
            name: min(of_kind[kind], key=first[objective])
            for name, (kind, objective) in BEST_OF_KIND.items()
            if kind in of_kind
        }
        found["balanced"] = most_balanced(front, self.latency_first)
        found["most-efficient"] = min(numbers, key=self.energy_first)
        if self.memory:
            found["least-memory"] = min(
                numbers, key=lambda i: (self.objectives(i)[-1], *self.latency_first(i))
            )
        for p, processor in enumerate(self.processors):
            alone = [
                i
                for i in of_kind.get("sequential", ())
                if self.candidates[i].processors == (1 << p,)
            ]
            if alone:
                found[f"{processor}-alone"] = min(alone, key=self.latency_first)
        return found

    def at_least_as_good(
        self, numbers: Sequence[int], wanted: Sequence[Candidate]
    ) -> Iterator[int]:
        """Yield, for each one wanted, one that it is no better than, that of least energy."""
        front = nondominated(numbers, self.objectives) if wanted else []
        for each in wanted:
            figures = self.figures(each)
            yield min(
                (
                    i
                    for i in front
                    if all(a <= b for a, b in zip(self.objectives(i), figures, strict=True))
                ),
                key=lambda i: self.latency_first(i)[::-1],
            )

    def objectives(self, i: int) -> tuple[float, ...]:
        """Return what the front trades."""
        return self.figures(self.candidates[i])

    def figures(self, candidate: Candidate) -> tuple[float, ...]:
        """Return the same of a candidate."""
        size_bytes = (getattr(candidate, "memory_bytes", 0),) if self.memory else ()
        return (*candidate.objectives[: 3 if self.energy else 2], *size_bytes)

    def latency_first(self, i: int) -> tuple[float, ...]:
        """Return latency, period, energy."""
        return self.candidates[i].objectives

    def period_first(self, i: int) -> tuple[float, ...]:
        """Return period, latency, energy."""
        latency_ns, period_ns, energy_nj = self.candidates[i].objectives
        return (period_ns, latency_ns, energy_nj)

    def energy_first(self, i: int) -> tuple[float, ...]:
        """Return energy, latency, period."""
        latency_ns, period_ns, energy_nj = self.candidates[i].objectives
        return (energy_nj, latency_ns, period_ns)
