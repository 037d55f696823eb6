"""What is asked of the mappers: the shortest schedule of a problem, or those that trade energy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from parapipe.mapping.energy.trade_off import Energies, TradeOffs, verify_trade_offs
from parapipe.mapping.energy.trade_offs import trade_offs
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.verify import verify
from parapipe.pipeline.kept_text import schedule_of, trade_offs_of
from parapipe.pipeline.method import ANY_LIMIT, Method, is_optimum, key, solve_one

Answer = TypeVar("Answer", Schedule, TradeOffs)


class Question(Protocol[Answer]):
    """Plain values that cross to other processes, and what may be done with them."""

    @property
    def problem(self) -> MappingProblem:
        """The problem that it is about."""

    def answer(self, method: Method) -> Answer:
        """Answer it in this process."""

    def verify(self, answer: Answer) -> None:
        """Raise a VerificationError if an answer breaks a rule."""

    def keys(self, method: Method) -> tuple[str, ...]:
        """Return what an answer may be kept under, the best answer first."""

    def key_of(self, answer: Answer, method: Method) -> str:
        """Return what an answer is kept under."""

    def read(self, text: str) -> Answer:
        """Return the answer that a text of the cache holds; ValueError if none."""

    def gap(self, answer: Answer) -> float:
        """Return how far an answer may be from the best."""


@dataclass(frozen=True, slots=True)
class Shortest:
    """Asks for the shortest schedule of a problem."""

    problem: MappingProblem

    def answer(self, method: Method) -> Schedule:
        """Return the method's schedule."""
        return solve_one(self.problem, method)

    def verify(self, answer: Schedule) -> None:
        """Check all rules of schedules."""
        verify(self.problem, answer)

    def keys(self, method: Method) -> tuple[str, ...]:
        """Return first the key of an answer that no other time limit can better.

        There is none for a deterministic method: there, an answer must not depend on what was
        solved before.
        """
        own = key(method, self.problem)
        return (own,) if method.deterministic else (key(method, self.problem, limit=ANY_LIMIT), own)

    def key_of(self, answer: Schedule, method: Method) -> str:
        """Return the first of `keys` if the makespan is proven, else the last."""
        return self.keys(method)[0 if is_optimum(answer) else -1]

    def read(self, text: str) -> Schedule:
        """Read a schedule."""
        return schedule_of(text)

    def gap(self, answer: Schedule) -> float:
        """Return the gap of the schedule's certificate."""
        return answer.certificate.gap


@dataclass(frozen=True, slots=True)
class Trades:
    """Asks for schedules of a problem that trade time for energy.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p; infinite where v cannot run.
    resolution
        As for `trade_offs`.
    fastest
        The shortest schedule known.
    """

    problem: MappingProblem
    energy_j: Energies
    resolution: float
    fastest: Schedule = field(compare=False)

    def answer(self, method: Method) -> TradeOffs:
        """Return a set of schedules."""
        return trade_offs(
            self.problem,
            self.energy_j,
            self.fastest,
            resolution=self.resolution,
            time_limit_s=method.time_limit_s,
            seed=method.seed,
            deterministic=method.deterministic,
        )

    def verify(self, answer: TradeOffs) -> None:
        """Check all rules of sets."""
        verify_trade_offs(self.problem, self.energy_j, answer)

    def keys(self, method: Method) -> tuple[str, ...]:
        """Return the one key that there is."""
        return (key(method, "trade-offs", self.resolution, self.problem, self.energy_j),)

    def key_of(self, answer: TradeOffs, method: Method) -> str:
        """Return the one key that there is."""
        return self.keys(method)[0]

    def read(self, text: str) -> TradeOffs:
        """Read a set."""
        return trade_offs_of(text)

    def gap(self, answer: TradeOffs) -> float:
        """Return the largest gap of the points."""
        return max(point.claim.gap for point in answer.points)


def answer_of(question: Question[Answer], method: Method) -> Answer:
    """Answer a question in whatever process this is."""
    return question.answer(method)
