"""Which placements of all shapes together no others beat.

Nothing is lost. A placement is left out only if another one of its shape may take its place beside
whatever the others have (`PlacedShape.is_as_good_as`), and placements of the first shapes only if
others of these may, whatever the later ones have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from parapipe.pareto import ENERGY_TIE, least, most_balanced, nondominated, thin_front
from parapipe.search.option_types import MaxMemory
from parapipe.several_shapes.combination import Combination, state_hand_overs
from parapipe.several_shapes.placed_shapes import PlacedShape

ONE_PLACEMENT, ONE_PROCESSOR = "one-placement", "one-processor"


def undominated(
    placements: Sequence[PlacedShape], *, energy: bool, memory: bool
) -> list[PlacedShape]:
    """Return placements of one shape without those whose place another one may always take."""
    left: list[PlacedShape] = []
    order = sorted(
        placements,
        key=lambda each: (each.latency_s, each.steps_s, each.energy_j, len(each.weights)),
    )
    for each in order:
        if not any(other.is_as_good_as(each, energy=energy, memory=memory) for other in left):
            left = [
                other
                for other in left
                if not each.is_as_good_as(other, energy=energy, memory=memory)
            ]
            left.append(each)
    return left


def combined(
    placements: Sequence[Sequence[PlacedShape]], *, energy: bool, memory: bool
) -> list[Combination]:
    """Return combinations of placements of each shape, without those that others always replace."""
    shapes = [some[0].shape for some in placements]
    pairs = [*state_hand_overs(shapes)]
    partial = [Combination((each,)) for each in placements[0]]
    for number, some in enumerate(placements[1:], 1):
        more = [Combination((*each.placements, other)) for each, other in product(partial, some)]
        if number == len(placements) - 1:
            return more
        pending = sorted({begin for _, begin, end in pairs if begin <= number < end})
        partial = _undominated(more, pending, energy=energy, memory=memory)
    return partial


def _undominated(
    every: Sequence[Combination], pending: Sequence[int], *, energy: bool, memory: bool
) -> list[Combination]:
    """Leave out what others replace, whatever comes behind.

    Parameters
    ----------
    pending
        Shapes of which later ones read states.
    """
    groups: dict[object, list[Combination]] = {}
    for each in sorted(every, key=lambda some: some.objectives(energy=energy, memory=False)):
        key = tuple(each.placements[at].written for at in pending)
        left = groups.setdefault(key, [])
        if not any(_replaces(other, each, pending, energy, memory) for other in left):
            left.append(each)
    return [each for some in groups.values() for each in some]


def _replaces(
    one: Combination, other: Combination, pending: Sequence[int], energy: bool, memory: bool
) -> bool:
    pairs = zip(
        one.objectives(energy=energy, memory=False),
        other.objectives(energy=energy, memory=False),
        strict=True,
    )
    if not all(a <= b for a, b in pairs):
        return False
    if energy and not all(one.placements[at].draws_no_more(other.placements[at]) for at in pending):
        return False
    return not memory or (_constant_parts(one, other) and one.weights <= other.weights)


def _constant_parts(one: Combination, other: Combination) -> bool:
    """Whether working memory and segments are no more, in any memory."""
    return all(
        a <= b
        for some, others in zip(_parts(one), _parts(other), strict=True)
        for a, b in zip(some, others, strict=True)
    )


def _parts(each: Combination) -> tuple[Sequence[int], Sequence[int]]:
    working = [max(some) for some in zip(*(p.working_bytes for p in each.placements), strict=True)]
    segments = [
        sum(some) for some in zip(*(p.segments_bytes for p in each.placements), strict=True)
    ]
    return working, segments


@dataclass(frozen=True, slots=True)
class Choice:
    """What decides which combinations are shown.

    Parameters
    ----------
    energy, memory
        Whether they are objectives.
    max_memory_bytes
        Of all memories together, or by their names; None for no limit.
    resolution
        Share within which one matches another.
    """

    energy: bool
    memory: bool
    max_memory_bytes: MaxMemory | None
    resolution: float

    def front(self, placements: Sequence[Sequence[PlacedShape]]) -> list[Combination]:
        """Return the combinations that no other one beats, and those with a name, in order.

        Empty if none keeps the limit of memory.

        Parameters
        ----------
        placements
            Of each shape.
        """
        counts_memory = self.memory or self.max_memory_bytes is not None
        few = [undominated(some, energy=self.energy, memory=counts_memory) for some in placements]
        every = combined(few, energy=self.energy, memory=counts_memory)
        fitting = [each for each in every if self._fits(each)]
        if not fitting:
            return []
        front = nondominated(fitting, self.figures)
        baselines = {
            name: min(some, key=lambda each: (each.request_s, *self.figures(each)))
            for name, some in self._baselines(placements).items()
            if some
        }
        return self._named(front, baselines)

    def figures(self, each: Combination) -> tuple[float, ...]:
        """Return the objectives of a combination."""
        return each.objectives(energy=self.energy, memory=self.memory)

    def _fits(self, each: Combination) -> bool:
        match self.max_memory_bytes:
            case None:
                return True
            case Mapping() as by_name:
                names = each.placements[0].storage.system.names
                pairs = zip(names, each.memories_bytes, strict=True)
                return all(
                    size_bytes <= by_name.get(name, size_bytes) for name, size_bytes in pairs
                )
            case most:
                return each.memory_bytes <= most

    def _baselines(
        self, placements: Sequence[Sequence[PlacedShape]]
    ) -> Mapping[str, list[Combination]]:
        """Return combinations of one placement for all shapes, and of a single processor."""
        ids = set.intersection(*({*some[0].processor_of} for some in placements))
        groups: list[dict[tuple[str, ...], list[PlacedShape]]] = []
        for some in placements:
            groups.append({})
            for each in some:
                key = tuple(each.processor_of[name] for name in sorted(ids))
                groups[-1].setdefault(key, []).append(each)
        same = [
            Combination(chosen)
            for key in groups[0]
            if all(key in each for each in groups)
            for chosen in product(*(each[key] for each in groups))
        ]
        same = [each for each in same if self._fits(each)]
        alone = [
            each
            for each in same
            if len({name for some in each.placements for name in some.static_power_w}) == 1
        ]
        return {ONE_PLACEMENT: same, ONE_PROCESSOR: alone}

    def _named(
        self, front: Sequence[Combination], baselines: Mapping[str, Combination]
    ) -> list[Combination]:
        shapes = [each.shape.name for each in front[0].placements]
        best: dict[str, Combination] = {
            f"{name}-L": least(front, partial(_latency_first, at)) for at, name in enumerate(shapes)
        }
        best["most-throughput"] = least(front, lambda each: (each.request_s, *self.figures(each)))
        best["balanced"] = most_balanced(front, self.figures, 1e-9)
        if self.energy:
            best["most-efficient"] = least(
                front, lambda each: (each.energy_j, *self.figures(each)), (ENERGY_TIE,)
            )
        if self.memory:
            best["least-memory"] = least(
                front, lambda each: (each.memory_bytes, *self.figures(each))
            )
        names: dict[tuple[int, ...], list[str]] = {}
        for name, each in {**best, **baselines}.items():
            names.setdefault(_numbers(each), []).append(name)
        keep = [each for each in front if _numbers(each) in names]
        shown = thin_front(front, self.figures, self.resolution, keep)
        on_front = {_numbers(each) for each in shown}
        beaten = {_numbers(each): each for each in baselines.values()}
        every = [*shown, *(each for at, each in beaten.items() if at not in on_front)]
        marked = [
            Combination(
                each.placements, tuple(names.get(_numbers(each), ())), _numbers(each) in on_front
            )
            for each in every
        ]
        return sorted(marked, key=lambda each: (each.request_s, *self.figures(each)))


def _numbers(each: Combination) -> tuple[int, ...]:
    """Return the numbers of its placements, which tell it from others."""
    return tuple(placement.number for placement in each.placements)


def _latency_first(at: int, each: Combination) -> tuple[float, float]:
    return each.placements[at].latency_s, each.request_s
