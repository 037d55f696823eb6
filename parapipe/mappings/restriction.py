"""What a user allows of configurations: their stages, and the rate at which frames arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Protocol, TypeVar, get_args

from parapipe.digits import plain
from parapipe.errors import MappingError
from parapipe.mappings.mapping import Kind

CLOSE = 1e-9  # share by which a period may be longer than that of the rate
TOO_MUCH = "draws more than the power budget even when it does nothing"
NEAR = 1e-4  # share within which whole nanoseconds do not tell whether a period is short enough


class Found(Protocol):
    """A configuration, in one of the forms that searches have of it."""

    @property
    def kind(self) -> Kind:
        """What its stages amount to."""

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""

    @property
    def period_s(self) -> float:
        """Least seconds between frames."""


AnyFound = TypeVar("AnyFound", bound=Found)


@dataclass(frozen=True, slots=True)
class Restriction:
    """What a configuration must be, whatever its figures.

    Parameters
    ----------
    most_stages
        Stages that it may have; frame lags, if operators of several frames take turns. Any number
        if it is None.
    rate_fps
        Frames a second that it must reach; None if that does not matter.
    """

    most_stages: int | None = None
    rate_fps: float | None = None

    def allows(self, candidate: Found) -> bool:
        """Tell whether a configuration is as it must be."""
        return candidate.period_s < inf and self._has_few(candidate) and self._reaches(candidate)

    def is_near(self, candidate: Found) -> bool:
        """Tell whether a period in whole nanoseconds, rounded up, may be the one of the rate."""
        return self.rate_fps is not None and abs(candidate.period_s * self.rate_fps - 1) < NEAR

    def allowed(
        self, candidates: Iterable[AnyFound], refused: list[AnyFound] | None = None
    ) -> Iterator[AnyFound]:
        """Yield the configurations that are as they must be; `refused` takes the others."""
        for each in candidates:
            if self.allows(each):
                yield each
            elif refused is not None:
                refused.append(each)

    def lacking(self, refused: Iterable[Found], allowed: Iterable[Found]) -> dict[str, str]:
        """Say why kinds of configuration are absent: by kind, of those that only refused ones have.

        Parameters
        ----------
        refused, allowed
            What was found.
        """
        by_kind: dict[Kind, list[Found]] = {}
        for each in refused:
            by_kind.setdefault(each.kind, []).append(each)
        there = {each.kind for each in allowed}
        return {
            kind: self._describe_refused(by_kind[kind])
            for kind in get_args(Kind)
            if kind in by_kind and kind not in there
        }

    def check(
        self, model: str, found: Iterable[Found], least_period_s: Callable[[], float]
    ) -> None:
        """Raise a MappingError if no configuration is as it must be: says what would do.

        Parameters
        ----------
        found
            All that was found.
        least_period_s
            Returns a period that no configuration is below: proven.
        """
        every = list(found)
        if not every or any(map(self.allows, every)):
            return
        if all(each.period_s == inf for each in every):
            raise MappingError(
                f"every configuration of '{model}' that was found {TOO_MUCH}; plan for the cold "
                "chip, or correct the budget"
            )
        if self.rate_fps is None or any(map(self._reaches, every)):
            fewest = min(map(_stage_count, filter(self._reaches, every)))
            at = f" and reaches {plain(self.rate_fps)} frames/s" if self.rate_fps else ""
            raise MappingError(
                f"no configuration of '{model}' that was found has at most {self.most_stages} "
                f"stages{at}: the fewest are {fewest}; allow more with `max_stages`"
            )
        fewer = f" of at most {self.most_stages} stages" if self.most_stages else ""
        raise MappingError(
            f"no configuration of '{model}'{fewer} that was found reaches {plain(self.rate_fps)} "
            f"frames/s: {_most_throughput(every)}, and none can have more than "
            f"{plain(1 / least_period_s())} (proven); ask for less with `rates`, or allow more"
        )

    def _has_few(self, candidate: Found) -> bool:
        return self.most_stages is None or _stage_count(candidate) <= self.most_stages

    def _reaches(self, candidate: Found) -> bool:
        return self.rate_fps is None or candidate.period_s * self.rate_fps <= 1 + CLOSE

    def _describe_refused(self, some: list[Found]) -> str:
        if all(each.period_s == inf for each in some):
            return f"each one found {TOO_MUCH}"
        if not any(map(self._has_few, some)):
            fewest = min(map(_stage_count, some))
            return f"those found have {fewest} stages or more, at most {self.most_stages} may be"
        return _most_throughput(filter(self._has_few, some))


def _stage_count(candidate: Found) -> int:
    return len(candidate.processors)


def _most_throughput(some: Iterable[Found]) -> str:
    most_fps = max(1 / each.period_s for each in some)
    return f"the most throughput found is {plain(most_fps)} frames/s"
